"""Rows for ops/scatter.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.op_case import Case, K, S, T, numbers, truths

F16, F32, F64 = np.float16, np.float32, np.float64
I8, I16, I32, I64 = np.int8, np.int16, np.int32, np.int64


def updated(x: np.ndarray, at: Any, new: np.ndarray) -> np.ndarray:
    y = x.copy()
    y[at] = new
    return y


COORDINATES = [
    Case("TensorScatterUpdate", [(3, 4), np.array([[0, 1], [2, 3]], I32), (2,)],
         lambda x, i, u: updated(x, ([0, 2], [1, 3]), u)),
    Case("TensorScatterUpdate", [(3, 4), np.array([[1]], I64), (1, 4)],
         lambda x, i, u: updated(x, [1], u)),
    Case("TensorScatterUpdate", [truths(3), np.array([[0], [2]], I64), truths(2)],
         lambda x, i, u: updated(x, [0, 2], u)),
    Case("ScatterNd", [np.array([[0], [3], [0]], I32), (3, 2), K((4, 2))],
         lambda i, u: combined(np.zeros((4, 2), F32), i, u, np.add), dynamic=True),
    Case("ScatterNd", [np.array([[0, 1], [1, 2]], I64), numbers(2, high=9, dtype=I32),
                       T(S(2), S(3))],
         lambda i, u, s: combined(np.zeros((2, 3), I32), i, u, np.add)),
    Case("ScatterNd", [np.array([[1]], I64), numbers(1, 2, dtype=F16), np.array([2, 2], I64)],
         lambda i, u, s: combined(np.zeros((2, 2), F16), i, u, np.add)),
]  # fmt: skip


def combined(x: np.ndarray, i: np.ndarray, u: np.ndarray, how: Any) -> np.ndarray:
    """x with updates brought in one after the other; how is None for the last one to win."""
    y = x.copy()
    for at, new in zip(i.reshape(-1, i.shape[-1]), u.reshape(-1, *x.shape[i.shape[-1] :]),
                       strict=True):  # fmt: skip
        y[tuple(at)] = new if how is None else how(y[tuple(at)], new)
    return y


HOWS: dict[str, Any] = {"Update": None, "Add": np.add, "Sub": np.subtract, "Mul": np.multiply,
                        "Div": np.divide, "Max": np.maximum, "Min": np.minimum}  # fmt: skip
POSITIVE = numbers(3, 4, low=0.5, high=2)
SOURCE = numbers(3, low=0.5, high=2, seed=1)
PLACES = {True: np.array([[0, 1], [2, 3], [0, 1]], I32), False: np.array([[0, 1], [2, 3], [1, 1]])}
ROW_NUMBERS = np.array([2, 0], I32)

COMBINED = [
    *[Case(f"TensorScatter{name}", [POSITIVE, PLACES[how is not None], SOURCE],
           lambda x, i, u, how=how: combined(x, i, u, how), dynamic=True)
      for name, how in HOWS.items()],
    *[Case(f"ScatterNd{name}", [POSITIVE, PLACES[how is not None], SOURCE],
           lambda x, i, u, how=how: combined(x, i, u, how), attributes={"use_locking": False})
      for name, how in HOWS.items()],
    *[Case(f"Scatter{name}", [POSITIVE, ROW_NUMBERS, numbers(2, 4, low=0.5, seed=2)],
           lambda x, i, u, how=how: combined(x, i[:, None], u, how))
      for name, how in HOWS.items()],
    *[Case(f"TensorScatter{name}", [numbers(3, 4, low=4, high=9, dtype=dtype), PLACES[True],
                                    numbers(3, low=1, high=3, dtype=dtype)],
           lambda x, i, u, how=HOWS[name]: combined(x, i, u, how).astype(x.dtype))
      for name in ("Add", "Sub", "Max") for dtype in (F16, I32, np.uint8)],
]  # fmt: skip

AT = np.array([[0, 2], [1, 1]], I64)


def put(x: np.ndarray, i: np.ndarray, u: Any, axis: int, how: Any = None) -> np.ndarray:
    """x[..., i[p], ...] = u[p] for every place p."""
    y = x.copy()
    for place in np.ndindex(*i.shape):
        at = list(place)
        at[axis] = i[place]
        new = u[place] if isinstance(u, np.ndarray) else u
        y[tuple(at)] = new if how is None else how(y[tuple(at)], new)
    return y


ALONG = [
    Case("TensorScatterElements", [(2, 3), AT, (2, 2)], lambda x, i, u: put(x, i, u, 1),
         {"axis": 1, "reduce": 0}, dynamic=True),
    Case("TensorScatterElements", [(3, 2), AT, (2, 2)], lambda x, i, u: put(x, i, u, 0, np.add),
         attributes={"axis": 0, "reduce": "add"}),
    Case("Scatter", [(3, 3), K(0), AT, (2, 2), K(0)], lambda x, i, u: put(x, i, u, 0)),
    Case("Scatter", [(3, 3), K(-1), AT, (4, 3), K(1)], lambda x, i, u: put(x, i, u, 1, np.add),
         dynamic=True),
    Case("Scatter", [(), K(0), np.array(0, I64), (), K(0)], lambda x, i, u: u),
    Case("InplaceScatterSrc", [(3, 3), K(0), AT, (2, 2)], lambda x, i, u: put(x, i, u, 0)),
    Case("InplaceScatterSrcReduce", [(3, 3), K(0), AT, (2, 2), K(2)],
         lambda x, i, u: put(x, i, u, 0, np.multiply)),
    Case("ScatterValue", [(3, 3), K(1), AT, K(2.5), K(0)], lambda x, i: put(x, i, F32(2.5), 1),
         dynamic=True),
    Case("ScatterValue", [numbers(3, 3, high=9, dtype=I64), K(0), AT, K(2), K(1)],
         lambda x, i: put(x, i, 2, 0, np.add)),
    Case("InplaceScatterValue", [(3, 3), K(1), AT, K(2)], lambda x, i: put(x, i, F32(2), 1)),
    Case("InplaceScatterValueReduce", [(3, 3), K(1), AT, K(2.0), K("multiply")],
         lambda x, i: put(x, i, F32(2), 1, np.multiply)),
    Case("ScatterAddExt", [(3, 3), K(1), AT, (2, 2)], lambda x, i, u: put(x, i, u, 1, np.add)),
    Case("InplaceScatterAdd", [(3, 3), K(0), AT, (2, 2)],
         lambda x, i, u: put(x, i, u, 0, np.add)),
    Case("ScatterAddWithAxis", [(3, 3), AT, (2, 2)], lambda x, i, u: put(x, i, u, 1, np.add),
         attributes={"axis": 1}),
]  # fmt: skip


def added(x: np.ndarray, i: np.ndarray, u: np.ndarray, axis: int) -> np.ndarray:
    y = np.moveaxis(x.copy(), axis, 0)
    np.add.at(y, i, np.moveaxis(u, axis, 0))
    return np.moveaxis(y, 0, axis)


SLICES = [
    Case("IndexAdd", [(2, 3), np.array([2, 2], I32), (2, 2)], lambda x, i, u: added(x, i, u, 1),
         attributes={"axis": 1}, dynamic=True),
    Case("InplaceIndexAdd", [(3, 2), ROW_NUMBERS, (2, 2)], lambda x, i, u: added(x, i, u, 0),
         attributes={"axis": 0}),
    Case("IndexAddExt", [(2, 3), K(-1), ROW_NUMBERS, (2, 2), K(2)],
         lambda x, i, u: added(x, i, 2 * u, 1), dynamic=True),
    Case("IndexAddExt", [(2, 3), K(1), ROW_NUMBERS, (2, 2), K(1)],
         lambda x, i, u: added(x, i, u, 1)),
    Case("InplaceIndexAddExt", [(3,), K(0), ROW_NUMBERS, (2,), K(0.5)],
         lambda x, i, u: added(x, i, u / 2, 0)),
    Case("InplaceIndexCopy", [(3, 2), K(0), ROW_NUMBERS, (2, 2)],
         lambda x, i, u: updated(x, i, u)),
    Case("InplaceUpdateV2", [(3, 2), K(np.array([1], I32)), (1, 2)],
         lambda x, u: updated(x, [1], u)),
    Case("InplaceUpdateV2", [(3, 2), K((2, 0)), (2, 2)], lambda x, u: updated(x, [2, 0], u)),
    Case("IndexFill", [(2, 3), K(np.array(1, I32)), ROW_NUMBERS, K(np.array(4, F32))],
         lambda x, i: updated(x, (slice(None), i), F32(4)), dynamic=True),
    Case("IndexFill", [truths(3, 2), K(0), K(np.array(1, I32)), K(True)],
         lambda x: updated(x, [1], True)),
    Case("IndexFillScalar", [(3, 2), K(0), np.array([-1], I64), K(2)],
         lambda x, i: updated(x, i, F32(2))),
    Case("IndexFillTensor", [(3, 2), K(-1), np.array([1], I64), np.array(2, F32)],
         lambda x, i, v: updated(x, (slice(None), i), v)),
    Case("InplaceIndexFillScalar", [(3, 2), K(0), ROW_NUMBERS, K(2.0)],
         lambda x, i: updated(x, i, F32(2))),
    Case("InplaceIndexFillTensor", [(3, 2), K(0), ROW_NUMBERS, np.array(2, F32)],
         lambda x, i, v: updated(x, i, v)),
]  # fmt: skip

FIRST, SECOND = np.array([0, 1], I64), np.array([[2], [0]], I32)
NO_INDEX = K(np.zeros((0,) * 9, I64))


def gathered_up(x: np.ndarray, at: Any, new: np.ndarray) -> np.ndarray:
    y = x.copy()
    np.add.at(y, at, new)
    return y


def spread(x: np.ndarray, mask: np.ndarray, source: np.ndarray) -> np.ndarray:
    y = x.copy()
    wide = np.broadcast_to(mask, x.shape)
    y[wide] = source.reshape(-1)[: wide.sum()]
    return y


PUT = [
    Case("InplaceIndexPut", [(3, 4), T(FIRST, SECOND), (2, 2), K(False)],
         lambda x, i, v: updated(x, tuple(i), v), dynamic=True),
    Case("InplaceIndexPut", [(3, 4), T(FIRST), (), K(False)], lambda x, i, v: updated(x, i[0], v)),
    Case("InplaceIndexPut", [(2, 3, 4), T(NO_INDEX, FIRST), (2, 4), K(False)],
         lambda x, i, v: updated(x, (slice(None), i[0]), v), dynamic=True),
    Case("InplaceIndexPut", [(3, 4, 2), T(FIRST, NO_INDEX, FIRST), (2, 4), K(False)],
         lambda x, i, v: updated(x, (i[0], slice(None), i[1]), v), dynamic=True),
    Case("InplaceIndexPut", [(3, 4), T(truths(3, 4)), (), K(False)],
         lambda x, i, v: updated(x, i[0], v)),
    Case("InnerInplaceIndexPut", [(3, 4), T(np.array([0, 0], I64)), (2, 4), K(True)],
         lambda x, i, v: gathered_up(x, i[0], v)),
    Case("IndexPut", [(3, 4), (2,), T(FIRST, FIRST)], lambda x, v, i: updated(x, tuple(i), v),
         attributes={"accumulate": 0}),
    Case("IndexPut", [(3, 4), (2,), T(np.array([1, 1]), np.array([2, -2]))],
         lambda x, v, i: gathered_up(x, tuple(i), v), attributes={"accumulate": 1}),
    Case("InplacePut", [(3, 4), np.array([[11, 0]], I64), (1, 2), K(False)],
         lambda x, i, v: updated(x.reshape(-1), i, v).reshape(3, 4)),
    Case("InplacePut", [(3, 4), np.array([1, 1], I64), (2,), K(True)],
         lambda x, i, v: gathered_up(x.reshape(-1), i, v).reshape(3, 4), dynamic=True),
    Case("MaskedScatter", [(2, 3), truths(2, 3), (6,)], spread, dynamic=True),
    Case("MaskedScatter", [(2, 3), truths(3, seed=1), (2, 3)], spread),
    Case("InplaceMaskedScatter", [numbers(2, 3, high=9, dtype=I64), truths(2, 3),
                                  numbers(6, high=9, dtype=I64)], spread),
    Case("TensorCopySlices", [(5, 4), (2, 4), K((3, 0)), K((5, 4)), K((1, 1))],
         lambda x, v: updated(x, slice(3, 5), v), dynamic=True),
    Case("TensorCopySlices", [(5, 4), (4,), K((1,)), K((4,)), K((2,))],
         lambda x, v: updated(x, slice(1, 4, 2), v)),
]  # fmt: skip

CASES = [*COORDINATES, *COMBINED, *ALONG, *SLICES, *PUT]
