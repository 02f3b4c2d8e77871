"""Windows laid side by side, and blocks moved between space, channels and batch."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops.arguments import elements, number, pad_mode
from mindspore_lite.ops.spatial import (
    batched,
    both_sides,
    in_nchw,
    padded,
    per_axis,
    reals_only,
    same_pads,
)
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape, bounded, constant_of

I64_MAX = np.iinfo(np.int64).max


# --- windows --------------------------------------------------------------------------------------


def window_slices(
    t: Tape, x: Val, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> list[Val]:
    """For each place in a window, row by row, what all windows over the last axes hold there."""
    bounded(math.prod(kernel), "places in a window")
    axes = np.arange(-len(kernel), 0)
    reach = [d * (k - 1) for k, d in zip(kernel, dilations, strict=True)]
    found = []
    for at in itertools.product(*map(range, kernel)):
        starts = [a * d for a, d in zip(at, dilations, strict=True)]
        # counted from the end: the size of x need not be known
        ends = [s - r or I64_MAX for s, r in zip(starts, reach, strict=True)]
        found.append(t.op("Slice", [x, starts, ends, axes, tuple(strides)]))
    return found


@op("Im2Col")
def im2col(
    t: Tape, x: Val, *, ksizes: Val, strides: Val = 1, dilations: Val = 1, pads: Val = 0
) -> Val:
    """[N, C, kernel, windows]."""
    return _columns(t, x, ksizes, dilations, pads, strides, [0, 0])


@op("Im2ColExt")
def im2col_ext(
    t: Tape, x: Val, kernel_size: Val, dilation: Val = 1, padding: Val = 0, stride: Val = 1
) -> Val:
    """[N, C * kernel, windows]; the batch axis may be missing."""
    return batched(t, x, 2, lambda x: _columns(t, x, kernel_size, dilation, padding, stride, [0]))


def _columns(
    t: Tape, x: Val, kernel: Val, dilations: Val, pads: Val, strides: Val, kept: list[int]
) -> Val:
    sizes = [per_axis(v, 2, "window") for v in (kernel, strides, dilations)]
    x = padded(t, x, np.asarray(both_sides(pads, 2)), 2)
    parts = window_slices(t, t.op("Unsqueeze", [x, np.asarray([2])]), *sizes)
    joined = t.op("Concat", parts, axis=2)  # N, C, kernel, rows, columns
    if len(kept) == 2:
        shape: Val = np.asarray([0, 0, math.prod(sizes[0]), -1])
    else:
        count = t.op("ReduceProd", [t.op("Shape", [joined], start=3)], keepdims=1)
        shape = t.op("Concat", [np.asarray([0, -1]), count], axis=0)
    return t.op("Reshape", [joined, shape])


@op("Col2Im")
def col2im(
    t: Tape,
    x: Val,
    output_size: Val,
    *,
    kernel_size: Val,
    dilation: Val = 1,
    padding: Val = 0,
    stride: Val = 1,
) -> Val:
    """From [N, C, kernel, windows]; what windows share is added up."""
    shape = t.op("Concat", [np.asarray([0, -1]), t.op("Shape", [x], start=3)], axis=0)
    flat = t.op("Reshape", [x, shape])
    return _image(t, flat, output_size, kernel_size, dilation, padding, stride)


@op("Col2ImExt")
def col2im_ext(
    t: Tape,
    x: Val,
    output_size: Val,
    kernel_size: Val,
    dilation: Val = 1,
    padding: Val = 0,
    stride: Val = 1,
) -> Val:
    """From [N, C * kernel, windows]; the batch axis may be missing."""
    how = (kernel_size, dilation, padding, stride)
    return batched(t, x, 1, lambda x: _image(t, x, output_size, *how))


def _image(
    t: Tape, x: Val, output_size: Val, kernel: Val, dilation: Val, padding: Val, stride: Val
) -> Val:
    image, block = t.int64s(elements(t, output_size)), per_axis(kernel, 2, "kernel_size")
    how: dict[str, Val] = {
        "dilations": per_axis(dilation, 2, "dilation"),
        "pads": both_sides(padding, 2),
        "strides": per_axis(stride, 2, "stride"),
    }
    reals_only(t, x)
    return t.op("Col2Im", [x, image, block], **how)


@op("ExtractImagePatches")
def extract_image_patches(
    t: Tape, x: Val, *, ksizes: Val, strides: Val, rates: Val, padding: Val = "VALID"
) -> Val:
    """[N, kernel * C, rows, columns]; sizes are (1, 1, h, w)."""
    sizes = [per_axis(v, 2, "window") for v in (ksizes, strides, rates)]
    return _patches(t, x, sizes, padding)


@op("ExtractVolumePatches")
def extract_volume_patches(
    t: Tape, x: Val, *, kernel_size: Val, strides: Val, padding: Val = "VALID"
) -> Val:
    """[N, kernel * C, depth, rows, columns]; sizes are (1, 1, d, h, w)."""
    sizes = [per_axis(v, 3, "window") for v in (kernel_size, strides, 1)]
    return _patches(t, x, sizes, padding)


def _patches(t: Tape, x: Val, sizes: list[tuple[int, ...]], padding: Val) -> Val:
    if pad_mode(padding) == "same":
        x = padded(t, x, same_pads(t, x, *sizes), len(sizes[0]))
    return t.op("Concat", window_slices(t, x, *sizes), axis=1)


# --- blocks ---------------------------------------------------------------------------------------


@op("DepthToSpace", "SpaceToDepth")
def depth_space(t: Tape, x: Val, *, block_size: Val, data_format: Val = "NCHW") -> Val:
    """Blocks of pixels against channels, the place in the block before the channel."""
    block = int(number(block_size, "block_size"))
    kernels = ("float16", "float32", "float64", "int8", "uint8")
    if t.dtype(x).name in kernels:
        how: dict[str, Val] = {
            "blocksize": block,
            "mode": "DCR" if t.primitive == "DepthToSpace" else None,
        }
        return in_nchw(t, x, data_format, lambda x: t.op(t.primitive, [x], **how))
    if t.primitive == "DepthToSpace":
        return in_nchw(t, x, data_format, lambda x: _unfolded(t, x, block, [0, 3, 4, 1, 5, 2], 1))
    return in_nchw(t, x, data_format, lambda x: _folded(t, x, block, [0, 3, 5, 1, 2, 4]))


@op("PixelShuffle")
def pixel_shuffle(t: Tape, x: Val, upscale_factor: Val) -> Val:
    """Channels to blocks of pixels, the channel before the place in the block; any rank from 3."""
    block, outer = int(number(upscale_factor, "upscale_factor")), t.op("Shape", [x], end=-3)
    flat = t.op("Reshape", [x, t.op("Concat", [[-1], t.op("Shape", [x], start=-3)], axis=0)])
    y = _unfolded(t, flat, block, [0, 1, 4, 2, 5, 3], 2)
    return t.op("Reshape", [y, t.op("Concat", [outer, t.op("Shape", [y], start=1)], axis=0)])


def _unfolded(t: Tape, x: Val, block: int, perm: list[int], at: int) -> Val:
    """Channels [N, C, H, W] to pixels; the block stands at axis `at` and after it."""
    factor = np.asarray([block])
    channels, *image = (t.op("Shape", [x], start=a, end=a + 1) for a in (1, 2, 3))
    fewer = t.op("Div", [channels, factor * block])
    middle = [[block, block], fewer] if at == 1 else [fewer, [block, block]]
    parts = t.op("Reshape", [x, t.op("Concat", [[0], *middle, *image], axis=0)])
    larger = [t.op("Mul", [n, factor]) for n in image]
    shape = t.op("Concat", [[0], fewer, *larger], axis=0)
    return t.op("Reshape", [t.op("Transpose", [parts], perm=perm), shape])


def _folded(t: Tape, x: Val, block: int, perm: list[int]) -> Val:
    """Pixels [N, C, H, W] to channels."""
    factor = np.asarray([block])
    channels, *image = (t.op("Shape", [x], start=a, end=a + 1) for a in (1, 2, 3))
    smaller = [t.op("Div", [n, factor]) for n in image]
    split = t.op("Concat", [[0], channels, smaller[0], factor, smaller[1], factor], axis=0)
    parts = t.op("Transpose", [t.op("Reshape", [x, split])], perm=perm)
    more = t.op("Mul", [channels, factor * block])
    return t.op("Reshape", [parts, t.op("Concat", [[0], more, *smaller], axis=0)])


@op("ChannelShuffle")
def channel_shuffle(t: Tape, x: Val, *, group: int) -> Val:
    """Deals the channels of each group out, as cards."""
    channels = t.op("Shape", [x], start=1, end=2)
    each = t.op("Div", [channels, np.asarray([group])])
    parts = t.op("Reshape", [x, t.op("Concat", [[0], [group], each, [-1]], axis=0)])
    turned = t.op("Transpose", [parts], perm=[0, 2, 1, 3])
    return t.op("Reshape", [turned, t.op("Shape", [x])])


@op("SpaceToBatchND")
def space_to_batch_nd(t: Tape, x: Val, *, block_shape: Val, paddings: Val) -> Val:
    """Pads the last axes, then deals the pixels of each block out over the batch."""
    return _to_batch(t, x, per_axis(block_shape, len(paddings), "block_shape"), paddings)


@op("SpaceToBatch")
def space_to_batch(t: Tape, x: Val, *, block_size: int, paddings: Val) -> Val:
    """The same with a square block."""
    return _to_batch(t, x, (block_size,) * 2, paddings)


def _to_batch(t: Tape, x: Val, block: Sequence[int], paddings: Val) -> Val:
    dims, edges = len(block), np.asarray(paddings, np.int64)
    first = t.rank(x) - dims
    x = padded(t, x, edges.T.reshape(-1), dims)
    outer = [t.op("Shape", [x], start=a, end=a + 1) for a in range(first)]
    smaller = [
        t.op("Div", [t.op("Shape", [x], start=first + i, end=first + i + 1), np.asarray([b])])
        for i, b in enumerate(block)
    ]
    pairs = [v for n, b in zip(smaller, block, strict=True) for v in (n, [b])]
    parts = t.op("Reshape", [x, t.op("Concat", [*outer, *pairs], axis=0)])
    inside = [first + 1 + 2 * i for i in range(dims)]
    rest = [a for a in range(first + 2 * dims) if a not in inside]
    turned = t.op("Transpose", [parts], perm=[*inside, *rest])
    return t.op("Reshape", [turned, t.op("Concat", [[-1], *outer[1:], *smaller], axis=0)])


@op("BatchToSpaceND")
def batch_to_space_nd(t: Tape, x: Val, *, block_shape: Val, crops: Val) -> Val:
    """Gathers blocks of pixels from the batch, then crops the last axes."""
    block = per_axis(block_shape, len(crops), "block_shape")
    return _to_space(t, x, block, crops, t.rank(x) - len(block))


@op("BatchToSpace")
def batch_to_space(t: Tape, x: Val, *, block_size: int, crops: Val) -> Val:
    """The same with a square block."""
    return _to_space(t, x, (block_size,) * 2, crops, t.rank(x) - 2)


@op("BatchToSpaceNDV2")
def batch_to_space_v2(t: Tape, x: Val, block_shape: Val, crops: Val) -> Val:
    """The same on the axes right after the batch."""
    edges = constant_of(crops)
    block = constant_of(block_shape)
    if edges is None or block is None:
        raise UnsupportedOpError("block_shape and crops must be constant")
    return _to_space(t, x, [int(b) for b in block], edges, 1)


def _to_space(t: Tape, x: Val, block: Sequence[int], crops: Val, first: int) -> Val:
    dims, rank = len(block), t.rank(x)
    sizes = [t.op("Shape", [x], start=a, end=a + 1) for a in range(rank)]
    fewer = t.op("Div", [sizes[0], np.asarray([math.prod(block)])])
    parts = t.op("Reshape", [x, t.op("Concat", [list(block), fewer, *sizes[1:]], axis=0)])
    perm = list(range(dims, dims + first))
    for i in range(dims):
        perm += [dims + first + i, i]
    perm += range(2 * dims + first, dims + rank)
    larger = [
        t.op("Mul", [n, np.asarray([b])])
        for n, b in zip(sizes[first : first + dims], block, strict=True)
    ]
    shape = t.op("Concat", [fewer, *sizes[1:first], *larger, *sizes[first + dims :]], axis=0)
    y = t.op("Reshape", [t.op("Transpose", [parts], perm=perm), shape])
    edges = np.asarray(crops, np.int64)
    if not edges.any():
        return y
    ends = np.where(edges[:, 1] > 0, -edges[:, 1], I64_MAX)
    return t.op("Slice", [y, edges[:, 0], ends, np.arange(first, first + dims)])
