"""Pooling of ONNX as MindSpore primitives."""

from __future__ import annotations

from typing import Any

import numpy as np

from mindspore_lite.ops.backwards.pen import Made, Operand, Pen
from mindspore_lite.ops.backwards.spatial import Ints, Window, window, with_axis
from mindspore_lite.ops.backwards.table import back

_NCHW, _SAME, _VALID = 0, 1, 2  # MindSpore's numbers of layouts and pad modes
_INT64 = 4  # its number for the type of indices


@back("MaxPool")
def max_pool(
    p: Pen,
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
        return _largest(p, x, how, bool(ceil_mode))
    p.require(storage_order == 0, "places counted by columns")
    p.require(how.is_even, "places with uneven pads")
    y, places = _with_places(p, x, how, bool(ceil_mode))
    batch, channels, *image = x.fixed
    planes = np.arange(batch * channels).reshape(batch, channels, *[1] * how.dims)
    return y, p.call("Add", places, planes * np.prod(image, dtype=np.int64))


def _largest(p: Pen, x: Any, how: Window, ceil: bool) -> Made:
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


def _max_pool3d(p: Pen, x: Any, how: Window, ceil: bool) -> Made:
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


def _with_places(p: Pen, x: Any, how: Window, ceil: bool) -> tuple[Made, Made]:
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
    p: Pen,
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
    return averages(p, x, how, bool(ceil_mode), bool(count_include_pad))


def averages(p: Pen, x: Any, how: Window, ceil: bool, counted: bool, divisor: int = 0) -> Made:
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
def global_average_pool(p: Pen, x: Operand) -> Made:
    """The mean over all image axes."""
    return p.call("ReduceMean", x, _image_axes(x), True)


@back("GlobalMaxPool")
def global_max_pool(p: Pen, x: Operand) -> Made:
    """The largest over all image axes."""
    return p.call("ReduceMax", x, _image_axes(x), True)


def _image_axes(x: Operand) -> tuple[int, ...]:
    return tuple(range(2, x.rank))
