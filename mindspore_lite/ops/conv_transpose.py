"""Transposed convolutions.

MindSpore names the size of the result; ONNX derives it from pads and output_padding. On one axis
the whole result has (n - 1) * stride + dilation * (kernel - 1) + 1 numbers: what is asked for
starts after the first pad and may end before the whole does, or after it with zeros.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops import arguments
from mindspore_lite.ops.arguments import elements, interleaved, ints, layout
from mindspore_lite.ops.spatial import (
    batched,
    both_sides,
    in_nchw,
    per_axis,
    reals_only,
)
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape


def conv_transposed(t: Tape, x: Val, w: Val, bias: Val = None, **attributes: Val) -> Val:
    """ONNX ConvTranspose."""
    reals_only(t, x)
    return t.op("ConvTranspose", [x, w] if bias is None else [x, w, bias], **attributes)


@op("Conv2DTranspose", "Conv2DBackpropInput")
def conv2d_transpose(
    t: Tape,
    x: Val,
    w: Val,
    input_sizes: Val,
    *,
    pad_mode: Val = "valid",
    pad_list: Val = None,
    pad: Val = (0, 0, 0, 0),
    stride: Val = (1, 1),
    dilation: Val = (1, 1),
    group: int = 1,
    data_format: Val = "NCHW",
) -> Val:
    """To a result of `input_sizes`; the weight is [channels of x, results / group, h, w]."""
    last = layout(data_format) == "NHWC"
    axes = slice(1, 3) if last else slice(2, 4)  # here NHWC turns strides and dilations, too
    strides, dilations = (
        v[axes] if len(v) == 4 else v for v in (ints(stride, "stride"), ints(dilation, "dilation"))
    )
    if last:
        w = t.op("Transpose", [w], perm=[0, 3, 1, 2])
    how = {"strides": strides, "dilations": dilations, "group": group}
    sizes = elements(t, input_sizes)[axes]
    mode, stored = arguments.pad_mode(pad_mode), ints(pad_list or pad, "pad_list")
    stored = stored * 4 if len(stored) == 1 else stored
    return in_nchw(t, x, data_format, lambda x: _to_size(t, x, w, sizes, mode, stored, **how))


def _to_size(
    t: Tape, x: Val, w: Val, sizes: list[Val], mode: str, pads: Sequence[int], **how: Val
) -> Val:
    strides, spans = how["strides"], _spans(t, w, how["dilations"])
    lengths: list[Val] = list(t.shape(x)[2:])
    firsts = {"same": None, "valid": (0, 0), "pad": pads[0::2]}[mode]  # None: half of all pads
    fixed = all(isinstance(n, int) for n in sizes)
    if fixed and not t.trust_dims:
        # the sizes hold for the exported shape alone: take those that nn's layers compute
        gaps = [k - s for k, s in zip(spans, strides, strict=True)]
        sums = [b + e for b, e in zip(pads[0::2], pads[1::2], strict=True)]
        over = {"same": gaps, "valid": [min(g, 0) for g in gaps], "pad": sums}[mode]
    elif fixed and None not in lengths:
        whole = [(n - 1) * s + k for n, s, k in zip(lengths, strides, spans, strict=True)]
        over = [a - b for a, b in zip(whole, sizes, strict=True)]
    else:
        return _cut(t, conv_transposed(t, x, w, **how), sizes, firsts)
    begins = [max(o, 0) // 2 for o in over] if firsts is None else firsts
    ends = [o - b for o, b in zip(over, begins, strict=True)]
    how["pads"] = [*begins, *(max(e, 0) for e in ends)]
    how["output_padding"] = [max(-e, 0) for e in ends]
    return conv_transposed(t, x, w, **how)


def _spans(t: Tape, w: Val, dilations: Sequence[int]) -> list[int]:
    """How far a window reaches on each axis."""
    kernel = t.shape(w)[2:]
    if None in kernel:
        raise UnsupportedOpError("the weight must have a fixed shape")
    return [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True) if k is not None]


def _cut(t: Tape, whole: Val, sizes: list[Val], firsts: Sequence[int] | None) -> Val:
    """The wanted part of the whole result, when sizes are known only at run time."""
    zero = np.asarray([0, 0])
    wanted = t.int64s(sizes)
    over = t.op("Sub", [t.op("Shape", [whole], start=2), wanted])
    if firsts is None:
        begins = t.op("Div", [t.op("Max", [over, zero]), np.asarray([2])])
    else:
        begins = np.asarray(firsts)
    part = t.op("Slice", [whole, begins, t.op("Add", [begins, wanted]), np.asarray([2, 3])])
    missing = t.op("Max", [t.op("Sub", [begins, over]), zero])
    edges = t.op("Concat", [np.zeros(6, np.int64), missing], axis=0)
    return t.op("Pad", [part, edges])


@op("Conv3DTranspose")
def conv3d_transpose(
    t: Tape,
    x: Val,
    w: Val,
    *,
    pad_mode: Val = "valid",
    pad_list: Val = (0,) * 6,
    strides: Val = (1, 1, 1),
    dilations: Val = (1, 1, 1),
    group: int = 1,
    output_padding: Val = (0, 0, 0),
) -> Val:
    """The stored pads are resolved for 'same', too: they do not depend on the size."""
    return conv_transposed(
        t,
        x,
        w,
        strides=per_axis(strides, 3, "strides"),
        dilations=per_axis(dilations, 3, "dilations"),
        group=group,
        pads=interleaved(ints(pad_list, "pad_list")),
        output_padding=per_axis(output_padding, 3, "output_padding"),
    )


@op("ConvTranspose2D")
def conv_transpose_ext(
    t: Tape,
    x: Val,
    w: Val,
    bias: Val = None,
    stride: Val = 1,
    padding: Val = 0,
    output_padding: Val = 0,
    groups: int = 1,
    dilation: Val = 1,
) -> Val:
    """A single number counts for every axis; the batch axis may be missing."""
    dims = t.rank(w) - 2
    how = {
        "strides": per_axis(stride, dims, "stride"),
        "dilations": per_axis(dilation, dims, "dilation"),
        "group": groups,
        "pads": both_sides(padding, dims),
        "output_padding": per_axis(output_padding, dims, "output_padding"),
    }
    return batched(t, x, dims, lambda x: conv_transposed(t, x, w, bias, **how))
