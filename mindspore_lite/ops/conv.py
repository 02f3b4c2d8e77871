"""Convolutions and the bias after them."""

from __future__ import annotations

import numpy as np

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops.arguments import layout, pad_mode
from mindspore_lite.ops.conv_transpose import conv_transpose_ext
from mindspore_lite.ops.spatial import (
    batched,
    beyond_same,
    both_sides,
    in_nchw,
    padded,
    padding,
    per_axis,
    reals_only,
    same_pads,
)
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape


def convolution(t: Tape, x: Val, w: Val, bias: Val = None, **attributes: Val) -> Val:
    """ONNX Conv, with MindSpore's 'same'."""
    reals_only(t, x)
    # a kernel of unknown size is left to ONNX Runtime, unless it is dilated
    known = None not in t.shape(w)[2:] or max(attributes["dilations"]) > 1
    if "auto_pad" in attributes and known and beyond_same(attributes, kernel := kernel_of(t, w)):
        del attributes["auto_pad"]
        window = kernel, attributes["strides"], attributes["dilations"]
        pads = same_pads(t, x, *window)
        if isinstance(pads, np.ndarray):
            attributes["pads"] = pads.tolist()
        else:
            x = padded(t, x, pads, len(window[0]))
    operands = [x, w] if bias is None else [x, w, bias]
    return t.op("Conv", operands, **attributes)


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
    how = {
        "strides": per_axis(stride, 2, "stride"),
        "dilations": per_axis(dilation, 2, "dilation"),
        "group": group,
        **padding(t, pad_mode, pad_list, pad),
    }
    return in_nchw(t, x, data_format, lambda x: convolution(t, x, w, **how))


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
    return convolution(
        t,
        x,
        w,
        strides=per_axis(strides, 3, "strides"),
        dilations=per_axis(dilations, 3, "dilations"),
        group=group,
        **padding(t, pad_mode, pad_list, pad),
    )


@op("DepthwiseConv2dNative")
def depthwise(
    t: Tape,
    x: Val,
    w: Val,
    *,
    pad_mode: Val = "valid",
    pad_list: Val = None,
    pad: Val = (0, 0, 0, 0),
    stride: Val = (1, 1),
    dilation: Val = (1, 1),
) -> Val:
    """Each channel by itself; the weight is [multiplier, channels, height, width]."""
    multiplier, channels, height, width = t.shape(w)
    if channels is None or multiplier is None:
        raise UnsupportedOpError("the number of channels must be known")
    w = t.op("Transpose", [w], perm=[1, 0, 2, 3])
    w = t.op("Reshape", [w, [channels * multiplier, 1, height or -1, width or -1]])
    return convolution(
        t,
        x,
        w,
        strides=per_axis(stride, 2, "stride"),
        dilations=per_axis(dilation, 2, "dilation"),
        group=channels,
        **padding(t, pad_mode, pad_list, pad),
    )


@op("Conv1DExt", "Conv2DExt", "Conv3DExt")
def conv_ext(
    t: Tape,
    x: Val,
    w: Val,
    bias: Val = None,
    stride: Val = 1,
    padding: Val = 0,
    dilation: Val = 1,
    groups: int = 1,
) -> Val:
    """A single number counts for every axis; the batch axis may be missing."""
    return any_convolution(t, x, w, bias, stride, padding, dilation, groups=groups)


@op("Conv1DPadding", "Conv2DPadding", "Conv3DPadding")
def conv_padding(
    t: Tape,
    x: Val,
    w: Val,
    bias: Val = None,
    stride: Val = 1,
    padding: Val = "valid",
    dilation: Val = 1,
    groups: int = 1,
) -> Val:
    """With 'same' or 'valid' instead of numbers."""
    return any_convolution(t, x, w, bias, stride, named(padding), dilation, groups=groups)


@op("Convolution")
def any_convolution(
    t: Tape,
    x: Val,
    w: Val,
    bias: Val = None,
    stride: Val = 1,
    padding: Val = 0,
    dilation: Val = 1,
    transposed: Val = False,
    output_padding: Val = 0,
    groups: int = 1,
) -> Val:
    """As many spatial axes as the weight has; `transposed` is the other direction."""
    dims = t.rank(w) - 2
    how: dict[str, Val] = {
        "strides": per_axis(stride, dims, "stride"),
        "dilations": per_axis(dilation, dims, "dilation"),
        "group": groups,
    }
    if transposed:
        return conv_transpose_ext(t, x, w, bias, stride, padding, output_padding, groups, dilation)
    if padding == "same":
        # the odd zero comes last, whatever the stride: not ONNX's rule
        need = [d * (k - 1) for d, k in zip(how["dilations"], kernel_of(t, w), strict=True)]
        how["pads"] = [*(n // 2 for n in need), *(n - n // 2 for n in need)]
    elif padding != "valid":
        how["pads"] = both_sides(padding, dims)
    return batched(t, x, dims, lambda x: convolution(t, x, w, bias, **how))


@op("ConvolutionStr")
def convolution_str(
    t: Tape,
    x: Val,
    w: Val,
    bias: Val = None,
    stride: Val = 1,
    padding: Val = "valid",
    dilation: Val = 1,
    transposed: Val = False,
    output_padding: Val = 0,
    groups: int = 1,
) -> Val:
    """With 'same' or 'valid' instead of numbers."""
    if transposed:
        raise UnsupportedOpError("ConvolutionStr in the transposed direction is not supported")
    return any_convolution(t, x, w, bias, stride, named(padding), dilation, groups=groups)


def named(mode: Val) -> str:
    """'same' or 'valid', from an enum or a word."""
    found = pad_mode(mode)
    if found == "pad":
        raise UnsupportedOpError(f"padding {mode!r} is not supported")
    return found


def kernel_of(t: Tape, w: Val) -> list[int]:
    """The window's sizes, which must be known."""
    sizes = t.shape(w)[2:]
    if None in sizes:
        raise UnsupportedOpError("padding 'same' needs a weight of fixed shape")
    return [int(s) for s in sizes if s is not None]


@op("ConvTbc")
def conv_tbc(t: Tape, x: Val, w: Val, bias: Val, pad: Val = 0) -> Val:
    """Over time, with x as [time, batch, channels] and w as [width, channels, results]."""
    x = t.op("Transpose", [x], perm=[1, 2, 0])
    w = t.op("Transpose", [w], perm=[2, 1, 0])
    y = convolution(t, x, w, bias, pads=both_sides(pad, 1, "pad"))
    return t.op("Transpose", [y], perm=[2, 0, 1])


@op("BiasAdd")
def bias_add(t: Tape, x: Val, bias: Val, *, data_format: Val = "NCHW") -> Val:
    """x + bias, the bias lying along the channel axis."""
    rank = t.rank(x)
    if layout(data_format) != "NHWC" and rank > 2:
        bias = t.op("Reshape", [bias, np.asarray([-1] + [1] * (rank - 2))])
    return t.op("Add", [x, bias])
