"""Reductions, sorting, searching for extremes."""

from __future__ import annotations

import numpy as np

from mindspore_lite.ops.arguments import axis_of, ints, number
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape, dtype_argument


def reduced(t: Tape, onnx_name: str, x: Val, axis: Val, keep: Val) -> Val:
    """One of ONNX's reductions; no axes means all of them."""
    axes = () if axis is None else ints(axis, "axis")
    inputs = [x, np.asarray([axis_of(t, x, a) for a in axes])] if axes else [x]
    return t.op(onnx_name, inputs, keepdims=int(keep))


@op("ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum")
def reduce(
    t: Tape, x: Val, axis: Val = (), *, keep_dims: Val = False, skip_mode: Val = False
) -> Val:
    """Axis () is all axes, or none of them when skip_mode asks so."""
    if skip_mode and axis is not None and not ints(axis, "axis"):
        return x
    return reduced(t, t.primitive, x, axis, keep_dims)


@op("ReduceAll", "ReduceAny")
def reduce_bool(t: Tape, x: Val, axis: Val = (), *, keep_dims: Val = False) -> Val:
    """All or any of booleans, by way of 0 and 1."""
    numbers = t.cast(x, np.dtype(np.int32))
    name = "ReduceMin" if t.primitive == "ReduceAll" else "ReduceMax"
    return t.cast(reduced(t, name, numbers, axis, keep_dims), np.dtype(np.bool_))


@op("SumExt", "MeanExt", "ProdExt")
def reduce_ext(t: Tape, x: Val, dim: Val = None, keepdim: Val = False, dtype: Val = None) -> Val:
    """Optionally computed in another type."""
    wanted = t.result_dtype(x) if dtype is None else dtype_argument(dtype).numpy
    name = "Reduce" + t.primitive.removesuffix("Ext")
    return reduced(t, name, t.cast(x, wanted), dim, keepdim)


@op("Max", "Min")
def extreme(t: Tape, x: Val) -> Val:
    """The largest or smallest element of all."""
    return t.op(f"Reduce{t.primitive}", [x], keepdims=0)


def extreme_with_index(t: Tape, x: Val, axis: Val, keep: Val, name: str) -> tuple[Val, Val]:
    """(value, index) along one axis."""
    along = axis_of(t, x, axis)
    index = t.op(f"Arg{name}", [x], axis=along, keepdims=int(keep))
    return t.op(f"Reduce{name}", [x, np.asarray([along])], keepdims=int(keep)), index


@op("MaxDim", "MinDim")
def extreme_dim(t: Tape, x: Val, dim: Val, keepdim: Val = False) -> Val:
    """-> (value, index)."""
    return extreme_with_index(t, x, dim, keepdim, t.primitive.removesuffix("Dim"))


@op("ArgMaxWithValue", "ArgMinWithValue")
def arg_with_value(t: Tape, x: Val, *, axis: Val = 0, keep_dims: Val = False) -> Val:
    """-> (index, value)."""
    name = t.primitive.removeprefix("Arg").removesuffix("WithValue")
    value, index = extreme_with_index(t, x, axis, keep_dims, name)
    return t.cast(index, t.result_dtype(index)), value


@op("Argmax", "Argmin")
def arg_extreme(t: Tape, x: Val, *, axis: Val = -1, output_type: Val = 34) -> Val:
    """Index along one axis, int32 unless said otherwise."""
    name = "ArgMax" if t.primitive == "Argmax" else "ArgMin"
    index = t.op(name, [x], axis=axis_of(t, x, axis), keepdims=0)
    return t.cast(index, dtype_argument(output_type).numpy)


@op("ArgMaxExt", "ArgMinExt")
def arg_extreme_ext(t: Tape, x: Val, dim: Val = None, keepdim: Val = False) -> Val:
    """Over the flattened tensor when dim is None."""
    name = t.primitive.removesuffix("Ext")
    if dim is None:
        flat = t.op("Reshape", [x, np.asarray([-1])])
        return t.op(name, [flat], axis=0, keepdims=0)
    return t.op(name, [x], axis=axis_of(t, x, dim), keepdims=int(keepdim))


@op("CumSum")
def cum_sum(t: Tape, x: Val, axis: Val, *, exclusive: Val = False, reverse: Val = False) -> Val:
    """Running sum along one axis."""
    along = np.asarray(axis_of(t, x, axis))
    return t.op("CumSum", [x, along], exclusive=int(exclusive), reverse=int(reverse))


@op("TopK")
def top_k(t: Tape, x: Val, k: Val, *, sorted: Val = True) -> Val:
    """-> (values, int32 indices) of the last axis."""
    count = np.asarray([number(k, "k")], np.int64)
    values, index = t.op("TopK", [x, count], outputs=2, axis=-1, sorted=int(sorted))
    return values, t.cast(index, np.dtype(np.int32))


@op("NonZero")
def non_zero(t: Tape, x: Val) -> Val:
    """Coordinates of the elements that are not zero, one row each."""
    return t.op("Transpose", [t.op("NonZero", [x])], perm=[1, 0])
