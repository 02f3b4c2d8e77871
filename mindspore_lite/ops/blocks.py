"""Blocks of pixels against channels, batch or order."""

from __future__ import annotations

import math

import numpy as np

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops.arguments import ints, number
from mindspore_lite.ops.pad import padded, table
from mindspore_lite.ops.slice import LAST, sliced
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape


@op("DepthToSpace", "SpaceToDepth")
def depth_space(t: Tape, x: Val, *, block_size: Val, data_format: Val = "NCHW") -> Val:
    """Blocks of pixels against channels."""
    if data_format in ("NHWC", 1):
        y = depth_space(t, t.op("Transpose", [x], perm=[0, 3, 1, 2]), block_size=block_size)
        return t.op("Transpose", [y], perm=[0, 2, 3, 1])
    mode = "DCR" if t.primitive == "DepthToSpace" else None
    size = int(number(block_size, "block_size"))
    if t.dtype(x).kind == "f":
        return t.op(t.primitive, [x], blocksize=size, mode=mode)
    # ONNX Runtime has no kernel for most integers; they fit into a float64 unless huge
    wide = t.cast(x, np.dtype(np.float64))
    return t.cast(t.op(t.primitive, [wide], blocksize=size, mode=mode), t.dtype(x))


@op("PixelShuffle")
def pixel_shuffle(t: Tape, x: Val, upscale_factor: Val) -> Val:
    """Channels to pixels, the channel being the slowest: [..., C * r * r, H, W]."""
    size, rank = int(number(upscale_factor, "upscale_factor")), t.rank(x)
    if rank == 4:
        return t.op("DepthToSpace", [x], blocksize=size, mode="CRD")
    image = t.op("Concat", [np.asarray([-1]), t.op("Shape", [x], start=-3)], axis=0)
    y = t.op("DepthToSpace", [t.op("Reshape", [x, image])], blocksize=size, mode="CRD")
    head, tail = t.op("Shape", [x], end=rank - 3), t.op("Shape", [y], start=1)
    return t.op("Reshape", [y, t.op("Concat", [head, tail], axis=0)])


@op("ChannelShuffle")
def channel_shuffle(t: Tape, x: Val, *, group: Val) -> Val:
    """Channels of the groups taken in turns."""
    count = int(number(group, "group"))
    head, tail = t.op("Shape", [x], end=1), t.op("Shape", [x], start=2)
    apart = t.op("Concat", [head, np.asarray([count, -1]), tail], axis=0)
    perm = [0, 2, 1, *range(3, t.rank(x) + 1)]
    y = t.op("Transpose", [t.op("Reshape", [x, apart])], perm=perm)
    return t.op("Reshape", [y, t.op("Shape", [x])])


def block_arguments(
    t: Tape, x: Val, block_shape: Val, borders: Val
) -> tuple[list[int], list[tuple[int, int]]]:
    """Block sizes and (before, after) pairs of the trailing axes."""
    pairs = table(borders, "paddings or crops")
    blocks = list(ints(block_shape, "block_shape"))
    if len(blocks) == 1:
        blocks *= len(pairs)
    if len(blocks) != len(pairs) or len(blocks) >= t.rank(x) or min(blocks) < 1:
        raise UnsupportedOpError(f"blocks {blocks} with borders {pairs} make no sense")
    return blocks, pairs


@op("SpaceToBatchND", "SpaceToBatch")
def space_to_batch(
    t: Tape, x: Val, block_shape: Val = None, paddings: Val = None, *, block_size: Val = None
) -> Val:
    """Each pixel of a block goes to an image of its own; the block's place is the slower axis."""
    blocks, pairs = block_arguments(t, x, block_size or block_shape, paddings)
    count, rank = len(blocks), t.rank(x)
    first = rank - count
    y = padded(t, x, [(0, 0)] * first + pairs)
    shape: list[Val] = [t.op("Shape", [x], end=first)]
    for axis, block in enumerate(blocks, first):
        length = t.op("Shape", [y], start=axis, end=axis + 1)
        shape += [t.op("Div", [length, np.asarray([block])]), np.asarray([block])]
    y = t.op("Reshape", [y, t.op("Concat", shape, axis=0)])
    inner = [first + 2 * k for k in range(count)]
    y = t.op("Transpose", [y], perm=[*(i + 1 for i in inner), *range(first), *inner])
    tail = t.op("Shape", [y], start=count + 1)
    return t.op("Reshape", [y, t.op("Concat", [np.asarray([-1]), tail], axis=0)])


@op("BatchToSpaceND", "BatchToSpace", "BatchToSpaceNDV2")
def batch_to_space(
    t: Tape, x: Val, block_shape: Val = None, crops: Val = None, *, block_size: Val = None
) -> Val:
    """Images become the pixels of blocks; the inverse of SpaceToBatchND."""
    blocks, pairs = block_arguments(t, x, block_size or block_shape, crops)
    count, rank = len(blocks), t.rank(x)
    first = rank - count
    batch = t.op("Div", [t.op("Shape", [x], end=1), np.asarray([math.prod(blocks)])])
    tail = t.op("Shape", [x], start=1)
    y = t.op("Reshape", [x, t.op("Concat", [np.asarray(blocks), batch, tail], axis=0)])
    perm = list(range(count, count + first))
    for k in range(count):
        perm += [count + first + k, k]
    y = t.op("Transpose", [y], perm=perm)
    shape: list[Val] = [batch, t.op("Shape", [x], start=1, end=first)]
    for axis, block in enumerate(blocks, first):
        length = t.op("Shape", [x], start=axis, end=axis + 1)
        shape.append(t.op("Mul", [length, np.asarray([block])]))
    y = t.op("Reshape", [y, t.op("Concat", shape, axis=0)])
    cuts = {first + k: (b, -e if e else LAST, 1) for k, (b, e) in enumerate(pairs)}
    return sliced(t, y, cuts)
