"""Convolutions and pooling."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops.arguments import axis_of, interleaved, ints, layout, pad_mode
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import MAX_TABLE, Tape, bounded


def in_nchw(t: Tape, x: Val, data_format: Val, run: Callable[[Val], Val]) -> Val:
    """Run a channels-first op, turning the axes of a channels-last tensor there and back."""
    if layout(data_format) != "NHWC":
        return run(x)
    y = run(t.op("Transpose", [x], perm=[0, 3, 1, 2]))
    return t.op("Transpose", [y], perm=[0, 2, 3, 1])


def padding(t: Tape, mode: Val, pad_list: Val, pad: Val = None) -> dict[str, Val]:
    """The ONNX attributes for MindSpore's pad mode; pads are (begin, end) per spatial axis.

    `pad_list` is what the exporter resolved; `pad`, what was asked for, counts in mode 'pad' only.
    """
    mode = pad_mode(mode)
    if mode == "valid":
        return {}
    if pad_list is None and mode == "pad":
        pad_list = pad
    resolved = ints(pad_list, "pad_list") if pad_list is not None else (-1,)
    # the pads stored for 'same' hold for the exported size alone
    if mode == "same" and (min(resolved) < 0 or not t.trust_dims):
        return {"auto_pad": "SAME_UPPER"}
    return {"pads": interleaved(resolved)}


@op("Conv2D")
def conv2d(
    t: Tape,
    x: Val,
    w: Val,
    *,
    pad_mode: Val = "valid",
    pad_list: Val = None,
    pad: Val = (0, 0, 0, 0),
    stride: Val = (1, 1),
    dilation: Val = (1, 1),
    group: int = 1,
    data_format: Val = "NCHW",
) -> Val:
    """Strides and dilations may come with a leading (1, 1); the bias is a node of its own."""
    if layout(data_format) == "NHWC":
        w = t.op("Transpose", [w], perm=[0, 3, 1, 2])
    return in_nchw(
        t,
        x,
        data_format,
        lambda x: t.op(
            "Conv",
            [x, w],
            strides=ints(stride, "stride")[-2:],
            dilations=ints(dilation, "dilation")[-2:],
            group=group,
            **padding(t, pad_mode, pad_list, pad),
        ),
    )


@op("Conv3D")
def conv3d(
    t: Tape,
    x: Val,
    w: Val,
    *,
    pad_mode: Val = "valid",
    pad_list: Val = None,
    pad: Val = (0,) * 6,
    strides: Val = (1, 1, 1),
    dilations: Val = (1, 1, 1),
    group: int = 1,
) -> Val:
    """Like Conv2D with (depth, height, width)."""
    return t.op(
        "Conv",
        [x, w],
        strides=ints(strides, "strides")[-3:],
        dilations=ints(dilations, "dilations")[-3:],
        group=group,
        **padding(t, pad_mode, pad_list, pad),
    )


@op("BiasAdd")
def bias_add(t: Tape, x: Val, bias: Val, *, data_format: Val = "NCHW") -> Val:
    """x + bias, the bias lying along the channel axis."""
    rank = t.rank(x)
    if layout(data_format) != "NHWC" and rank > 2:
        bias = t.op("Reshape", [bias, np.asarray([-1] + [1] * (rank - 2))])
    return t.op("Add", [x, bias])


def window(
    t: Tape, x: Val, op_type: str, kernel: Val, strides: Val, mode: Val, fmt: Val, **more: Val
) -> Val:
    """A 2-D pooling op with MindSpore's SAME or VALID padding."""
    first = 1 if layout(fmt) == "NHWC" and len(kernel) == 4 else -2
    sizes = slice(first, first + 2 or None)
    kind = pad_mode(mode)
    if kind == "pad":
        raise UnsupportedOpError("pooling with pad_mode 'pad' is not supported")
    return in_nchw(
        t,
        x,
        fmt,
        lambda x: t.op(
            op_type,
            [x],
            kernel_shape=ints(kernel, "kernel_size")[sizes],
            strides=ints(strides, "strides")[sizes],
            auto_pad="SAME_UPPER" if kind == "same" else None,
            **more,
        ),
    )


@op("MaxPool")
def max_pool(
    t: Tape,
    x: Val,
    *,
    kernel_size: Val,
    strides: Val,
    pad_mode: Val = "VALID",
    data_format: Val = "NCHW",
) -> Val:
    """Window sizes are (1, 1, h, w)."""
    return window(t, x, "MaxPool", kernel_size, strides, pad_mode, data_format)


@op("AvgPool")
def avg_pool(
    t: Tape,
    x: Val,
    *,
    kernel_size: Val,
    strides: Val,
    pad_mode: Val = "VALID",
    data_format: Val = "NCHW",
) -> Val:
    """The mean leaves padding out."""
    more = {"count_include_pad": 0}
    return window(t, x, "AveragePool", kernel_size, strides, pad_mode, data_format, **more)


@op("MaxPool3DWithArgmax")
def max_pool3d_argmax(
    t: Tape,
    x: Val,
    *,
    ksize: Val,
    strides: Val,
    pads: Val = (0, 0, 0),
    dilation: Val = (1, 1, 1),
    ceil_mode: Val = False,
) -> Val:
    """-> (y, flat index inside one channel); nn.MaxPool2d with explicit padding exports it."""
    y, index = t.op(
        "MaxPool",
        [x],
        outputs=2,
        kernel_shape=ints(ksize, "ksize"),
        strides=ints(strides, "strides"),
        pads=ints(pads, "pads") * 2,
        dilations=ints(dilation, "dilation"),
        ceil_mode=int(ceil_mode),
    )
    return y, _within_channel(t, x, index)


@op("MaxPoolWithArgmaxV2")
def max_pool_argmax(
    t: Tape,
    x: Val,
    *,
    kernel_size: Val,
    strides: Val = None,
    pads: Val = (0, 0),
    dilation: Val = (1, 1),
    ceil_mode: Val = False,
) -> Val:
    """-> (y, flat index inside one channel plane); sizes may be (h, w) or (1, 1, h, w)."""
    y, index = t.op(
        "MaxPool",
        [x],
        outputs=2,
        kernel_shape=ints(kernel_size, "kernel_size")[-2:],
        strides=ints(kernel_size if strides is None else strides, "strides")[-2:],
        pads=ints(pads, "pads")[-2:] * 2,
        dilations=ints(dilation, "dilation")[-2:],
        ceil_mode=int(ceil_mode),
    )
    return y, _within_channel(t, x, index)


def _within_channel(t: Tape, x: Val, index: Val) -> Val:
    """ONNX counts positions over the whole tensor, MindSpore inside one channel."""
    spatial = t.op("Shape", [x], start=2)
    return t.op("Mod", [index, t.op("ReduceProd", [spatial], keepdims=0)])


@op("AvgPool3D")
def avg_pool3d(
    t: Tape,
    x: Val,
    *,
    kernel_size: Val,
    strides: Val,
    pad_mode: Val = "VALID",
    pad_list: Val = (0,) * 6,
    ceil_mode: Val = False,
    count_include_pad: Val = True,
    divisor_override: int = 0,
) -> Val:
    """nn.AvgPool2d with explicit padding exports it, too."""
    if divisor_override:
        raise UnsupportedOpError("AvgPool3D with divisor_override is not supported")
    return t.op(
        "AveragePool",
        [x],
        kernel_shape=ints(kernel_size, "kernel_size")[-3:],
        strides=ints(strides, "strides")[-3:],
        ceil_mode=int(ceil_mode),
        count_include_pad=int(count_include_pad),
        **padding(t, pad_mode, pad_list),
    )


@op("AdaptiveAvgPool2D", "AdaptiveAvgPool2DExt")
def adaptive_avg_pool2d(t: Tape, x: Val, *, output_size: Val) -> Val:
    """The mean over a grid of output_size bins; None keeps that side as it is."""
    want = output_size if isinstance(output_size, tuple | list) else (output_size,) * 2
    if tuple(want) == (1, 1):
        rank = t.rank(x)
        return t.op("ReduceMean", [x, np.asarray([rank - 2, rank - 1])], keepdims=1)
    for axis, size in zip((-2, -1), want, strict=True):
        if size not in (None, -1):
            x = _bins(t, x, axis_of(t, x, axis), int(size))
    return x


def _bins(t: Tape, x: Val, axis: int, size: int) -> Val:
    """Bin i of one axis is the mean over [floor(i*n/size), ceil((i+1)*n/size))."""
    length = t.shape(x)[axis]
    if length is None:
        raise UnsupportedOpError(f"adaptive pooling to {size} needs a fixed size on axis {axis}")
    bounded(length * size, "weights of an adaptive pooling", MAX_TABLE)
    weights = np.zeros((length, size), np.float32)
    for i in range(size):
        start, end = i * length // size, -(-(i + 1) * length // size)
        weights[start:end, i] = 1 / (end - start)
    dtype, rank = t.dtype(x), t.rank(x)
    if axis == rank - 1:
        return t.op("MatMul", [x, weights.astype(dtype)])
    return t.op("MatMul", [weights.T.astype(dtype), x])  # axis is the one before the last
