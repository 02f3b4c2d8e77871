"""converter_lite's convolutions, pooling and image resizing, mostly in NHWC."""

from __future__ import annotations

import numpy as np

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops.arguments import interleaved, ints, layout, pad_mode
from mindspore_lite.ops.lite_activation import activated
from mindspore_lite.ops.spatial import padding
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape, bounded


def channels_first(t: Tape, x: Val, data_format: Val) -> Val:
    """A tensor, or a kernel, with its last axis moved behind the first."""
    if layout(data_format) != "NHWC":
        return x
    rank = t.rank(x)
    return t.op("Transpose", [x], perm=[0, rank - 1, *range(1, rank - 1)])


def restored(t: Tape, y: Val, data_format: Val) -> Val:
    """The inverse of `channels_first`."""
    if layout(data_format) != "NHWC":
        return y
    rank = t.rank(y)
    return t.op("Transpose", [y], perm=[0, *range(2, rank), 1])


@op("Conv2DFusion")
def conv2d_fusion(
    t: Tape,
    x: Val,
    w: Val,
    bias: Val = None,
    *,
    pad_mode: Val = "pad",
    pad_list: Val = None,
    stride: Val = (1, 1),
    dilation: Val = (1, 1),
    group: int = 1,
    data_format: Val = "NCHW",
    activation_type: int = 0,
) -> Val:
    """Kernels are [out, h, w, in] in NHWC."""
    turned = channels_first(t, w, data_format)
    y = t.op(
        "Conv",
        [channels_first(t, x, data_format), turned] + ([] if bias is None else [bias]),
        strides=ints(stride, "stride")[-2:],
        dilations=ints(dilation, "dilation")[-2:],
        group=group or t.shape(w)[0],  # 0 was written for "as many as there are channels"
        **padding(t, pad_mode, pad_list, (0, 0, 0, 0)),
    )
    return restored(t, activated(t, y, activation_type), data_format)


@op("Conv2dTransposeFusion")
def conv2d_transpose_fusion(
    t: Tape,
    x: Val,
    w: Val,
    bias: Val = None,
    *,
    kernel_size: Val = None,
    pad_mode: Val = "pad",
    pad_list: Val = (0, 0, 0, 0),
    stride: Val = (1, 1),
    dilation: Val = (1, 1),
    group: int = 1,
    output_paddings: Val = (0, 0),
    data_format: Val = "NCHW",
    activation_type: int = 0,
) -> Val:
    """Kernels are [in, h, w, out] in NHWC."""
    if bias is not None and t.dtype(bias).kind != "f":
        bias = None  # what Conv2DBackpropInput was given as the size of its result
    turned = channels_first(t, w, data_format)
    strides, rates = ints(stride, "stride")[-2:], ints(dilation, "dilation")[-2:]
    sizes = t.shape(turned)[-2:] if kernel_size is None else ints(kernel_size, "kernel_size")
    effective = [rate * (int(k or 1) - 1) + 1 for k, rate in zip(sizes, rates, strict=True)]
    paddings = ints(output_paddings, "output_paddings")
    pads, extra = _transposed_pads(pad_mode, pad_list, effective, strides, paddings)
    y = t.op(
        "ConvTranspose",
        [channels_first(t, x, data_format), turned] + ([] if bias is None else [bias]),
        strides=strides,
        dilations=rates,
        group=group or t.shape(w)[0],
        pads=pads,
        output_padding=extra if any(extra) else None,
    )
    return restored(t, activated(t, y, activation_type), data_format)


def _transposed_pads(
    mode: Val, pad_list: Val, effective: list[int], strides: tuple[int, ...], extra: tuple[int, ...]
) -> tuple[list[int], list[int]]:
    """ONNX's pads and output_padding; 'same' makes the result stride times as large, plus extra."""
    kind = pad_mode(mode)
    if kind == "pad":
        return interleaved(ints(pad_list, "pad_list")), list(extra)
    if kind == "valid":
        return [0] * 4, list(extra)
    cut = [size - s - e for size, s, e in zip(effective, strides, extra, strict=True)]
    begins = [max(n, 0) // 2 for n in cut]
    ends = [max(n, 0) - b for n, b in zip(cut, begins, strict=True)]
    return [*begins, *ends], [max(-n, 0) for n in cut]


@op("MaxPoolFusion", "AvgPoolFusion")
def pool_fusion(
    t: Tape,
    x: Val,
    *,
    kernel_size: Val = (1, 1),
    strides: Val = (1, 1),
    pad: Val = (0, 0, 0, 0),
    pad_mode: Val = "pad",
    round_mode: int = 0,
    is_global: bool = False,
    count_include_pad: bool = False,
    data_format: Val = "NCHW",
    activation_type: int = 0,
) -> Val:
    """Windows are (h, w), pads (top, bottom, left, right); the mean leaves padding out."""
    is_mean = t.primitive == "AvgPoolFusion"
    x = channels_first(t, x, data_format)
    if is_global:
        y = t.op("GlobalAveragePool" if is_mean else "GlobalMaxPool", [x])
    else:
        y = t.op(
            "AveragePool" if is_mean else "MaxPool",
            [x],
            kernel_shape=ints(kernel_size, "kernel_size")[2 - t.rank(x) :],
            strides=ints(strides, "strides")[2 - t.rank(x) :],
            count_include_pad=int(count_include_pad) if is_mean else None,
            ceil_mode=int(round_mode) or None,
            **padding(t, pad_mode, None, pad),
        )
    return restored(t, activated(t, y, activation_type), data_format)


MAX_PIXELS = 2**28  # of a resized image; guess
_METHODS = {0: "linear", 1: "nearest", 2: "cubic"}
_COORDINATES = {0: "asymmetric", 1: "align_corners", 2: "half_pixel"}
_ROUNDING = {1: "round_prefer_floor", 2: "round_prefer_ceil", 3: "floor", 4: "ceil"}


@op("Resize")
def resize(
    t: Tape,
    x: Val,
    size: Val = None,
    *,
    method: int = 0,
    new_height: int = 0,
    new_width: int = 0,
    coordinate_transform_mode: int = 0,
    cubic_coeff: float = -0.75,
    nearest_mode: int = 0,
    exclude_outside: int = 0,
    preserve_aspect_ratio: bool = False,
    data_format: Val = "NCHW",
) -> Val:
    """To a size, or by factors when those are floats; given as attributes or as an input."""
    if method not in _METHODS or coordinate_transform_mode not in _COORDINATES:
        raise UnsupportedOpError(
            f"Resize of method {method}, coordinates {coordinate_transform_mode}, is not supported"
        )
    if preserve_aspect_ratio:
        raise UnsupportedOpError("Resize with preserve_aspect_ratio is not supported")
    if size is None and not (new_height and new_width):
        raise UnsupportedOpError("Resize without a size")
    bounded(new_height * new_width, "pixels", MAX_PIXELS)
    is_cubic = method == 2
    usual = 2 if coordinate_transform_mode == 1 else 3  # rounds half up, or down to the next
    wanted = (new_height, new_width) if size is None else size
    y = t.op(
        "Resize",
        [channels_first(t, x, data_format), None, None, _sizes(t, x, wanted, data_format)],
        mode=_METHODS[method],
        coordinate_transformation_mode=_COORDINATES[coordinate_transform_mode],
        nearest_mode=_ROUNDING.get(nearest_mode, _ROUNDING[usual]) if method == 1 else None,
        cubic_coeff_a=float(cubic_coeff or -0.75) if is_cubic else None,
        exclude_outside=int(exclude_outside) if is_cubic else None,
    )
    return restored(t, y, data_format)


def _sizes(t: Tape, x: Val, wanted: Val, data_format: Val) -> Val:
    """The sizes of the result, channels second."""
    is_last = layout(data_format) == "NHWC"
    shape = t.op("Shape", [x])
    batch, channels = (t.op("Gather", [shape, np.asarray([i])]) for i in (0, 3 if is_last else 1))
    old = t.op("Gather", [shape, np.asarray([1, 2] if is_last else [2, 3])])
    if isinstance(wanted, tuple | list):
        new = t.int64s(wanted)
    else:
        new = _new_sizes(t, wanted, old, slice(1, 3) if is_last else slice(2, 4))
    return t.op("Concat", [batch, channels, new], axis=0)


def _new_sizes(t: Tape, wanted: Val, old: Val, spatial: slice) -> Val:
    """(h, w) from a tensor of sizes or of factors, of all axes or of those two, or Caffe's zoom."""
    int64, count = np.dtype(np.int64), t.shape(wanted)[0] if t.rank(wanted) else 1
    if count not in (1, 2, 4):
        raise UnsupportedOpError(f"Resize with a size of {count} numbers is not supported")
    if count == 4:
        wanted = t.op("Slice", [wanted, [spatial.start], [spatial.stop]])
    if t.dtype(wanted).kind == "f":
        exact = t.op("Mul", [t.cast(old, t.dtype(wanted)), wanted])
        return t.cast(t.op("Floor", [t.op("Add", [exact, np.asarray(0.5, t.dtype(exact))])]), int64)
    if count > 1:
        return t.cast(wanted, int64)
    zoom = t.op("Reshape", [t.cast(wanted, int64), [1]])
    return t.op("Add", [t.op("Mul", [t.op("Sub", [old, [1]]), zoom]), [1]])
