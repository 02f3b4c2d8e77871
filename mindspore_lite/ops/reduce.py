"""Reductions of axes to one value: sums, extremes and where they are, moments, norms."""

from __future__ import annotations

import math

import numpy as np

from mindspore_lite.ops.arguments import axis_of, ints, number
from mindspore_lite.ops.elementwise import as_float, is_float, square
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape, dtype_argument

_POOLS = {"ReduceMean": "GlobalAveragePool", "ReduceMax": "GlobalMaxPool"}
BOOL, INT32, INT64 = np.dtype(np.bool_), np.dtype(np.int32), np.dtype(np.int64)


def axes_of(t: Tape, x: Val, axis: Val) -> np.ndarray | None:
    """The axes to reduce, counted from the front; None for all of them."""
    axes = () if axis is None else ints(axis, "axis")
    found = np.asarray([axis_of(t, x, a) for a in axes], np.int64)
    return found if found.size and t.rank(x) else None


def reduced(t: Tape, onnx_name: str, x: Val, axis: Val, keep: Val) -> Val:
    """One of ONNX's reductions; no axes means all of them."""
    axes = axes_of(t, x, axis)
    if keep and onnx_name in _POOLS and _are_of_images(t, x, axes):
        return t.op(_POOLS[onnx_name], [x])
    return t.op(onnx_name, [x] if axes is None else [x, axes], keepdims=int(keep))


def _are_of_images(t: Tape, x: Val, axes: np.ndarray | None) -> bool:
    """Whether a pool says the same; ONNX Runtime keeps its layout of convolutions for it."""
    if axes is None or t.rank(x) < 4 or t.dtype(x) != np.float32:
        return False
    return sorted(axes.tolist()) == list(range(2, t.rank(x)))


def flat(t: Tape, x: Val) -> Val:
    """All elements in one row."""
    return t.op("Reshape", [x, np.asarray([-1])])


def count(t: Tape, x: Val, axis: Val, dtype: np.dtype) -> Val:
    """How many elements go into one result, as a number of this type."""
    axes = axes_of(t, x, axis)
    shape = t.shape(x)
    sizes = shape if axes is None else [shape[a] for a in axes]
    if all(size is not None for size in sizes):
        return np.asarray(math.prod(size or 0 for size in sizes), dtype)
    dims = t.op("Shape", [x])
    dims = dims if axes is None else t.op("Gather", [dims, axes])
    return t.cast(t.op("ReduceProd", [dims], keepdims=0), dtype)


# --- sums, products, extremes, truth --------------------------------------------------------------


@op(
    "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum",
    "ReduceMeanD", "ReduceMaxD", "ReduceMinD", "ReduceProdD", "ReduceSumD",
)  # fmt: skip
def reduce(
    t: Tape, x: Val, axis: Val = (), *, keep_dims: Val = False, skip_mode: Val = False
) -> Val:
    """Axis () is all axes, or none of them when skip_mode asks so."""
    if skip_mode and axis is not None and not ints(axis, "axis"):
        return x
    return reduced(t, t.primitive.removesuffix("D"), x, axis, keep_dims)


@op("ReduceAll", "ReduceAny", "ReduceAllD", "ReduceAnyD")
def reduce_bool(t: Tape, x: Val, axis: Val = (), *, keep_dims: Val = False) -> Val:
    """All or any of booleans, by way of 0 and 1."""
    numbers = t.cast(t.cast(x, BOOL), INT32)  # any number but zero counts as one
    name = "ReduceMin" if t.primitive.startswith("ReduceAll") else "ReduceMax"
    return t.cast(reduced(t, name, numbers, axis, keep_dims), BOOL)


@op("Any", "AnyExt")
def any_(t: Tape, x: Val, dim: Val = None, keepdim: Val = False) -> Val:
    """Whether any element holds."""
    return reduce_bool(t, x, dim, keep_dims=keepdim)


@op("SumExt", "MeanExt", "ProdExt", "Nansum")
def reduce_ext(t: Tape, x: Val, dim: Val = None, keepdim: Val = False, dtype: Val = None) -> Val:
    """Optionally computed in another type; integers add up to int64."""
    own = t.dtype(x)
    usual = own if is_float(own) or t.primitive == "MeanExt" else INT64
    wanted = t.result_dtype(np.empty(0, usual)) if dtype is None else dtype_argument(dtype).numpy
    if t.primitive == "Nansum" and is_float(own):
        x = t.op("Where", [t.op("IsNaN", [x]), np.asarray(0, own), x])
    name = "Reduce" + t.primitive.removesuffix("Ext").removeprefix("Nan").capitalize()
    return reduced(t, name, t.cast(x, wanted), dim, keepdim)


@op("Max", "Min")
def extreme(t: Tape, x: Val) -> Val:
    """The largest or smallest element of all."""
    return t.op(f"Reduce{t.primitive}", [x], keepdims=0)


@op("CountNonZero")
def count_non_zero(t: Tape, x: Val, dim: Val = None) -> Val:
    """How many elements are not zero, as int64 (int32 in older files)."""
    return t.cast(reduced(t, "ReduceSum", t.cast(t.cast(x, BOOL), INT64), dim, False),
                  t.result_dtype(np.empty(0, INT64)))  # fmt: skip


@op("LogSumExp")
def log_sum_exp(t: Tape, x: Val, dim: Val, keepdim: Val = False) -> Val:
    """log of the sum of exponentials."""
    return reduced(t, "ReduceLogSumExp", as_float(t, x), dim, keepdim)


# --- where the extremes are -----------------------------------------------------------------------


def extreme_with_index(t: Tape, x: Val, axis: Val, keep: Val, name: str) -> tuple[Val, Val]:
    """(value, index) along one axis; a 0-d tensor is its own extreme, at index 0."""
    along = axis_of(t, x, axis)
    if t.rank(x) == 0:
        return x, t.constant(np.asarray(0, np.int64))
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
    index = extreme_with_index(t, x, axis, False, t.primitive.removeprefix("Arg").capitalize())[1]
    return t.cast(index, dtype_argument(output_type).numpy)


@op("ArgminV2")
def argmin_v2(t: Tape, x: Val, axis: Val = -1) -> Val:
    """Index of the smallest along one axis, int32."""
    return t.cast(extreme_with_index(t, x, axis, False, "Min")[1], INT32)


@op("ArgMaxExt", "ArgMinExt")
def arg_extreme_ext(t: Tape, x: Val, dim: Val = None, keepdim: Val = False) -> Val:
    """Over the flattened tensor when dim is None."""
    name = t.primitive.removeprefix("Arg").removesuffix("Ext")
    if dim is None:
        return extreme_with_index(t, flat(t, x), 0, False, name)[1]
    return extreme_with_index(t, x, dim, keepdim, name)[1]


# --- moments and norms ----------------------------------------------------------------------------


def moments(t: Tape, x: Val, axis: Val, correction: int | float, keep: Val) -> tuple[Val, Val]:
    """(sum of squared deviations over the count less the correction, mean)."""
    axes, dtype = axes_of(t, x, axis), t.dtype(x)
    inputs = [x] if axes is None else [x, axes]
    mean = t.op("ReduceMean", inputs, keepdims=1)
    deviations = square(t, t.op("Sub", [x, mean]))
    total = reduced(t, "ReduceSum", deviations, axis, keep)
    size = count(t, x, axis, dtype)
    degrees = t.op("Sub", [size, np.asarray(correction, dtype)])
    degrees = t.op("Max", [degrees, np.asarray(0, dtype)])
    return t.op("Div", [total, degrees]), reduced(t, "ReduceMean", x, axis, keep)


@op("Var", "Std", "VarMean", "StdMean")
def spread(t: Tape, x: Val, dim: Val = None, correction: Val = 1, keepdim: Val = False) -> Val:
    """Variance or standard deviation; -> (that, mean) for the names that end so."""
    by = number(correction, "correction") if correction is not None else 1
    found, mean = moments(t, x, dim, by, keepdim)
    if t.primitive.startswith("Std"):
        found = t.op("Sqrt", [found])
    return (found, mean) if t.primitive.endswith("Mean") else found


@op("ReduceStd")
def reduce_std(
    t: Tape, x: Val, *, axis: Val = (), unbiased: Val = True, keep_dims: Val = False
) -> Val:
    """-> (standard deviation, mean)."""
    found, mean = moments(t, x, axis, int(unbiased), keep_dims)
    return t.op("Sqrt", [found]), mean


@op("Norm")
def norm(
    t: Tape, x: Val, p: Val = 2.0, dim: Val = None, keepdim: Val = False, dtype: Val = None
) -> Val:
    """The p-norm of a vector: (sum of |x|**p)**(1/p)."""
    x = as_float(t, x) if dtype is None else t.cast(x, dtype_argument(dtype).numpy)
    power = float(number(p, "p"))
    if power in (1.0, 2.0):
        return reduced(t, f"ReduceL{int(power)}", x, dim, keepdim)
    size = t.op("Abs", [x])
    if math.isinf(power):
        return reduced(t, "ReduceMax" if power > 0 else "ReduceMin", size, dim, keepdim)
    if power == 0:
        present = t.cast(t.cast(x, BOOL), t.dtype(x))
        return reduced(t, "ReduceSum", present, dim, keepdim)
    raised = t.op("Pow", [size, np.asarray(power, t.dtype(x))])
    total = reduced(t, "ReduceSum", raised, dim, keepdim)
    return t.op("Pow", [total, np.asarray(1 / power, t.dtype(x))])
