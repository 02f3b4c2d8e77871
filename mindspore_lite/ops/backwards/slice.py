"""Slices of ONNX as MindSpore's StridedSlice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mindspore_lite.ops.backwards.pen import Made, Operand, Pen
from mindspore_lite.ops.backwards.table import NoEquivalentError, back

_FAR = 2**31 - 1  # what exporters write for 'to the end', or more


@dataclass
class Cut:
    """The stretch of one axis; None is an open end."""

    start: int | None = None
    stop: int | None = None
    step: int = 1


@back("Slice")
def slice_(
    p: Pen,
    x: Operand,
    starts: Operand,
    ends: Operand,
    axes: Operand | None = None,
    steps: Operand | None = None,
) -> Made:
    """Some axes; the bounds may be known at run time only."""
    if starts.const is not None:
        count = len(starts.numbers())
    else:
        count = _length(starts)
    along = list(range(count)) if axes is None else [a % x.rank for a in axes.numbers()]
    by = [1] * count if steps is None else steps.numbers()
    if starts.const is None or ends.const is None:
        return _computed(p, x, starts, ends, along, by)
    cuts = [Cut() for _ in range(max(along, default=-1) + 1)]
    for axis, start, stop, step in zip(along, starts.numbers(), ends.numbers(), by, strict=True):
        cuts[axis] = _cut(x.shape[axis], start, stop, step)
    return cut(p, x, cuts)


def cut(p: Pen, x: Any, cuts: list[Cut]) -> Made:
    """The first axes cut to these stretches."""
    if not cuts:
        return p.call("TensorMove", x)
    begins, ends = ([getattr(c, name) for c in cuts] for name in ("start", "stop"))
    return p.call(
        "StridedSlice",
        x,
        tuple(v or 0 for v in begins),
        tuple(v or 0 for v in ends),
        tuple(c.step for c in cuts),
        _mask(begins),
        _mask(ends),
        0,
        0,
        0,
    )


def _mask(bounds: list[int | None]) -> int:
    return sum(1 << k for k, value in enumerate(bounds) if value is None)


def _cut(size: int | None, start: int, stop: int, step: int) -> Cut:
    """Bounds that lie within the axis, as far as its size is known."""
    if size is not None:
        first, last, _ = slice(start, stop, step).indices(size)
        open_start = first == (0 if step > 0 else size - 1)
        open_stop = last == (size if step > 0 else -1)
        return Cut(None if open_start else first, None if open_stop else last, step)
    if step > 0:
        return Cut(start or None, None if stop >= _FAR else stop, step)
    return Cut(
        None if start >= _FAR or start == -1 else start, None if stop <= -_FAR else stop, step
    )


def _length(x: Operand) -> int:
    (count,) = x.shape
    if count is None:
        raise NoEquivalentError("any number of bounds")
    return count


def _computed(
    p: Pen, x: Operand, starts: Operand, ends: Operand, axes: list[int], steps: list[int]
) -> Made:
    """Bounds of the named axes from tensors; the axes before them are left whole."""
    count = max(axes) + 1
    order = {axis: k for k, axis in enumerate(axes)}
    whole = sum(1 << axis for axis in range(count) if axis not in order)
    begins, stops = (_bounds(p, bound, order, count) for bound in (starts, ends))
    by = tuple(steps[order[axis]] if axis in order else 1 for axis in range(count))
    far = [] if ends.const is None else ends.numbers()
    for axis, k in order.items():
        if far and abs(far[k]) >= _FAR:
            whole_end = 1 << axis
            return p.call("StridedSlice", x, begins, stops, by, whole, whole | whole_end, 0, 0, 0)
    return p.call("StridedSlice", x, begins, stops, by, whole, whole, 0, 0, 0)


def _bounds(p: Pen, bound: Operand, order: dict[int, int], count: int) -> Any:
    """One bound for each axis, as an int64 tensor or as numbers."""
    if bound.const is not None:
        numbers = bound.numbers()
        return tuple(numbers[order[axis]] if axis in order else 0 for axis in range(count))
    wide: Any = bound if bound.dtype == np.int64 else p.cast(bound, np.int64)
    if list(order) == list(range(count)):
        return wide
    parts: list[Any] = []
    for axis in range(count):
        if axis not in order:
            parts.append(np.zeros(1, np.int64))
        elif len(order) == 1:
            parts.append(wide)
        else:
            parts.append(p.call("Gather", wide, np.asarray([order[axis]]), 0, 0))
    return p.call("Concat", p.tuple(parts), 0)
