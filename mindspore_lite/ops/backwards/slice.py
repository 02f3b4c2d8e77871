"""Slices of ONNX as MindSpore's StridedSlice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mindspore_lite.ops.backwards.pen import Made, Operand, Pen
from mindspore_lite.ops.backwards.table import back

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
    count = (
        len(axes.numbers())
        if axes is not None
        else (starts if ends.const is None else ends).fixed[0]
    )
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


def _computed(
    p: Pen, x: Operand, starts: Operand, ends: Operand, axes: list[int], steps: list[int]
) -> Made:
    """Bounds from tensors; the axes without any are left whole."""
    count = max(axes) + 1
    places = [axes.index(axis) if axis in axes else None for axis in range(count)]
    begins, begin_mask = _bounds(p, starts, places)
    stops, end_mask = _bounds(p, ends, places)
    by = tuple(1 if k is None else steps[k] for k in places)
    return p.call("StridedSlice", x, begins, stops, by, begin_mask, end_mask, 0, 0, 0)


def _bounds(p: Pen, bound: Operand, places: list[int | None]) -> tuple[Any, int]:
    """One bound for each axis, and the mask of those that are open."""
    if bound.const is not None:
        numbers = [None if k is None else bound.numbers()[k] for k in places]
        numbers = [None if v is not None and abs(v) >= _FAR else v for v in numbers]
        return tuple(v or 0 for v in numbers), _mask(numbers)
    count = sum(k is not None for k in places)
    source: Any = p.call("Reshape", bound, (count,)) if None in bound.shape else bound
    taken = p.call("TensorToTuple", source)
    if places == list(range(count)):
        return taken, 0
    items = [0 if k is None else p.item(taken, k) for k in places]
    return p.tuple(items), _mask(places)
