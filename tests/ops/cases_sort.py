"""Rows for ops/sort.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.op_case import Case, K, S, numbers, truths

FLOAT, F16, I32, I64 = np.float32, np.float16, np.int32, np.int64
DISTINCT = np.random.default_rng(3).permutation(24).reshape(2, 3, 4).astype(FLOAT)
TIES = numbers(3, 7, low=0, high=3, dtype=I32)
NANS = np.array([[3, np.nan, 1, 2, 5], [4, 1, 3, 2, 9]], FLOAT)


def order(x: np.ndarray, axis: int, descending: bool = False, kind: Any = I64) -> Any:
    """(values, indices), equal ones in their order."""
    index = np.argsort(-x if descending else x, axis, kind="stable")
    return np.take_along_axis(x, index, axis), index.astype(kind)


def places_of(values: np.ndarray, places: np.ndarray, counts: np.ndarray, shape: Any) -> Any:
    """What np.unique gives; NumPy 1 flattens the places."""
    return values, places.reshape(shape), counts


def kth(x: np.ndarray, k: int, axis: int, keep: bool = False) -> Any:
    """The k-th smallest, counted from 0, and where it is."""
    found = tuple(np.take(v, [k], axis) for v in order(x, axis))
    return found if keep else tuple(np.squeeze(v, axis) for v in found)


ORDERS = [
    Case("TopK", [DISTINCT, K(2)],
         lambda x: (-np.sort(-x)[..., :2], np.argsort(-x)[..., :2].astype(I32)),
         attributes={"sorted": True}),
    Case("TopK", [DISTINCT.astype(I64), K(3)],
         lambda x: (-np.sort(-x)[..., :3], np.argsort(-x)[..., :3].astype(I32))),
    Case("TopK", [DISTINCT, K(np.array(1, I32))],
         lambda x: (x.max(-1, keepdims=True), x.argmax(-1, keepdims=True).astype(I32))),
    Case("NonZero", [np.array([[0, 1.5, 0], [2, 0, 3]], np.float32)], np.argwhere),
    Case("NonZero", [truths(3, 4, 2)], np.argwhere, dynamic=True),
    Case("TopK", [DISTINCT, S(2)], lambda x, k: (-np.sort(-x)[..., :k],
                                                 np.argsort(-x)[..., :k].astype(I32))),
    Case("TopkExt", [DISTINCT, K(2), K(1), K(True), K(True)],
         lambda x: (-np.sort(-x, 1)[:, :2], np.argsort(-x, 1)[:, :2]), dynamic=True),
    Case("TopkExt", [DISTINCT, K(2), K(0), K(False), K(True)], lambda x: order(x, 0)),
    Case("Sort", [TIES.astype(FLOAT)], lambda x: order(x, -1, kind=I32),
         attributes={"axis": -1, "descending": False}, dynamic=True),
    Case("Sort", [TIES], lambda x: order(x, 0, True, I32),
         attributes={"axis": 0, "descending": True}, dynamic=True),
    Case("SortExt", [TIES, K(1), K(True), K(True)], lambda x: order(x, 1, True)),
    Case("SortExt", [()], lambda x: (x, I64(0))),
    Case("ArgSort", [TIES, K(-1), K(False), K(True)], lambda x: order(x, 1)[1]),
    Case("Kthvalue", [DISTINCT, K(2), K(1), K(False)], lambda x: kth(x, 1, 1), dynamic=True),
    Case("Kthvalue", [DISTINCT, K(3), K(-1), K(True)], lambda x: kth(x, 2, 2, True)),
    Case("Kthvalue", [(), K(1), K(-1), K(False)], lambda x: (x, I64(0))),
    Case("NthElement", [DISTINCT, K(1)], lambda x: np.sort(x)[..., 1],
         attributes={"reverse": False}),
    Case("NthElement", [DISTINCT, K(np.array(1, I32))], lambda x: -np.sort(-x)[..., 1],
         attributes={"reverse": True}),
]  # fmt: skip

MEDIANS = [
    Case("Median", [DISTINCT], lambda x: kth(x, 1, 2), attributes={"axis": -1}, dynamic=True),
    Case("Median", [DISTINCT], lambda x: kth(x, 1, 1, True),
         attributes={"axis": 1, "keep_dims": True, "ignore_nan": False, "global_median": False}),
    Case("Median", [DISTINCT], lambda x: kth(x.ravel(), 11, 0), attributes={"global_median": True}),
    Case("Median", [TIES], lambda x: kth(x, 3, 1), attributes={"axis": 1}),
    Case("Median", [NANS], lambda x: (np.array([np.nan, 3], FLOAT), np.array([1, 2])),
         attributes={"axis": 1}),
    Case("Median", [NANS], lambda x: (np.array([2, 3], FLOAT), np.array([3, 2])),
         attributes={"axis": 1, "ignore_nan": True}),
    Case("MedianDim", [DISTINCT, K(0), K(True)], lambda x: kth(x, 0, 0, True), dynamic=True),
    Case("MedianExt", [DISTINCT], lambda x: np.sort(x.ravel())[11]),
]  # fmt: skip

RUNS = np.array([[1, 1, 2], [2, 1, 1]], FLOAT)
ROWS = np.array([[1, 2], [1, 2], [3, 4], [1, 2]], I64)

FOUND = [
    Case("NonZero", [np.array([[0, 1.5, 0], [2, 0, 3]], FLOAT)], np.argwhere),
    Case("NonZero", [truths(3, 4, 2)], np.argwhere, dynamic=True),
    Case("NonZeroExt", [truths(3, 4)], np.nonzero, dynamic=True),
    Case("Unique", [np.array([3, 1, 3, 2], I64)],
         lambda x: (np.array([3, 1, 2]), np.array([0, 1, 0, 2])), dynamic=True),
    Case("Unique", [np.array([3, 1, 3, 2], FLOAT)],
         lambda x: (np.array([3, 1, 2], FLOAT), np.array([0, 1, 0, 2], I32))),
    Case("Unique2", [TIES.astype(FLOAT), K(True), K(True), K(True)],
         lambda x: places_of(*np.unique(x, return_inverse=True, return_counts=True), x.shape),
         dynamic=True),
    Case("UniqueDim", [ROWS, K(True), K(True), K(0)],
         lambda x: (np.array([[1, 2], [3, 4]]), np.array([0, 0, 1, 0]), np.array([3, 1]))),
    Case("UniqueConsecutive", [RUNS],
         lambda x: (np.array([1, 2, 1], FLOAT), np.array([[0, 0, 1], [1, 2, 2]]),
                    np.array([2, 2, 2])),
         {"return_inverse": True, "return_counts": True, "dim": None}, dynamic=True),
    Case("UniqueConsecutive", [ROWS],
         lambda x: (np.array([[1, 2], [3, 4], [1, 2]]), np.array([0, 0, 1, 2]),
                    np.array([2, 1, 1])),
         {"return_inverse": True, "return_counts": True, "dim": 0}),
]  # fmt: skip

EDGES = np.array([1, 3, 5, 5, 9], FLOAT)
ASKED = np.array([[3, 5], [0, 10]], FLOAT)
SORTED = np.sort(numbers(2, 5), 1)


def per_row(rows: np.ndarray, values: np.ndarray, side: Any = "left") -> np.ndarray:
    return np.stack([np.searchsorted(r, v, side) for r, v in zip(rows, values, strict=True)])


PLACES = [
    Case("SearchSorted", [EDGES, ASKED, K(None)], np.searchsorted,
         {"dtype": 35, "right": False}, dynamic=True),
    Case("SearchSorted", [EDGES, ASKED, K(None)],
         lambda e, v: np.searchsorted(e, v, "right").astype(I32), {"dtype": 34, "right": True}),
    Case("SearchSorted", [SORTED, (2, 3), K(None)], per_row, {"dtype": 35, "right": False},
         dynamic=True),
    Case("SearchSorted", [np.array([5, 1, 3], FLOAT), ASKED, K(np.array([1, 2, 0]))],
         lambda e, v: np.searchsorted(np.sort(e), v), {"dtype": 35, "right": False}),
    Case("LowerBound", [SORTED, (2, 3)], lambda r, v: per_row(r, v).astype(I32)),
    Case("UpperBound", [SORTED, SORTED], lambda r, v: per_row(r, v, "right"),
         attributes={"out_type": 35}),
    Case("Bucketize", [numbers(2, 3, low=0, high=6)],
         lambda x: np.digitize(x, [1, 3, 5]).astype(I32),
         attributes={"boundaries": (1.0, 3.0, 5.0)}, dynamic=True),
    Case("InTopK", [np.array([[1, 2, 2, 0], [3, 1, 2, 0]], FLOAT), np.array([1, 3], I32)],
         lambda x, target: np.array([True, False]), attributes={"k": 2}, dynamic=True),
]  # fmt: skip

WHOLE = numbers(20, low=-5, high=6, dtype=I32)
COUNTS = [
    Case("Bincount", [np.array([1, 4, 1, 2], I32), K(np.array(3, I32)), numbers(4)],
         lambda x, w: np.array([0, w[0] + w[2], w[3]], FLOAT), dynamic=True),
    Case("BincountExt", [np.array([1, 4, 1], I64), K(None), K(0)], np.bincount, dynamic=True),
    Case("BincountExt", [np.array([1, 4, 1], I32), numbers(3), K(7)],
         lambda x, w: np.bincount(x, w, 7).astype(FLOAT)),
    Case("Histogram", [numbers(40)], lambda x: np.histogram(x, 4, (-1, 1))[0].astype(I32),
         attributes={"bins": 4, "min": -1.0, "max": 1.0}, dynamic=True),
    Case("HistcExt", [numbers(40), K(5), K(0), K(0)],
         lambda x: np.histogram(x, 5)[0].astype(FLOAT), dynamic=True),
    Case("HistcExt", [np.full(3, 2, FLOAT), K(2), K(0), K(0)],
         lambda x: np.array([0, 3], FLOAT)),
    Case("HistcExt", [WHOLE, K(5), K(0), K(0)],
         lambda x: np.histogram(x, 5)[0].astype(I32), untyped=False),
]  # fmt: skip

CASES = [*ORDERS, *MEDIANS, *FOUND, *PLACES, *COUNTS]
