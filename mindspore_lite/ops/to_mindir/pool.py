"""Pooling of ONNX as MindSpore primitives."""

from __future__ import annotations

from typing import Any

import numpy as np

from mindspore_lite.ops.to_mindir.pad import padded
from mindspore_lite.ops.to_mindir.spatial import Ints, Window, window, with_axis
from mindspore_lite.ops.to_mindir.table import back
from mindspore_lite.ops.to_mindir.writer import MAX_MADE_UP, Made, MindirWriter, Operand

_NCHW, _SAME, _VALID = 0, 1, 2  # MindSpore's numbers of layouts and pad modes
_INT64 = 4  # its number for the type of indices
_WIDE = "pads of more than half a window"


@back("MaxPool")
def max_pool(
    p: MindirWriter,
    x: Operand,
    *,
    kernel_shape: Ints,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Ints = None,
    pads: Ints = None,
    storage_order: int = 0,
    strides: Ints = None,
) -> Any:
    """-> (largest of each window, its place in the whole tensor)."""
    how = window(kernel_shape or (), strides, dilations, pads, auto_pad)
    p.require(how.dims in (1, 2, 3), f"a pooling over {how.dims} axes")
    if not p.used(1):
        return _largest(p, *_narrow(p, x, how, bool(ceil_mode)), bool(ceil_mode))
    p.require(storage_order == 0, "places counted by columns")
    p.require(how.is_even, "places with uneven pads")
    p.require(not _is_wide(how), _WIDE)
    y, places = _with_places(p, x, how, bool(ceil_mode))
    batch, channels, *image = x.fixed
    p.require(batch * channels <= MAX_MADE_UP, "places in too many planes")
    planes = np.arange(batch * channels).reshape(batch, channels, *[1] * how.dims)
    return y, p.call("Add", places, planes * np.prod(image, dtype=np.int64))


def _narrow(p: MindirWriter, x: Operand, how: Window, ceil: bool) -> tuple[Any, Window]:
    """Pads of more than half a window, which MindSpore does not take, as elements of x."""
    if not _is_wide(how):
        return x, how
    p.require(not ceil, _WIDE)
    least = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    return padded_by(p, x, how, np.asarray(least, x.dtype))


def padded_by(p: MindirWriter, x: Any, how: Window, filler: np.ndarray) -> tuple[Made, Window]:
    """Elements of one's own for the pads, and the window without them."""
    pairs = [(0, 0), (0, 0), *zip(how.begins, how.ends, strict=True)]
    none = (0,) * how.dims
    bare = Window(how.kernel, how.strides, how.dilations, none, none)
    return padded(p, x, pairs, filler=filler), bare


def _is_wide(how: Window) -> bool:
    return any(2 * max(b, e) > k for k, b, e in zip(how.kernel, how.begins, how.ends, strict=True))


def _largest(p: MindirWriter, x: Any, how: Window, ceil: bool) -> Made:
    if how.dims == 1:
        made: Made = with_axis(p, lambda x: _largest(p, x, how.at_front(), ceil), x)
        return made
    if how.is_dilated:
        p.require(how.is_even, "dilations with uneven pads")
        return _with_places(p, x, how, ceil)[0]
    if how.dims == 3:
        return _max_pool3d(p, x, how, ceil)
    if not ceil and (how.same or not how.is_padded):
        return p.call(
            "MaxPool",
            x,
            kernel_size=(1, 1, *how.kernel),
            strides=(1, 1, *how.strides),
            pad_mode="SAME" if how.same else "VALID",
            format="NCHW",
        )
    if how.is_even:
        return _with_places(p, x, how, ceil)[0]
    made = with_axis(p, lambda x: _max_pool3d(p, x, how.at_front(), ceil), x)
    return made


def _max_pool3d(p: MindirWriter, x: Any, how: Window, ceil: bool) -> Made:
    return p.call("MaxPool3D", x, ceil_mode=int(ceil), **_volume(how))


def _volume(how: Window) -> dict[str, Any]:
    """The attributes that the pools over volumes share."""
    return {
        "kernel_size": (1, 1, *how.kernel),
        "strides": (1, 1, *how.strides),
        "pad_mode": "SAME" if how.same else "PAD" if how.is_padded else "VALID",
        "pad_list": (0,) * 6 if how.same else how.pad_list,
        "format": "NCDHW",
    }


def _with_places(p: MindirWriter, x: Any, how: Window, ceil: bool) -> tuple[Made, Made]:
    """-> (largest, its place within its channel)."""
    if how.dims == 1:
        pair: tuple[Made, Made] = with_axis(
            p, lambda x: _with_places(p, x, how.at_front(), ceil), x
        )
        return pair
    if how.dims == 2:
        made = p.call(
            "MaxPoolWithArgmaxV2",
            x,
            kernel_size=(1, 1, *how.kernel),
            strides=(1, 1, *how.strides),
            pads=(1, 1, *how.begins),
            dilation=(1, 1, *how.dilations),
            ceil_mode=ceil,
            argmax_type=_INT64,
        )
    else:
        made = p.call(
            "MaxPool3DWithArgmax",
            x,
            ksize=how.kernel,
            strides=how.strides,
            pads=how.begins,
            dilation=how.dilations,
            ceil_mode=ceil,
            argmax_type="int64",
            format="NCDHW",
        )
    return p.item(made, 0), p.item(made, 1)


@back("AveragePool")
def average_pool(
    p: MindirWriter,
    x: Operand,
    *,
    kernel_shape: Ints,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Ints = None,
    pads: Ints = None,
    strides: Ints = None,
) -> Made:
    """The mean of each window, with or without its pads."""
    how = window(kernel_shape or (), strides, dilations, pads, auto_pad)
    p.require(how.dims in (1, 2, 3), f"a pooling over {how.dims} axes")
    p.require(not how.is_dilated, "dilations")
    p.require(not (how.same and count_include_pad), "SAME_UPPER with counted pads")
    if not _is_wide(how):
        return averages(p, x, how, bool(ceil_mode), bool(count_include_pad))
    p.require(count_include_pad and not ceil_mode, _WIDE)
    return averages(p, *padded_by(p, x, how, np.zeros((), x.dtype)), False, True)


def averages(
    p: MindirWriter, x: Any, how: Window, ceil: bool, counted: bool, divisor: int = 0
) -> Made:
    """Means of windows, or their sums over a divisor."""
    if how.dims == 1:
        made: Made = with_axis(
            p, lambda x: averages(p, x, how.at_front(), ceil, counted, divisor), x
        )
        return made
    if how.dims == 2 and not ceil and not divisor and (how.same or not how.is_padded):
        mode = _SAME if how.same else _VALID
        return p.call("AvgPool", x, how.kernel, how.strides, mode, _NCHW)
    if how.dims == 2:
        made = with_axis(p, lambda x: averages(p, x, how.at_front(), ceil, counted, divisor), x)
        return made
    return p.call(
        "AvgPool3D",
        x,
        **_volume(how),
        pad=(0,) * 6 if how.same else how.pad_list,
        ceil_mode=ceil,
        count_include_pad=counted,
        divisor_override=divisor,
    )


@back("GlobalAveragePool")
def global_average_pool(p: MindirWriter, x: Operand) -> Made:
    """The mean over all image axes."""
    return p.call("ReduceMean", x, _image_axes(x), True)


@back("GlobalMaxPool")
def global_max_pool(p: MindirWriter, x: Operand) -> Made:
    """The largest over all image axes."""
    return p.call("ReduceMax", x, _image_axes(x), True)


def _image_axes(x: Operand) -> tuple[int, ...]:
    return tuple(range(2, x.rank))


@back("GlobalLpPool")
def global_lp_pool(writer: MindirWriter, x: Operand, *, p: int = 2) -> Made:
    """The norm over all image axes."""
    axes = list(_image_axes(x))
    return writer.call("LpNorm", x, axis=axes, p=p, keep_dims=True, epsilon=0.0)


@back("LpPool")
def lp_pool(
    writer: MindirWriter,
    x: Operand,
    *,
    kernel_shape: Ints,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Ints = None,
    p: int = 2,
    pads: Ints = None,
    strides: Ints = None,
) -> Made:
    """The norm of each window, by sums of powers."""
    how = window(kernel_shape or (), strides, dilations, pads, auto_pad)
    writer.require(how.dims in (1, 2, 3), f"a pooling over {how.dims} axes")
    writer.require(not how.is_dilated, "dilations")
    writer.require(not how.same, "SAME_UPPER")
    order = np.asarray(p, x.dtype)
    powers = writer.call("Pow", writer.call("Abs", x), order)
    if _is_wide(how):
        writer.require(not ceil_mode, _WIDE)
        powers, how = padded_by(writer, powers, how, np.zeros((), x.dtype))
    sums = averages(writer, powers, how, bool(ceil_mode), counted=True, divisor=1)
    return writer.call("Pow", sums, np.asarray(1 / p, x.dtype))


@back("MaxUnpool")
def max_unpool(
    p: MindirWriter,
    x: Operand,
    places: Operand,
    output_shape: Operand | None = None,
    *,
    kernel_shape: Ints,
    pads: Ints = None,
    strides: Ints = None,
) -> Made:
    """ONNX counts places over the whole tensor, MindSpore within a channel."""
    how = window(kernel_shape or (), strides, None, pads)
    p.require(how.dims in (2, 3), f"a pooling over {how.dims} axes")
    p.require(output_shape is None, "output_shape")
    p.require(how.is_even, "uneven pads")
    image = zip(x.fixed[2:], how.kernel, how.strides, how.begins, strict=True)
    to = tuple((n - 1) * s + k - 2 * b for n, k, s, b in image)
    within = p.call("FloorMod", places, np.asarray(np.prod(to), np.int64))
    return p.call(
        "MaxUnpool2D" if how.dims == 2 else "MaxUnpool3D",
        x,
        within,
        ksize=(1, 1, *how.kernel),
        strides=(1, 1, *how.strides),
        pads=(0, 0, *how.begins),
        output_shape=(*x.fixed[:2], *to),
        format="NCHW" if how.dims == 2 else "NCDHW",
    )
