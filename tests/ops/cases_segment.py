"""Rows for ops/segment.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.op_case import Case, K, S, numbers

F16, F32, F64 = np.float16, np.float32, np.float64
I8, I16, I32, I64 = np.int8, np.int16, np.int32, np.int64

IDS = np.array([0, 2, 0, -1, 2], I32)


def grouped(x: np.ndarray, ids: np.ndarray, count: int, fn: Any, empty: Any) -> np.ndarray:
    """One row per segment; `empty` where it has no element."""
    tail = x.shape[ids.ndim :]
    flat, numbers_ = x.reshape(-1, *tail), ids.reshape(-1)
    rows = [fn(flat[numbers_ == k], 0) if (numbers_ == k).any() else np.full(tail, empty)
            for k in range(count)]  # fmt: skip
    return np.stack(rows).astype(x.dtype)


LOW, HIGH = np.finfo(F32).min, np.finfo(F32).max

UNSORTED = [
    Case("UnsortedSegmentSum", [(5, 2), IDS, K(4)], lambda x, i: grouped(x, i, 4, np.sum, 0),
         dynamic=True),
    Case("UnsortedSegmentSum", [numbers(2, 3, high=9, dtype=I64), np.array([[0, 2, 0], [1, 1, 2]]),
                                S(3)], lambda x, i, n: grouped(x, i, 3, np.sum, 0)),
    Case("UnsortedSegmentSum", [numbers(5, 2, dtype=F16), K(IDS), K(np.array(3, I32))],
         lambda x: grouped(x, IDS, 3, np.sum, 0)),
    Case("UnsortedSegmentProd", [(5, 2), IDS, K(4)], lambda x, i: grouped(x, i, 4, np.prod, 1)),
    Case("UnsortedSegmentMax", [(5, 2), IDS, K(4)], lambda x, i: grouped(x, i, 4, np.max, LOW),
         dynamic=True),
    Case("UnsortedSegmentMin", [(5, 2), IDS, K(4)], lambda x, i: grouped(x, i, 4, np.min, HIGH)),
    Case("UnsortedSegmentMin", [numbers(5, high=9, dtype=I32), IDS, K(3)],
         lambda x, i: grouped(x, i, 3, np.min, np.iinfo(I32).max)),
]  # fmt: skip

SORTED_IDS = np.array([0, 0, 1, 3, 3], I32)

SORTED = [
    Case(f"Segment{name}", [shape, ids], lambda x, i, fn=fn, e=e: grouped(x, i, 4, fn, e),
         dynamic=True)
    for name, fn, e in (("Sum", np.sum, 0), ("Mean", np.mean, 0), ("Prod", np.prod, 1),
                        ("Max", np.max, 0), ("Min", np.min, 0))
    for shape, ids in (((5, 2), SORTED_IDS), ((5,), SORTED_IDS.astype(I64)))
]  # fmt: skip

OTHER_TYPES = [
    Case("SegmentMax", [numbers(5, low=1, high=9, dtype=dtype), SORTED_IDS],
         lambda x, i: grouped(x, i, 4, np.max, 0)) for dtype in (F16, I16, I32, F64)
]  # fmt: skip

CASES = [*UNSORTED, *SORTED, *OTHER_TYPES]
