"""Convolutions of ONNX as MindSpore primitives."""

from __future__ import annotations

from typing import Any

from mindspore_lite.ops.backwards.pen import Made, Operand, Pen
from mindspore_lite.ops.backwards.spatial import Ints, Window, window, with_axis
from mindspore_lite.ops.backwards.table import back

_NCHW, _NCDHW = 0, 14  # MindSpore's numbers of layouts


@back("Conv")
def conv(
    p: Pen,
    x: Operand,
    w: Operand,
    b: Operand | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Ints = None,
    group: int = 1,
    kernel_shape: Ints = None,
    pads: Ints = None,
    strides: Ints = None,
) -> Made:
    """Over one axis it is Conv2D with one row."""
    found = window(kernel_shape or w.shape[2:], strides, dilations, pads, auto_pad)
    results = w.shape[0]
    p.require(results is not None, "a number of channels known only at run time")
    if found.dims == 1:
        how = found.at_front()
        made: Made = with_axis(p, lambda x, w: _conv2d(p, x, w, b, how, group, results), x, w)
        return made
    p.require(found.dims in (2, 3), f"a convolution over {found.dims} axes")
    return (_conv2d if found.dims == 2 else _conv3d)(p, x, w, b, found, group, results)


def _settings(how: Window, group: int, results: Any) -> dict[str, Any]:
    """The attributes that MindSpore's classes of convolutions write."""
    mode = "same" if how.same else "pad" if how.is_padded else "valid"
    given = (0,) * 2 * how.dims if how.same else how.pad_list
    return {
        "kernel_size": how.kernel, "mode": 1, "out_channel": results, "group": group,
        "groups": group, "pad_mode": mode, "pad": given, "pad_list": how.pad_list,
    }  # fmt: skip


def _conv2d(
    p: Pen, x: Any, w: Any, b: Operand | None, how: Window, group: int, results: Any
) -> Made:
    made = p.call(
        "Conv2D",
        x,
        w,
        **_settings(how, group, results),
        format="NCHW",
        stride=(1, 1, *how.strides),
        dilation=(1, 1, *how.dilations),
    )
    return made if b is None else p.call("BiasAdd", made, b, _NCHW)


def _conv3d(
    p: Pen, x: Any, w: Any, b: Operand | None, how: Window, group: int, results: Any
) -> Made:
    made = p.call(
        "Conv3D",
        x,
        w,
        **_settings(how, group, results),
        format="NCDHW",
        stride=how.strides,
        strides=(1, 1, *how.strides),
        dilation=how.dilations,
        dilations=(1, 1, *how.dilations),
        offset_x=0,
    )
    return made if b is None else p.call("BiasAdd", made, b, _NCDHW)
