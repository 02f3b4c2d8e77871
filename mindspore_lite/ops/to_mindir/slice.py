"""Slices of ONNX as MindSpore's StridedSlice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mindspore_lite.ops.to_mindir.table import NoEquivalentError, back
from mindspore_lite.ops.to_mindir.writer import Made, MindirWriter, Operand

_FAR = 2**31 - 1  # what exporters write for 'to the end', or more
# below the first element ONNX takes that one then, MindSpore none
_BACKWARDS = "a start known only at run time that runs backwards"


@dataclass(frozen=True)
class Cut:
    """The stretch of one axis; None is an open end."""

    start: int | None = None
    stop: int | None = None
    step: int = 1


@back("Slice")
def slice_(
    p: MindirWriter,
    x: Operand,
    starts: Operand,
    ends: Operand,
    axes: Operand | None = None,
    steps: Operand | None = None,
) -> Made:
    """Some axes; the bounds may be known at run time only."""
    along = list(range(starts.fixed[0])) if axes is None else [a % x.rank for a in axes.numbers()]
    by = [1] * len(along) if steps is None else steps.numbers()
    if starts.const is None or ends.const is None:
        return _computed(p, x, starts, ends, along, by)
    cuts = [Cut() for _ in range(max(along, default=-1) + 1)]
    for axis, start, stop, step in zip(along, starts.numbers(), ends.numbers(), by, strict=True):
        cuts[axis] = _cut(x.shape[axis], start, stop, step)
    if not cuts:
        return p.call("TensorMove", x)
    begins, stops = [c.start for c in cuts], [c.stop for c in cuts]
    bounds = (tuple(v or 0 for v in begins), tuple(v or 0 for v in stops))
    masks = (_mask(begins), _mask(stops), 0, 0, 0)
    return p.call("StridedSlice", x, *bounds, tuple(c.step for c in cuts), *masks)


def _mask(bounds: list[int | None]) -> int:
    return sum(1 << k for k, value in enumerate(bounds) if value is None)


def _cut(size: int | None, start: int, stop: int, step: int) -> Cut:
    """Bounds that lie within the axis, as far as its size is known."""
    if size is None:
        open_start = start == (0 if step > 0 else -1) or _is_far(start, -step)
        if step < 0 and start < 0 and not open_start:
            raise NoEquivalentError(_BACKWARDS)
        return Cut(None if open_start else start, None if _is_far(stop, step) else stop, step)
    lowest, highest = (0, size) if step > 0 else (-1, size - 1)
    first, last = (v + size if v < 0 else v for v in (start, stop))
    first, last = min(max(first, 0), highest), min(max(last, lowest), highest)
    if not range(first, last, step):
        return Cut(0, 0)
    open_start = first == (0 if step > 0 else highest)
    open_stop = last == (size if step > 0 else -1)
    return Cut(None if open_start else first, None if open_stop else last, step)


def _is_far(bound: int, step: int) -> bool:
    """Whether a bound lies beyond any axis in the direction of the step."""
    return bound >= _FAR if step > 0 else bound <= -_FAR


def _computed(
    p: MindirWriter, x: Operand, starts: Operand, ends: Operand, axes: list[int], steps: list[int]
) -> Made:
    """Bounds from tensors; the axes without any are left whole."""
    p.require(all(step > 0 for step in steps), _BACKWARDS)
    count = max(axes) + 1
    places = [axes.index(axis) if axis in axes else None for axis in range(count)]
    begins, begin_mask = _bounds(p, starts, places, [-step for step in steps])
    stops, end_mask = _bounds(p, ends, places, steps)
    by = tuple(1 if k is None else steps[k] for k in places)
    return p.call("StridedSlice", x, begins, stops, by, begin_mask, end_mask, 0, 0, 0)


def _bounds(
    p: MindirWriter, bound: Operand, places: list[int | None], steps: list[int]
) -> tuple[Any, int]:
    """One bound for each axis, and the mask of those that are open in the direction of `steps`."""
    if bound.const is not None:
        held = bound.numbers()
        numbers = [None if k is None or _is_far(held[k], steps[k]) else held[k] for k in places]
        return tuple(v or 0 for v in numbers), _mask(numbers)
    count = sum(k is not None for k in places)
    source: Any = p.call("Reshape", bound, (count,)) if None in bound.shape else bound
    taken = p.call("TensorToTuple", source)
    if places == list(range(count)):
        return taken, 0
    items = [0 if k is None else p.item(taken, k) for k in places]
    return p.tuple(items), _mask(places)
