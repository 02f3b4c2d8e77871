"""Reductions of ONNX as MindSpore primitives."""

from __future__ import annotations

from typing import Any

import numpy as np

from mindspore_lite.ops.to_mindir.table import Writer, back
from mindspore_lite.ops.to_mindir.writer import Made, MindirWriter, Operand, type_id

_BOOL = {"ReduceMax": "ReduceAny", "ReduceMin": "ReduceAll"}


def axis_of(x: Operand, axis: int) -> int:
    """An axis counted from the front."""
    return axis % max(x.rank, 1)


def axes_of(x: Operand, axes: Operand | None, noop: int) -> tuple[int, ...] | None:
    """The axes to reduce: () for all, None where nothing is to be reduced."""
    found = () if axes is None else tuple(axis_of(x, axis) for axis in axes.numbers())
    return None if noop and not found else found


def reduced(p: MindirWriter, primitive: str, x: Any, axes: tuple[int, ...], keepdims: int) -> Made:
    """One of MindSpore's reductions; ReduceSum has a flag more."""
    more = (False,) if primitive == "ReduceSum" else ()
    return p.call(primitive, x, axes, bool(keepdims), *more)


def _plain(primitive: str) -> Writer:
    def write(
        p: MindirWriter,
        x: Operand,
        axes: Operand | None = None,
        *,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> Made:
        along = axes_of(x, axes, noop_with_empty_axes)
        if along is None:
            return p.call("TensorMove", x)
        name = _BOOL[primitive] if x.dtype == np.bool_ else primitive
        return reduced(p, name, x, along, keepdims)

    return write


for _name in ("ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum"):
    back(_name)(_plain(_name))


def _composed(before: str, after: str) -> Writer:
    """A sum of something, and something of the sum."""

    def write(
        p: MindirWriter,
        x: Operand,
        axes: Operand | None = None,
        *,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> Made:
        along = axes_of(x, axes, noop_with_empty_axes)
        made: Any = p.call(before, x) if before else x
        if along is not None:
            made = reduced(p, "ReduceSum", made, along, keepdims)
        if after:
            made = p.call(after, made)
        return made  # type: ignore[no-any-return]

    return write


for _name, _around in {
    "ReduceL1": ("Abs", ""),
    "ReduceL2": ("Square", "Sqrt"),
    "ReduceSumSquare": ("Square", ""),
    "ReduceLogSum": ("", "Log"),
}.items():
    back(_name)(_composed(*_around))


@back("ReduceLogSumExp")
def reduce_log_sum_exp(
    p: MindirWriter,
    x: Operand,
    axes: Operand | None = None,
    *,
    keepdims: int = 1,
    noop_with_empty_axes: int = 0,
) -> Made:
    """The largest number is taken out before, so that nothing overflows."""
    along = axes_of(x, axes, noop_with_empty_axes)
    if along is None:
        return p.call("TensorMove", x)
    largest = reduced(p, "ReduceMax", x, along, 1)
    zero = np.zeros((), x.dtype)  # for an infinite one, less which nothing would be left but NaN
    largest = p.call("Select", p.call("IsFinite", largest), largest, zero)
    total = reduced(p, "ReduceSum", p.call("Exp", p.call("Sub", x, largest)), along, 1)
    found = p.call("Add", p.call("Log", total), largest)
    if keepdims or x.rank == 0:
        return found
    return p.call("Squeeze", found, along or tuple(range(x.rank)))


# --- where the extremes are -----------------------------------------------------------------------


def _extreme(primitive: str) -> Writer:
    def write(
        p: MindirWriter, x: Operand, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0
    ) -> Made:
        along = axis_of(x, axis)
        source: Any = x
        if select_last_index:
            source = p.call("ReverseV2", x, (along,))
        found = p.call(primitive, source, along, type_id(np.dtype(np.int64)))
        if select_last_index:
            found = p.call("Sub", _last(p, x, along), found)
        return p.call("ExpandDims", found, along) if keepdims else found

    return write


def _last(p: MindirWriter, x: Operand, axis: int) -> Any:
    """The number of the last element of an axis."""
    size = x.shape[axis]
    if size is not None:
        return np.asarray(size - 1)
    sizes = p.call("TensorShape", x)
    return p.call("Sub", p.call("Gather", sizes, np.asarray(axis), 0, 0), np.asarray(1))


back("ArgMax")(_extreme("Argmax"))
back("ArgMin")(_extreme("Argmin"))


# --- running sums ---------------------------------------------------------------------------------


def _running(primitive: str) -> Writer:
    def write(
        p: MindirWriter, x: Operand, axis: Operand, *, exclusive: int = 0, reverse: int = 0
    ) -> Made:
        return p.call(primitive, x, axis_of(x, axis.number()), bool(exclusive), bool(reverse))

    return write


back("CumSum")(_running("CumSum"))
back("CumProd")(_running("CumProd"))
