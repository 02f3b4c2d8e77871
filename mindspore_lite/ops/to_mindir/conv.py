"""Convolutions of ONNX as MindSpore primitives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mindspore_lite.ops.to_mindir.spatial import Ints, Window, joined, sizes, window, with_axis
from mindspore_lite.ops.to_mindir.table import back
from mindspore_lite.ops.to_mindir.writer import Made, MindirWriter, Operand

_NCHW, _NCDHW = 0, 14  # MindSpore's numbers of layouts


@back("Conv")
def conv(
    p: MindirWriter,
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
    p: MindirWriter, x: Any, w: Any, b: Operand | None, how: Window, group: int, results: Any
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
    p: MindirWriter, x: Any, w: Any, b: Operand | None, how: Window, group: int, results: Any
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


# --- the other direction --------------------------------------------------------------------------


@back("ConvTranspose")
def conv_transpose(
    p: MindirWriter,
    x: Operand,
    w: Operand,
    b: Operand | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Ints = None,
    group: int = 1,
    kernel_shape: Ints = None,
    output_padding: Ints = None,
    output_shape: Ints = None,
    pads: Ints = None,
    strides: Ints = None,
) -> Made:
    """More elements at the end are fewer pads there, and zeros where there are no pads."""
    how = window(kernel_shape or w.shape[2:], strides, dilations, pads)
    p.require(how.dims in (1, 2, 3), f"a convolution over {how.dims} axes")
    more = list(output_padding or [0] * how.dims)
    if output_shape or auto_pad.startswith("SAME"):
        how, more = _to_shape(x, how, more, output_shape, auto_pad)
    left = [max(m - e, 0) for m, e in zip(more, how.ends, strict=True)]
    ends = tuple(max(e - m, 0) for m, e in zip(more, how.ends, strict=True))
    how = Window(how.kernel, how.strides, how.dilations, how.begins, ends)
    results = w.shape[1]
    p.require(results is not None, "a number of channels known only at run time")
    made = _transposed(p, x, w, how, group, (results or 0) * group)
    if any(left):
        made = p.call("Pad", made, paddings=((0, 0), (0, 0), *((0, n) for n in left)))
    if b is None:
        return made
    if how.dims == 1:
        return p.call("Add", made, p.call("ExpandDims", b, 1))
    return p.call("BiasAdd", made, b, _NCHW if how.dims == 2 else _NCDHW)


def _to_shape(
    x: Operand, how: Window, more: Sequence[int], wanted: Ints, auto_pad: str
) -> tuple[Window, list[int]]:
    """The pads, and elements at the end, for a size.

    SAME asks for stride times the image's; ONNX Runtime makes less where the window is smaller than
    the stride.
    """
    reach = [d * (k - 1) + 1 for k, d in zip(how.kernel, how.dilations, strict=True)]
    if wanted:
        image = zip(x.fixed[2:], how.strides, list(wanted)[-how.dims :], strict=True)
        over = [(n - 1) * s - size for n, s, size in image]
    else:
        over = [-min(s, r + m) for s, r, m in zip(how.strides, reach, more, strict=True)]
    total = [o + m + r for o, m, r in zip(over, more, reach, strict=True)]
    pads = [max(n, 0) for n in total]
    begins = tuple(n // 2 if auto_pad == "SAME_UPPER" else n - n // 2 for n in pads)
    ends = tuple(n - b for n, b in zip(pads, begins, strict=True))
    further = [m + max(-n, 0) for m, n in zip(more, total, strict=True)]
    return Window(how.kernel, how.strides, how.dilations, begins, ends), further


def _transposed(
    p: MindirWriter, x: Operand, w: Operand, how: Window, group: int, results: int
) -> Made:
    if how.dims == 3:
        return p.call(
            "Conv3DTranspose",
            x,
            w,
            **{**_settings(how, group, results), "pad_mode": "pad"},
            in_channel=w.shape[0],
            format="NCDHW",
            stride=how.strides,
            strides=(1, 1, *how.strides),
            dilation=how.dilations,
            dilations=(1, 1, *how.dilations),
            output_padding=(0,) * 5,
        )
    batch, _, *image = sizes(p, x)
    to = [_whole(p, n, s) for n, s in zip(image, _spans(how), strict=True)]
    given = w.shape[0]
    if how.dims == 1:
        size = joined(p, [batch, results, 1, *to])
        flat = how.at_front()
        made: Made = with_axis(
            p, lambda x, w: _transposed2d(p, x, w, size, flat, group, given), x, w
        )
        return made
    return _transposed2d(p, x, w, joined(p, [batch, results, *to]), how, group, given)


def _spans(how: Window) -> list[tuple[int, int]]:
    """(factor, offset) between the size of each axis and that of the result."""
    each = zip(how.kernel, how.strides, how.dilations, how.begins, how.ends, strict=True)
    return [(s, d * (k - 1) + 1 - s - b - e) for k, s, d, b, e in each]


def _whole(p: MindirWriter, size: Any, span: tuple[int, int]) -> Any:
    factor, offset = span
    if isinstance(size, int):
        return size * factor + offset
    return p.call("ScalarAdd", p.call("ScalarMul", size, factor), offset)


def _transposed2d(
    p: MindirWriter, x: Any, w: Any, size: Any, how: Window, group: int, given: int | None
) -> Made:
    """MindSpore calls the channels of x those of the output: it is a convolution's gradient."""
    return p.call(
        "Conv2DTranspose",
        x,
        w,
        size,
        **{**_settings(how, group, given), "pad_mode": "PAD"},
        format="NCHW",
        stride=(1, 1, *how.strides),
        dilation=(1, 1, *how.dilations),
    )
