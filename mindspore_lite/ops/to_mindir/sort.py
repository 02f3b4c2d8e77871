"""Orders and distinct values, as MindSpore primitives."""

from __future__ import annotations

from typing import Any

import numpy as np

from mindspore_lite.ops.to_mindir.elementwise import is_float
from mindspore_lite.ops.to_mindir.table import back
from mindspore_lite.ops.to_mindir.writer import Made, MindirWriter, Operand


@back("TopK")
def top_k(
    p: MindirWriter, x: Operand, k: Operand, *, axis: int = -1, largest: int = 1, sorted: int = 1
) -> tuple[Made, Made]:
    """MindSpore's takes the largest of the last axis, and numbers them in int32."""
    last, along = x.rank - 1, axis % x.rank
    order = list(range(x.rank))
    order[along], order[last] = last, along
    source: Any = x if along == last else p.call("Transpose", x, tuple(order))
    turn = "Neg" if is_float(x) else "Invert"  # either puts numbers into the opposite order
    source = source if largest else p.call(turn, source)
    count: Any = k.number() if k.const is not None else p.call("Reshape", k, ())
    found = p.call("TopK", source, count, sorted=bool(sorted))
    values, places = p.item(found, 0), p.cast(p.item(found, 1), np.int64)
    values = values if largest else p.call(turn, values)
    if along != last:
        values, places = (p.call("Transpose", v, tuple(order)) for v in (values, places))
    return values, places


@back("Unique")
def unique(
    p: MindirWriter, x: Operand, *, axis: int | None = None, sorted: int = 1
) -> tuple[Made, ...]:
    """Distinct elements in the order they come."""
    p.require(not sorted, "sorted values")
    p.require(axis is None, "rows of an axis")
    p.require(not (p.used(1) or p.used(3)), "places or counts of the distinct values")
    found = p.call("Unique", p.call("Reshape", x, (-1,)))
    first = p.item(found, 0)
    return first, first, p.cast(p.item(found, 1), np.int64), first
