"""Gradients of convolutions, pooling, resizing, padding and slices.

What is linear along each axis (averages, interpolation, padding) goes back by a matrix per axis,
[results, places], of which the transpose is applied; sizes must be known for that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops.adaptive_pool import bounds
from mindspore_lite.ops.arguments import elements, interleaved, ints, layout, pad_mode, swapped
from mindspore_lite.ops.conv_transpose import conv_transposed
from mindspore_lite.ops.create import filled
from mindspore_lite.ops.pool import window, with_index
from mindspore_lite.ops.resize import coordinates, mindspore_places
from mindspore_lite.ops.scatter import replaced, shaped_like
from mindspore_lite.ops.slice import strided_slice
from mindspore_lite.ops.spatial import F32, padding, per_axis, reals_only, same_pads
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import MAX_TABLE, Tape, bounded

_I64 = np.dtype(np.int64)


def fixed(sizes: Sequence[Val], what: str) -> list[int]:
    """Sizes, which must be known."""
    if not all(isinstance(size, int | np.integer) for size in sizes):
        raise UnsupportedOpError(f"{what} must be known; export with a fixed shape")
    return [int(size) for size in sizes]


def spread(t: Tape, dout: Val, tables: Mapping[int, np.ndarray]) -> Val:
    """Apply the transpose of a matrix [results, places] along each named axis."""
    rank, dtype = t.rank(dout), t.dtype(dout)
    for axis, table in tables.items():
        turned = swapped(rank, axis, rank - 1)
        is_last = axis == rank - 1
        given = dout if is_last else t.op("Transpose", [dout], perm=turned)
        found = t.op("MatMul", [given, table.astype(dtype)])
        dout = found if is_last else t.op("Transpose", [found], perm=turned)
    return dout


def table_of(results: int, places: int) -> np.ndarray:
    """An empty matrix, within bounds."""
    bounded(results * places, "weights of a gradient", MAX_TABLE)
    return np.zeros((results, places), np.float64)


# --- convolutions ---------------------------------------------------------------------------------


@op("Conv2DBackpropFilter")
def conv2d_filter_grad(
    t: Tape,
    dout: Val,
    x: Val,
    filter_sizes: Val,
    *,
    pad_mode: Val = "valid",
    pad_list: Val = None,
    pad: Val = (0, 0, 0, 0),
    stride: Val = (1, 1),
    dilation: Val = (1, 1),
    group: int = 1,
    data_format: Val = "NCHW",
) -> Val:
    """Of the weight: x is convolved with dout, strides and dilations exchanged."""
    if layout(data_format) == "NHWC":
        raise UnsupportedOpError(f"{t.primitive} in NHWC is not supported")
    sizes = fixed(elements(t, filter_sizes), "the shape of the weight")
    steps, gaps = per_axis(stride, 2, "stride"), per_axis(dilation, 2, "dilation")
    how = padding(t, pad_mode, pad_list, pad)
    if "auto_pad" in how:
        how = {"pads": same_pads(t, x, sizes[2:], steps, gaps)}
    pads = how.get("pads", [0] * 4)
    return _filter_grad(t, x, dout, sizes, steps, gaps, pads, int(group))


@op("Conv3DBackpropFilter")
def conv3d_filter_grad(
    t: Tape,
    x: Val,
    dout: Val,
    filter_size: Val,
    *,
    pad_mode: Val = "valid",
    pad: Val = (0,) * 6,
    strides: Val = (1, 1, 1),
    dilations: Val = (1, 1, 1),
    group: int = 1,
) -> Val:
    """Of the weight."""
    sizes = fixed(elements(t, filter_size), "the shape of the weight")
    steps, gaps = per_axis(strides, 3, "strides"), per_axis(dilations, 3, "dilations")
    pads = _pads_3d(t, x, pad_mode, pad, sizes[2:], steps, gaps)
    return _filter_grad(t, x, dout, sizes, steps, gaps, pads, int(group))


@op("Conv3DBackpropInput")
def conv3d_input_grad(
    t: Tape,
    w: Val,
    dout: Val,
    input_size: Val,
    *,
    pad_mode: Val = "valid",
    pad: Val = (0,) * 6,
    strides: Val = (1, 1, 1),
    dilations: Val = (1, 1, 1),
    group: int = 1,
) -> Val:
    """Of the input, whose shape is given: a window that did not fit left a rest."""
    sizes = fixed(elements(t, input_size), "the shape of the input")[2:]
    kernel = fixed(t.shape(w)[2:], "the shape of the weight")
    lengths = fixed(t.shape(dout)[2:], "the shape of the gradient")
    steps, gaps = per_axis(strides, 3, "strides"), per_axis(dilations, 3, "dilations")
    room = np.zeros((1, 1, *sizes), np.bool_)
    pads = _pads_3d(t, room, pad_mode, pad, kernel, steps, gaps)
    rows = zip(sizes, lengths, kernel, steps, gaps, pads[:3], pads[3:], strict=True)
    rest = [n + a + b - ((m - 1) * s + (k - 1) * d + 1) for n, m, k, s, d, a, b in rows]
    return conv_transposed(
        t, dout, w, strides=steps, dilations=gaps, group=group, pads=pads, output_padding=rest
    )


def _pads_3d(
    t: Tape,
    x: Val,
    mode: Val,
    pad: Val,
    kernel: Sequence[int],
    steps: Sequence[int],
    gaps: Sequence[int],
) -> list[int]:
    how = pad_mode(mode)
    if how == "same":
        return fixed(list(same_pads(t, x, kernel, steps, gaps)), "the shape of the input")
    return [0] * 6 if how == "valid" else list(interleaved(ints(pad, "pad")))


def _filter_grad(
    t: Tape,
    x: Val,
    dout: Val,
    sizes: Sequence[int],
    steps: Sequence[int],
    gaps: Sequence[int],
    pads: Val,
    group: int,
) -> Val:
    """Batch and channels change places, so that a convolution adds up over the batch."""
    reals_only(t, x)
    bounded(group, "groups")
    rank = t.rank(x)
    inner = list(range(3, rank + 1))

    def turned(value: Val, perm: list[int], merged: Sequence[int]) -> Val:
        tail = t.op("Shape", [value], start=2)
        rows = t.op("Shape", [value], start=0, end=1)
        parts = t.op("Concat", [rows, np.asarray([group, -1]), tail], axis=0)
        split = t.op("Transpose", [t.op("Reshape", [value, parts])], perm=[*perm, *inner])
        shape = [np.asarray(merged), tail] if merged[1] == -1 else [np.asarray([-1]), rows, tail]
        return t.op("Reshape", [split, t.op("Concat", shape, axis=0)])

    # [N, G I, ...] -> [I, G N, ...], and [N, G O, ...] -> [G O, N, ...]
    images = turned(x, [2, 1, 0], [sizes[1], -1])
    kernels = turned(dout, [1, 2, 0], [-1, 0])
    for value in (images, kernels):
        t.rank(value)
    if not isinstance(pads, list | tuple | np.ndarray):
        raise UnsupportedOpError("the shape of the input must be known; export with a fixed shape")
    found = t.op(
        "Conv",
        [images, kernels],
        strides=gaps,
        dilations=steps,
        group=group,
        pads=[int(pad) for pad in pads],
    )
    axes = np.arange(2, rank)  # windows that did not fit leave more places than the weight has
    found = t.op("Slice", [found, np.zeros(rank - 2, np.int64), np.asarray(sizes[2:]), axes])
    return t.op("Transpose", [found], perm=[1, 0, *range(2, rank)])


# --- pooling --------------------------------------------------------------------------------------


def window_table(
    counts_pads: bool, length: int, results: int, kernel: int, step: int, before: int, after: int
) -> np.ndarray:
    """The average of one axis; windows that leave it divide by what they cover, or by all."""
    found = table_of(results, length)
    for at in range(results):
        start = at * step - before
        end = min(start + kernel, length + after)
        inside = slice(max(start, 0), min(start + kernel, length))
        divisor = end - start if counts_pads else inside.stop - inside.start
        found[at, inside] = 1 / max(divisor, 1)
    return found


@op("AvgPoolGrad")
def avg_pool_grad(
    t: Tape,
    x: Val,
    y: Val,
    dout: Val,
    *,
    kernel_size: Val,
    strides: Val,
    pad_mode: Val = "valid",
    data_format: Val = "NCHW",
) -> Val:
    """Each number goes to all places of its window, divided by their count without pads."""
    if layout(data_format) == "NHWC":
        raise UnsupportedOpError(f"{t.primitive} in NHWC is not supported")
    how = window(kernel_size, strides, data_format)
    kernel, steps = how["kernel_shape"], how["strides"]
    lengths = fixed(t.shape(x)[2:], "the shape of the input")
    results = fixed(t.shape(dout)[2:], "the shape of the gradient")
    pads = [0] * 4
    if "auto_pad" in padding(t, pad_mode, None):
        pads = fixed(list(same_pads(t, x, kernel, steps, (1, 1))), "the shape of the input")
    rows = zip(lengths, results, kernel, steps, pads[:2], (0, 0), strict=True)
    tables = [window_table(False, *row) for row in rows]
    return spread(t, dout, dict(zip((2, 3), tables, strict=True)))


@op("AvgPool3DGrad")
def avg_pool3d_grad(
    t: Tape,
    origin_input_shape: Val,
    dout: Val,
    *,
    kernel_size: Val,
    strides: Val,
    pad_list: Val = (0,) * 6,
    pad_mode: Val = "valid",
    ceil_mode: Val = False,
    count_include_pad: Val = True,
    divisor_override: Val = 0,
) -> Val:
    """The same with three axes, which nn.AvgPool1d and AvgPool2d export, too."""
    kernel, steps = per_axis(kernel_size, 3, "kernel_size"), per_axis(strides, 3, "strides")
    lengths = fixed(elements(t, origin_input_shape), "the shape of the input")[-3:]
    results = fixed(t.shape(dout)[-3:], "the shape of the gradient")
    pads = list(interleaved(ints(pad_list, "pad_list"))) if pad_list is not None else [0] * 6
    rows = zip(lengths, results, kernel, steps, pads[:3], pads[3:], strict=True)
    counts = bool(count_include_pad) or bool(divisor_override)
    tables = [window_table(counts, *row) for row in rows]
    if divisor_override:
        share = np.prod(kernel) / int(divisor_override)
        tables = [np.where(table > 0, 1 / k, 0) for table, k in zip(tables, kernel, strict=True)]
        tables[0] = tables[0] * share
    rank = t.rank(dout)
    return spread(t, dout, dict(zip(range(rank - 3, rank), tables, strict=True)))


@op("AdaptiveAvgPool2DGrad", "AdaptiveAvgPool3DGrad")
def adaptive_avg_pool_grad(t: Tape, dout: Val, orig_input_shape: Val) -> Val:
    """Each number goes to all places of its bin, divided by their count."""
    dims = 3 if "3D" in t.primitive else 2
    lengths = fixed(elements(t, orig_input_shape), "the shape of the input")[-dims:]
    rank = t.rank(dout)
    results = fixed(t.shape(dout)[-dims:], "the shape of the gradient")
    tables = {}
    for axis, length, size in zip(range(rank - dims, rank), lengths, results, strict=True):
        found = table_of(size, length)
        for at, (start, end) in enumerate(zip(*bounds(length, size), strict=True)):
            found[at, start:end] = 1 / (end - start)
        tables[axis] = found
    return spread(t, dout, tables)


@op("MaxPoolGrad")
def max_pool_grad(
    t: Tape,
    x: Val,
    y: Val,
    dout: Val,
    *,
    kernel_size: Val,
    strides: Val,
    pad_mode: Val = "valid",
    data_format: Val = "NCHW",
) -> Val:
    """Each number goes to the first largest place of its window."""
    if layout(data_format) == "NHWC":
        raise UnsupportedOpError(f"{t.primitive} in NHWC is not supported")
    how = {**window(kernel_size, strides, data_format), **padding(t, pad_mode, None)}
    _, places = with_index(t, x, _I64, **how)
    return _unpooled(t, x, dout, places)


@op("MaxPoolGradWithArgmaxV2", "MaxPoolGradWithArgmax", "MaxPool3DGradWithArgmax")
def max_pool_argmax_grad(t: Tape, x: Val, dout: Val, argmax: Val) -> Val:
    """Each number goes to its flat place in its channel; windows that overlap add up."""
    return _unpooled(t, x, dout, t.cast(argmax, _I64))


def _unpooled(t: Tape, x: Val, dout: Val, places: Val) -> Val:
    flat = np.asarray([0, 0, -1])
    new, at = (t.op("Reshape", [v, flat]) for v in (dout, places))
    plane = t.op("ReduceProd", [t.op("Shape", [x], start=2)], keepdims=1)
    shape = t.op("Concat", [t.op("Shape", [x], end=2), plane], axis=0)
    room = filled(t, shape, 0, F32)
    full = t.op("ScatterElements", [room, at, t.cast(new, F32)], axis=2, reduction="add")
    return t.cast(shaped_like(t, x, full, F32), t.dtype(dout))


# --- resizing and padding -------------------------------------------------------------------------


@op("ResizeBilinearGrad")
def resize_bilinear_grad(
    t: Tape, dout: Val, image: Val, *, align_corners: Val = False, half_pixel_centers: Val = False
) -> Val:
    """Each number goes to the four places that it was made of."""
    how = coordinates(align_corners, half_pixel_centers)
    lengths = fixed(t.shape(image)[2:], "the shape of the image")
    sizes = fixed(t.shape(dout)[2:], "the shape of the gradient")
    pairs = zip((2, 3), lengths, sizes, strict=True)
    return spread(t, dout, {axis: _linear(length, size, how) for axis, length, size in pairs})


def _linear(length: int, size: int, how: str) -> np.ndarray:
    """Which places of one axis make each result of a linear interpolation."""
    found, at = table_of(size, length), np.arange(size, dtype=np.float64)
    if how == "align_corners":
        at = at * ((length - 1) / (size - 1) if size > 1 else 0)
    elif how == "half_pixel":
        at = np.maximum((at + 0.5) * length / size - 0.5, 0)
    else:
        at = at * length / size
    low = np.minimum(np.floor(at).astype(np.int64), length - 1)
    share = at - low
    rows = np.arange(size)
    found[rows, low] += 1 - share
    found[rows, np.minimum(low + 1, length - 1)] += share
    return found


@op("ResizeNearestNeighborV2Grad", "ResizeNearestNeighborGrad")
def resize_nearest_grad(
    t: Tape, dout: Val, size: Val, *, align_corners: Val = False, half_pixel_centers: Val = False
) -> Val:
    """Each number goes to the place that it was taken from."""
    how = coordinates(align_corners, half_pixel_centers)
    lengths = fixed(elements(t, size), "the size of the image")[-2:]
    results = fixed(t.shape(dout)[2:], "the shape of the gradient")
    tables = {}
    for axis, length, many in zip((2, 3), lengths, results, strict=True):
        tables[axis] = table_of(many, length)
        tables[axis][np.arange(many), mindspore_places(length, many, None, how)] = 1
    return spread(t, dout, tables)


@op("PadV3Grad")
def pad_grad(
    t: Tape, dout: Val, paddings: Val, *, mode: str = "reflect", paddings_contiguous: Val = True
) -> Val:
    """What stood at a pad goes back to where it was taken from; the last axis comes first."""
    pads, rank = ints(paddings, "paddings"), t.rank(dout)
    names = {"reflect": "reflect", "edge": "edge", "circular": "wrap"}
    if mode not in names or len(pads) % 2 or len(pads) > 2 * rank:
        raise UnsupportedOpError(f"the gradient of padding mode {mode!r} by {pads}")
    half = len(pads) // 2
    pairs = zip(pads[0::2], pads[1::2], strict=True)
    if not paddings_contiguous:
        pairs = zip(pads[:half], pads[half:], strict=True)
    sizes, tables = t.shape(dout), {}
    for back, (before, after) in enumerate(pairs, start=1):
        (size,) = fixed([sizes[rank - back]], "the shape of the gradient")
        length = size - before - after
        if before < 0 or after < 0 or length < 1 or max(before, after) > length:
            raise UnsupportedOpError(f"the gradient of padding by {pads}")
        places = np.pad(np.arange(length), (before, after), names[mode])  # type: ignore[call-overload]
        tables[rank - back] = table_of(size, length)
        tables[rank - back][np.arange(size), places] = 1
    return spread(t, dout, tables)


@op("StridedSliceGrad")
def strided_slice_grad(
    t: Tape,
    dout: Val,
    shapex: Val,
    begin: Val,
    end: Val,
    strides: Val,
    *,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> Val:
    """dout at the places that the slice took, zero elsewhere."""
    sizes = fixed(elements(t, shapex), "the shape of the input")
    bounded(int(np.prod(sizes, dtype=object)), "numbers of a gradient", MAX_TABLE)
    zeros = t.constant(np.zeros(sizes, t.dtype(dout)))

    def cut(value: Val) -> Val:
        return strided_slice(
            t, value, begin, end, strides,
            begin_mask=begin_mask, end_mask=end_mask, ellipsis_mask=ellipsis_mask,
            new_axis_mask=new_axis_mask, shrink_axis_mask=shrink_axis_mask,
        )  # fmt: skip

    return replaced(t, zeros, dout, cut)
