"""Deformable convolution: the sampling of its windows; a plain Conv2D follows in the file."""

from __future__ import annotations

import numpy as np

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops.arguments import ints, layout
from mindspore_lite.ops.spatial import F32, numbers_of, per_axis, reals_only
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape, bounded


@op("DeformableOffsets")
def deformable_offsets(
    t: Tape,
    x: Val,
    offsets: Val,
    *,
    strides: Val,
    pads: Val,
    ksize: Val,
    dilations: Val = (1, 1, 1, 1),
    data_format: Val = "NCHW",
    deformable_groups: int = 1,
) -> Val:
    """Samples x where each window looks and scales by the masks: [N, C, oh * kh, ow * kw].

    `offsets` is [N, 3 * groups * kh * kw, oh, ow]: all moves in x, all in y, then all masks.
    """
    if layout(data_format) != "NCHW":
        raise UnsupportedOpError("DeformableOffsets in NHWC is not supported")
    kernel = ints(ksize, "ksize")
    bounded(max(kernel, default=0), "places in a window")
    windows = (
        kernel,
        per_axis(strides, 2, "strides"),
        per_axis(dilations, 2, "dilations"),
        ints(pads, "pads")[0::2],
    )
    reals_only(t, x)
    # places are counted in float32, whatever the type of the image
    moves = t.cast(offsets, F32)
    return t.cast(_sampled(t, t.cast(x, F32), moves, windows, deformable_groups), t.dtype(x))


def _sampled(t: Tape, x: Val, offsets: Val, windows: tuple[Val, ...], groups: int) -> Val:
    kernel, strides, dilations, pads = windows
    counts = numbers_of(t, offsets, 2)
    sizes = [t.cast(t.op("Shape", [x], start=a, end=a + 1), F32) for a in (2, 3)]
    parts = t.op("Reshape", [offsets, t.int64s([-1, 3, groups, *kernel, *counts])])
    parts = t.op("Transpose", [parts], perm=[1, 0, 2, 5, 3, 6, 4])  # 3, N, groups, oh, kh, ow, kw
    moves_x, moves_y, masks = t.op("Split", [parts], outputs=3, axis=0, num_outputs=3)
    places = [
        _places(t, *one) for one in zip(counts, kernel, strides, dilations, pads, strict=True)
    ]
    rows = t.op("Unsqueeze", [places[0], np.asarray([2, 3])])
    grid = [
        _normalised(t, t.op("Add", [moves_x, places[1]]), sizes[1]),
        _normalised(t, t.op("Add", [moves_y, rows]), sizes[0]),
    ]
    picture = [t.op("Mul", [c, k]) if not isinstance(c, int) else c * k
               for c, k in zip(counts, kernel, strict=True)]  # fmt: skip
    pairs = t.op("Concat", [t.op("Unsqueeze", [g, np.asarray([-1])]) for g in grid], axis=-1)
    pairs = t.op("Reshape", [pairs, t.int64s([-1, *picture, 2])])
    channels = _channels(t, x)
    image = t.op("Reshape", [x, t.int64s([-1, channels // groups, *numbers_of(t, x, 2)])])
    found = t.op("GridSample", [image, pairs], mode="linear", padding_mode="zeros")
    found = t.op("Mul", [found, t.op("Reshape", [masks, t.int64s([-1, 1, *picture])])])
    return t.op("Reshape", [found, t.int64s([-1, channels, *picture])])


def _places(t: Tape, count: Val, size: int, stride: int, dilation: int, pad: int) -> Val:
    """Where each element of each window lies on one axis: [count, size]."""
    starts = t.op("Range", [np.asarray(0), t.cast(count, np.dtype(np.int64)), np.asarray(1)])
    starts = t.op("Unsqueeze", [t.op("Mul", [starts, np.asarray(stride)]), np.asarray([1])])
    return t.cast(t.op("Add", [starts, np.arange(size) * dilation - pad]), F32)


def _normalised(t: Tape, place: Val, size: Val) -> Val:
    """GridSample's coordinates: pixel p of n lies at (2p + 1) / n - 1."""
    double = t.op("Add", [t.op("Mul", [place, np.asarray(2, F32)]), np.asarray(1, F32)])
    return t.op("Sub", [t.op("Div", [double, size]), np.asarray(1, F32)])


def _channels(t: Tape, x: Val) -> int:
    channels = t.shape(x)[1]
    if channels is None:
        raise UnsupportedOpError("the number of channels must be known")
    return channels
