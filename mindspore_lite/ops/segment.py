"""Reductions over the elements that share a segment number."""

from __future__ import annotations

import numpy as np

from mindspore_lite.ops.arguments import number
from mindspore_lite.ops.create import as_scalar, filled
from mindspore_lite.ops.scatter import scattered
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import MAX_TABLE, Tape, bounded, constant_of

_I64 = np.dtype(np.int64)
_HOWS = {"Sum": "add", "Mean": "add", "Prod": "mul", "Max": "max", "Min": "min"}


def neutral(dtype: np.dtype, how: str) -> np.ndarray:
    """What a segment holds before its first element."""
    if how in ("add", "mul"):
        return np.asarray(int(how == "mul"), dtype)
    limits = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    return np.asarray(limits.min if how == "max" else limits.max, dtype)


@op(*[f"UnsortedSegment{kind}" for kind in ("Sum", "Prod", "Max", "Min")])
def unsorted_segment(t: Tape, x: Val, segment_ids: Val, num_segments: Val) -> Val:
    """One row per segment; elements of negative segments are left out."""
    how, dtype = _HOWS[t.primitive.removeprefix("UnsortedSegment")], t.dtype(x)
    if constant_of(num_segments) is not None:
        bounded(int(number(num_segments, "num_segments")), "segments", MAX_TABLE)
    count = as_scalar(t, num_segments, _I64)
    ids = t.cast(segment_ids, _I64)
    # left-out elements go to a row behind the last one, which is cut off
    ids = t.op("Where", [t.op("Less", [ids, np.asarray(0)]), count, ids])
    rows = t.op("Reshape", [t.op("Add", [count, np.asarray(1)]), np.asarray([1])])
    tail = t.op("Shape", [x], start=t.rank(segment_ids))
    shape = t.op("Concat", [rows, tail], axis=0)
    blank = filled(t, shape, neutral(dtype, how), dtype)
    places = t.op("Unsqueeze", [ids, np.asarray([-1])])
    y = scattered(t, "ScatterND", blank, places, x, how)
    stop = t.op("Reshape", [count, np.asarray([1])])
    return t.op("Slice", [y, np.asarray([0]), stop, np.asarray([0])])


@op(*[f"Segment{kind}" for kind in _HOWS])
def sorted_segment(t: Tape, x: Val, segment_ids: Val) -> Val:
    """As many rows as the last segment says."""
    kind = t.primitive.removeprefix("Segment")
    how, dtype, ids = _HOWS[kind], t.dtype(x), t.cast(segment_ids, _I64)
    rows = t.op("Add", [t.op("Slice", [ids, np.asarray([-1]), np.asarray([2**62])]),
                        np.asarray([1])])  # fmt: skip
    shape = t.op("Concat", [rows, t.op("Shape", [x], start=1)], axis=0)
    places = t.op("Unsqueeze", [ids, np.asarray([-1])])
    y = scattered(t, "ScatterND", filled(t, shape, neutral(dtype, how), dtype), places, x, how)
    if kind in ("Sum", "Prod"):
        return y
    ones = filled(t, t.op("Shape", [ids]), 1, _I64)
    counts = scattered(t, "ScatterND", filled(t, rows, 0, _I64), places, ones, "add")
    column = np.asarray([-1] + [1] * (t.rank(x) - 1), np.int64)
    counts = t.op("Reshape", [counts, column])
    if kind == "Mean":
        least = t.op("Max", [counts, np.asarray(1)])
        return t.op("Div", [y, t.cast(least, dtype)])
    empty = t.op("Equal", [counts, np.asarray(0)])
    return t.op("Where", [empty, np.zeros((), dtype), y])
