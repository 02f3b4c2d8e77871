"""Rows for ops/cumulative.py."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from support.op_case import Case, K, numbers

I32, I64 = np.int32, np.int64
TIES = numbers(3, 7, low=0, high=3, dtype=I32)
ONCE = {"exclusive": False, "reverse": False}


def running(x: np.ndarray, axis: int, better: Callable[..., np.ndarray]) -> tuple[np.ndarray, ...]:
    """A loop along the axis: of equal elements the later one counts."""
    rows = np.moveaxis(x, axis, 0)
    values, places = rows.copy(), np.zeros(rows.shape, I64)
    for i in range(1, len(rows)):
        wins = better(rows[i], values[i - 1])
        values[i] = np.where(wins, rows[i], values[i - 1])
        places[i] = np.where(wins, i, places[i - 1])
    return np.moveaxis(values, 0, axis), np.moveaxis(places, 0, axis)


def exclusive(x: np.ndarray, axis: int, first: float) -> np.ndarray:
    start = np.full_like(np.take(x, [0], axis), first)
    return np.concatenate([start, np.delete(x, -1, axis)], axis)


def log_sums(x: np.ndarray, axis: int) -> np.ndarray:
    return np.logaddexp.accumulate(x, axis)


CASES = [
    Case("CumSum", [(2, 3), K(1)], lambda x: x.cumsum(1), ONCE),
    Case("CumSum", [(2, 5), K(-1)], lambda x: x[:, ::-1].cumsum(1)[:, ::-1],
         {"exclusive": False, "reverse": True}),
    Case("CumSum", [(5,), K(0)], lambda x: exclusive(x, 0, 0).cumsum(),
         {"exclusive": True, "reverse": False}, dynamic=True),
    Case("CumsumExt", [TIES, K(1), K(None)], lambda x: x.cumsum(1, dtype=I64)),
    Case("CumsumExt", [TIES, K(0), K(43)], lambda x: x.cumsum(0).astype(np.float32)),
    Case("CumsumExt", [(2, 3), K(-1)], lambda x: x.cumsum(1), dynamic=True),
    Case("CumsumExt", [(), K(0), K(None)], lambda x: x),
    Case("CumProd", [(2, 5, 3), K(1)], lambda x: x.cumprod(1), ONCE, dynamic=True),
    Case("CumProd", [(1, 5), K(0)], lambda x: x, ONCE),
    Case("CumProd", [numbers(9, low=1, high=4, dtype=I32), K(-1)],
         lambda x: x.cumprod(dtype=I32), ONCE),
    Case("CumProd", [(3, 5), K(1)], lambda x: x[:, ::-1].cumprod(1)[:, ::-1],
         {"exclusive": False, "reverse": True}, dynamic=True),
    Case("CumProd", [(3, 5), K(1)], lambda x: exclusive(x, 1, 1).cumprod(1),
         {"exclusive": True, "reverse": False}, dynamic=True),
    Case("CumProd", [(3, 5), K(0)], lambda x: exclusive(x[::-1], 0, 1).cumprod(0)[::-1],
         {"exclusive": True, "reverse": True}),
    Case("CumulativeLogsumexp", [(3, 5), K(np.array(1, I32))], lambda x: log_sums(x, 1), ONCE,
         dynamic=True),
    Case("CumulativeLogsumexp", [numbers(9, low=-80, high=80), K(0)], lambda x: log_sums(x, 0),
         ONCE),
    Case("CumulativeLogsumexp", [(4, 2), K(0)], lambda x: log_sums(x[::-1], 0)[::-1],
         {"exclusive": False, "reverse": True}),
    Case("Cummax", [(2, 5, 3)], lambda x: running(x, 1, np.greater_equal), {"axis": 1},
         dynamic=True),
    Case("Cummax", [TIES], lambda x: running(x, 1, np.greater_equal), {"axis": -1}),
    Case("Cummin", [TIES.astype(np.float32)],
         lambda x: (running(x, 0, np.less_equal)[0], running(x, 0, np.less_equal)[1].astype(I32)),
         {"axis": 0}, dynamic=True),
    Case("CumminExt", [TIES.astype(I64), K(1)], lambda x: running(x, 1, np.less_equal)),
]  # fmt: skip
