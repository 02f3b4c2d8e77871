"""converter_lite's arithmetic: matrix products, reductions, powers."""

from __future__ import annotations

import math

import numpy as np

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.mindir.records import TensorType
from mindspore_lite.ops.arguments import axis_of, ints, number, same_type
from mindspore_lite.ops.complex import imaginary_part, real_part
from mindspore_lite.ops.fourier import along_one_axis
from mindspore_lite.ops.lite_activation import activated
from mindspore_lite.ops.matmul import turned
from mindspore_lite.ops.reduce import reduced
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape, bounded


@op("MatMulFusion")
def mat_mul_fusion(
    t: Tape,
    a: Val,
    b: Val,
    bias: Val = None,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    activation_type: int = 0,
) -> Val:
    """a @ b + bias, then an activation."""
    a, b = same_type(t, t.promoted(a, b), a, b)
    is_flat = t.rank(a) == t.rank(b) == 2 and (bias is None or t.rank(bias) == 1)
    if is_flat and t.dtype(a).kind == "f":
        inputs = [a, b] if bias is None else [a, b, bias]
        y = t.op("Gemm", inputs, transA=int(transpose_a), transB=int(transpose_b))
    else:
        y = t.op("MatMul", [turned(t, a, transpose_a), turned(t, b, transpose_b)])
        y = y if bias is None else t.op("Add", [y, bias])
    return activated(t, y, activation_type)


@op("FullConnection")
def full_connection(
    t: Tape,
    x: Val,
    w: Val,
    bias: Val = None,
    *,
    use_axis: bool = False,
    axis: int = 1,
    activation_type: int = 0,
) -> Val:
    """x @ w.T + bias, the axes of x from `axis` on, or as many as w is wide, taken as one."""
    width = t.shape(w)[1]
    flat = x
    if t.rank(x) != 2 or (use_axis and axis_of(t, x, axis) != 1) or t.shape(x)[1] != width:
        flat = t.op("Reshape", [x, t.int64s([-1, _number_of(t, w, 1, width)])])
    y = t.op("Gemm", [flat, w] if bias is None else [flat, w, bias], transB=1)
    if use_axis and axis_of(t, x, axis) != 1:
        head = t.op("Shape", [x], end=axis_of(t, x, axis))
        y = t.op("Reshape", [y, t.op("Concat", [head, np.asarray([-1])], axis=0)])
    return activated(t, y, activation_type)


def _number_of(t: Tape, x: Val, axis: int, known: int | None) -> Val:
    return t.op("Shape", [x], start=axis, end=axis + 1) if known is None else known


@op("ScaleFusion")
def scale_fusion(
    t: Tape, x: Val, scale: Val, offset: Val = None, *, axis: int = -1, activation_type: int = 0
) -> Val:
    """x * scale + offset, the first axis of both lying along `axis` of x."""
    after = t.rank(x) - axis_of(t, x, axis) - t.rank(scale)
    y = t.op("Mul", [x, _with_axes_after(t, scale, after)])
    if offset is not None:
        y = t.op("Add", [y, _with_axes_after(t, offset, after)])
    return activated(t, y, activation_type)


def _with_axes_after(t: Tape, x: Val, count: int) -> Val:
    if count <= 0:
        return x
    rank = t.rank(x)
    return t.op("Unsqueeze", [x, np.arange(rank, rank + count)])


_REDUCTIONS = {
    0: "ReduceMean", 1: "ReduceMax", 2: "ReduceMin", 3: "ReduceProd", 4: "ReduceSum",
    5: "ReduceSumSquare", 6: "ReduceL1", 8: "ReduceL2", 9: "ReduceL1", 10: "ReduceLogSum",
    11: "ReduceLogSumExp",
}  # fmt: skip


@op("ReduceFusion")
def reduce_fusion(
    t: Tape,
    x: Val,
    axes: Val = (),
    *,
    mode: int = 0,
    keep_dims: bool = False,
    reduce_to_end: bool = False,
    coeff: float = 1.0,
) -> Val:
    """Over some axes, or from one axis to the last; only then does the factor count."""
    if reduce_to_end:
        first = axis_of(t, x, ints(axes, "axes")[0])
        axes, keep_dims = tuple(range(first, t.rank(x))), False
    if mode == 7:
        numbers = t.cast(x, np.dtype(np.int32))
        return t.cast(reduced(t, "ReduceMin", numbers, axes, keep_dims), np.dtype(np.bool_))
    if mode not in _REDUCTIONS:
        raise UnsupportedOpError(f"ReduceFusion of mode {mode} is not supported")
    y = reduced(t, _REDUCTIONS[mode], x, axes, keep_dims)
    if not reduce_to_end or abs(coeff) <= 1e-5 or coeff == 1:
        return y
    return t.op("Mul", [y, np.asarray(coeff, t.dtype(x))])


@op("ArgMaxFusion", "ArgMinFusion")
def arg_fusion(
    t: Tape,
    x: Val,
    *,
    axis: int = -1,
    top_k: int = 1,
    keep_dims: bool = False,
    out_max_value: bool = False,
) -> Val:
    """-> int32 index, or the value, or both; the best top_k of an axis, or one without its axis."""
    along, is_max = axis_of(t, x, axis), t.primitive == "ArgMaxFusion"
    if top_k == 1:
        name = "Max" if is_max else "Min"
        index = t.op(f"Arg{name}", [x], axis=along, keepdims=int(keep_dims))
        value = t.op(f"Reduce{name}", [x, np.asarray([along])], keepdims=int(keep_dims))
    else:
        count = np.asarray([top_k], np.int64)
        value, index = t.op("TopK", [x, count], outputs=2, axis=along, largest=int(is_max))
    index = t.cast(index, np.dtype(np.int32))
    if t.result is not None and not isinstance(t.result, TensorType):
        return index, value
    return value if out_max_value else index


@op("TopKFusion")
def top_k_fusion(
    t: Tape, x: Val, k: Val, *, axis: int = -1, largest: int = 1, sorted: bool = True
) -> Val:
    """-> (values, int32 indices)."""
    count = t.op("Reshape", [t.cast(k, np.dtype(np.int64)), np.asarray([1])])
    along = axis_of(t, x, axis)
    values, index = t.op(
        "TopK", [x, count], outputs=2, axis=along, largest=int(largest), sorted=int(sorted)
    )
    return values, t.cast(index, np.dtype(np.int32))


def _line(t: Tape, x: Val, scale: float, shift: float) -> Val:
    """scale * x + shift."""
    if scale != 1:
        x = t.op("Mul", [x, np.asarray(scale, t.dtype(x))])
    return t.op("Add", [x, np.asarray(shift, t.dtype(x))]) if shift else x


@op("PowFusion")
def pow_fusion(t: Tape, x: Val, y: Val, *, scale: float = 1.0, shift: float = 0.0) -> Val:
    """(scale * x + shift) ** y."""
    return t.op("Pow", [_line(t, x, scale, shift), t.cast(y, t.dtype(x))])


@op("ExpFusion")
def exp_fusion(
    t: Tape, x: Val, *, base: float = -1.0, scale: float = 1.0, shift: float = 0.0
) -> Val:
    """base ** (scale * x + shift); base -1 is e."""
    if base == -1:
        return t.op("Exp", [_line(t, x, scale, shift)])
    if base <= 0:
        raise UnsupportedOpError(f"ExpFusion to the base {base} is not supported")
    factor = math.log(base)
    return t.op("Exp", [_line(t, x, scale * factor, shift * factor)])


@op("Rfft")
def rfft(t: Tape, x: Val, *, fft_length: int = 0) -> Val:
    """The half of the spectrum that tells all of a real signal, along the last axis."""
    size = int(number(fft_length, "fft_length"))
    return along_one_axis(t, x, bounded(size, "points of a transform") if size else None)


op("FftReal")(real_part)
op("FftImag")(imaginary_part)
