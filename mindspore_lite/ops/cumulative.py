"""Running sums, products and extremes along an axis."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from mindspore_lite.ops.arguments import axis_of
from mindspore_lite.ops.arithmetic import log_add_exp
from mindspore_lite.ops.elementwise import is_float
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape, dtype_argument

INT64 = np.dtype(np.int64)
_LAST = np.iinfo(np.int64).max


def cut(t: Tape, x: Val, axis: int, start: int, end: int, step: int = 1) -> Val:
    """x[start:end:step] along one axis."""
    return t.op("Slice", [x, *(np.asarray([v], np.int64) for v in (start, end, axis, step))])


def shifted(t: Tape, x: Val, axis: int, by: int, neutral: np.ndarray) -> Val:
    """x moved on by some places along an axis, neutral numbers coming in."""
    pads = np.zeros(2 * t.rank(x), np.int64)  # for all axes: ONNX Runtime 1.31 gets Pad's own wrong
    pads[axis] = by  # when it moves a Transpose past it
    padded = t.op("Pad", [x, pads, neutral])
    return cut(t, padded, axis, 0, -by)


def running(
    t: Tape, x: Val, axis: int, combine: Callable[[Val, Val], Val], reduction: str, neutral: float
) -> Val:
    """All prefixes of an axis combined.

    Of a known length, in log2(n) steps that each double the reach: rounding is no worse than a
    loop's, and ONNX's Loop costs far more per element. Else by one reduction of all n prefixes.
    """
    zero = np.asarray(neutral, t.dtype(x))
    length = t.shape(x)[axis]
    if length is not None:
        reach = 1
        while reach < length:
            x = combine(x, shifted(t, x, axis, reach, zero))
            reach *= 2
        return x
    size = t.op("Shape", [x], start=axis, end=axis + 1)
    ones = t.op("ConstantOfShape", [t.op("Concat", [size, size], axis=0)],
                value=ir.Tensor(np.ones(1, np.int64)))  # fmt: skip
    lower = t.op("Trilu", [ones], upper=0)
    behind = t.rank(x) - axis - 1
    if behind:
        lower = t.op("Unsqueeze", [lower, np.arange(2, 2 + behind)])
    rows = t.op("Unsqueeze", [x, np.asarray([axis])])
    prefixes = t.op("Where", [t.cast(lower, np.dtype(np.bool_)), rows, zero])
    return t.op(reduction, [prefixes, np.asarray([axis + 1])], keepdims=0)


def directed(
    t: Tape, x: Val, axis: int, neutral: float, exclusive: Val, reverse: Val,
    compute: Callable[[Val], Val],
) -> Val:  # fmt: skip
    """A running computation from the other end, or without the element itself, if so asked."""
    back = -1, -_LAST, -1
    if reverse:
        x = cut(t, x, axis, *back)
    if exclusive:
        x = shifted(t, x, axis, 1, np.asarray(neutral, t.dtype(x)))
    found = compute(x)
    return cut(t, found, axis, *back) if reverse else found


@op("CumSum")
def cum_sum(t: Tape, x: Val, axis: Val, *, exclusive: Val = False, reverse: Val = False) -> Val:
    """Running sum along one axis."""
    along = np.asarray(axis_of(t, x, axis))
    return t.op("CumSum", [x, along], exclusive=int(exclusive), reverse=int(reverse))


@op("CumsumExt")
def cum_sum_ext(t: Tape, x: Val, dim: Val, dtype: Val = None) -> Val:
    """Running sum, optionally in another type; integers add up to int64."""
    own = t.dtype(x)
    usual = t.result_dtype(np.empty(0, own if is_float(own) else INT64))
    x = t.cast(x, usual if dtype is None else dtype_argument(dtype).numpy)
    if t.rank(x) == 0:
        return x
    return cum_sum(t, x, dim)


@op("CumProd")
def cum_prod(t: Tape, x: Val, axis: Val, *, exclusive: Val = False, reverse: Val = False) -> Val:
    """Running product along one axis."""
    along = axis_of(t, x, axis)

    def compute(x: Val) -> Val:
        return running(t, x, along, lambda a, b: t.op("Mul", [a, b]), "ReduceProd", 1)

    return directed(t, x, along, 1, exclusive, reverse, compute)


@op("CumulativeLogsumexp")
def cum_log_sum_exp(
    t: Tape, x: Val, axis: Val, *, exclusive: Val = False, reverse: Val = False
) -> Val:
    """Running log of the sum of exponentials."""
    along = axis_of(t, x, axis)
    smallest = float(np.finfo(t.dtype(x)).min)  # as MindSpore: -inf less -inf would be no number

    def compute(x: Val) -> Val:
        return running(t, x, along, lambda a, b: log_add_exp(t, a, b), "ReduceLogSumExp", smallest)

    return directed(t, x, along, smallest, exclusive, reverse, compute)


@op("Cummax", "Cummin", "CumminExt")
def cum_extreme(t: Tape, x: Val, *, axis: Val) -> Val:
    """-> (running extreme, where it is); of equal ones the last."""
    along, dtype = axis_of(t, x, axis), t.dtype(x)
    name = "Max" if t.primitive == "Cummax" else "Min"
    low, high = (-np.inf, np.inf) if is_float(dtype) else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    neutral = low if name == "Max" else high
    found = running(t, x, along, lambda a, b: t.op(name, [a, b]), f"Reduce{name}", neutral)
    # counted along the axis; of those that equal the running extreme, the last one so far
    size = t.op("Squeeze", [t.op("Shape", [x], start=along, end=along + 1)])
    places = t.op("Range", [np.asarray(0), size, np.asarray(1)])
    places = t.op("Reshape", [places, np.asarray([-1] + [1] * (t.rank(x) - along - 1))])
    marks = t.op("Where", [t.op("Equal", [x, found]), places, np.asarray(0)])
    index = running(t, marks, along, lambda a, b: t.op("Max", [a, b]), "ReduceMax", 0)
    return found, t.cast(index, np.dtype(np.int32) if t.primitive == "Cummin" else INT64)
