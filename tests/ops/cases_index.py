"""Rows for ops/index.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.op_case import Case, K, S, T, numbers, truths

F16, I32, I64 = np.float16, np.int32, np.int64


def strided(shape: Any, begin: Any, end: Any, strides: Any, fn: Any, /, **masks: int) -> Case:
    """A row of StridedSlice whose constants are tuples; unnamed masks are 0."""
    names = ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    assert masks.keys() <= set(names)
    init = {f"{name}_mask": masks.get(name, 0) for name in names}
    return Case("StridedSlice", [shape, K(begin), K(end), K(strides)], fn, init)


STRIDED = [
    strided((4, 5), (1, 2), (3, 5), (1, 1), lambda x: x[1:3, 2:5]),
    strided((4, 5), (1,), (3,), (1,), lambda x: x[1:3]),
    strided((4, 5), (0, 1), (4, 5), (2, 2), lambda x: x[::2, 1::2]),
    strided((4, 5), (-3, -2), (-1, 99), (1, 1), lambda x: x[-3:-1, -2:]),
    strided((6,), (4,), (0,), (-1,), lambda x: x[4:0:-1]),
    strided((6,), (4,), (0,), (-2,), lambda x: x[4:0:-2]),
    strided((6,), (0,), (0,), (-1,), lambda x: x[::-1], begin=1, end=1),
    strided((6,), (-2,), (0,), (-2,), lambda x: x[-2::-2], end=1),
    strided((6,), (3,), (0,), (1,), lambda x: x[3:], end=1),
    strided((6,), (3,), (5,), (1,), lambda x: x[:5], begin=1),
    strided((4, 5), (1, 0), (2, 0), (1, 1), lambda x: x[1, 0:0], shrink_axis=1),
    strided((4, 5), (-1, 1), (0, 3), (1, 1), lambda x: x[-1, 1:3], shrink_axis=1),
    strided((4, 5), (2, 3), (3, 4), (1, 1), lambda x: x[2, 3], shrink_axis=3),
    strided((4, 5), (-2, -1), (0, 0), (1, 1), lambda x: x[-2, -1], shrink_axis=3),
    strided((4, 5, 6), (0, 1), (0, 2), (1, 1), lambda x: x[..., 1], ellipsis=1, shrink_axis=2),
    strided((4, 5, 6), (1, 0, 2), (2, 0, 4), (1, 1, 1), lambda x: x[1:2, ..., 2:4], ellipsis=2),
    strided((4, 5), (0, 1), (0, 3), (1, 1), lambda x: x[None, 1:3], new_axis=1),
    strided((4, 5), (1, 0, 2), (2, 0, 4), (1, 1, 1), lambda x: x[1, None, 2:4],
            new_axis=2, shrink_axis=1),
    strided((4, 5), (0, 0), (0, 0), (1, 1), lambda x: x[..., None], ellipsis=1, new_axis=2),
    strided((4, 5, 6), (1, 0, 0), (2, 0, 3), (1, 1, 1), lambda x: x[1, :, 0:3],
            begin=2, end=2, shrink_axis=1),
    # bits beyond the entries are set by exporters and mean nothing
    strided((4, 5, 6), (1, 2), (3, 4), (1, 1), lambda x: x[1:3, 2:4], begin=252, end=252),
    strided((4, 5), (0, 0), (4, 5), (1, 1), lambda x: x),
    strided(numbers(4, high=9, dtype=I64), (1,), (3,), (1,), lambda x: x[1:3]),
    strided(truths(4), (1,), (3,), (1,), lambda x: x[1:3]),
    strided(numbers(4, dtype=F16), (1,), (4,), (2,), lambda x: x[1:4:2]),
    Case("StridedSlice", [(4, 5), T(S(1), K(0)), T(S(3), K(5)), K((1, 1))],
         lambda x, b, e: x[1:3]),
    Case("StridedSlice", [(4, 5), T(S(-1)), T(S(0)), K((1,))], lambda x, b, e: x[-1],
         attributes={"shrink_axis_mask": 1}),
    Case("StridedSlice", [(4, 5), T(S(2)), T(S(3)), K((1,))], lambda x, b, e: x[2],
         attributes={"shrink_axis_mask": 1}, dynamic=True),
    Case("StridedSlice", [(4, 5), K(np.array([1, 1], I64)), K(np.array([3, 4], I32)), K((1, 1))],
         lambda x: x[1:3, 1:4]),
    Case("StridedSlice", [(6,), np.array([1], I64), np.array([4], I64), K((2,))],
         lambda x, b, e: x[1:4:2]),
]  # fmt: skip

SLICES = [
    Case("Slice", [(4, 5), K((1, 2)), K((2, 3))], lambda x: x[1:3, 2:5], dynamic=True),
    Case("Slice", [(4, 5), K((1, 0)), K((-1, 5))], lambda x: x[1:]),
    Case("Slice", [(4, 5), K((0, 0)), K((-1, -1))], lambda x: x),
    Case("SliceExt", [(4, 5), K(1), K(1), K(4), K(2)], lambda x: x[:, 1:4:2], dynamic=True),
    Case("SliceExt", [(4, 5), K(-1), K(-2), K(99), K(1)], lambda x: x[:, -2:]),
    Case("SliceExt", [(4, 5), K(0), S(1), S(3), K(1)], lambda x, a, b: x[1:3]),
    Case("SliceExtView", [(4, 5), K(0), K(0), K(2), K(1)], lambda x: x[:2]),
    Case("Narrow", [(4, 5), K(1), K(1), K(3)], lambda x: x[:, 1:4]),
    Case("Narrow", [(4, 5), K(-1), K(-2), K(2)], lambda x: x[:, -2:]),
    Case("NarrowView", [(4, 5), K(0), K(2), K(1)], lambda x: x[2:3]),
    Case("SelectExt", [(4, 5), K(0), K(1)], lambda x: x[1], dynamic=True),
    Case("SelectExt", [(4, 5), K(1), K(-1)], lambda x: x[:, -1]),
    Case("SelectExtView", [(4, 5), K(-1), K(2)], lambda x: x[:, 2]),
    Case("ReverseV2", [(4, 5)], lambda x: x[::-1], {"axis": (0,)}),
    Case("ReverseV2", [(4, 5)], lambda x: x[::-1, ::-1], {"axis": (0, -1)}, dynamic=True),
    Case("ReverseV2", [numbers(5, high=9, dtype=I32)], lambda x: x[::-1], {"axis": [0]}),
]

ROWS = np.array([[0, 2], [1, 1]], I32)

GATHERS = [
    Case("Gather", [(3, 4), ROWS, K(0)], lambda x, i: x[i], {"batch_dims": 0}, dynamic=True),
    Case("Gather", [(3, 4), ROWS.astype(I64), K(-1)], lambda x, i: x[:, i]),
    Case("Gather", [(3, 4), np.array(-1, I32), K(1)], lambda x, i: x[:, -1]),
    Case("Gather", [(3, 4), ROWS.astype(np.uint8), K(0)], lambda x, i: x[i]),
    Case("Gather", [numbers(5, high=9, dtype=I64), K(np.array([1, 1], I32)), K(0)],
         lambda x: x[[1, 1]]),
    Case("Gather", [(3, 4), K(2), K(0)], lambda x: x[2]),
    Case("GatherV2", [(3, 4), ROWS, K(np.array(1, I64))], lambda x, i: x[:, i]),
    Case("GatherD", [(3, 2), K(0), np.array([[0, 1], [2, 0]], I64)],
         lambda x, i: np.take_along_axis(x, i, 0)),
    Case("GatherD", [(2, 3), K(-1), np.array([[0, 2], [-1, 0]], I32)],
         lambda x, i: np.take_along_axis(x, i, 1)),
    Case("GatherNd", [(3, 4), np.array([[0, 1], [2, 3]], I32)], lambda x, i: x[[0, 2], [1, 3]]),
    Case("GatherNd", [(3, 4), np.array([[0], [-1]], I64)], lambda x, i: x[[0, -1]]),
    Case("IndexSelect", [(3, 4), K(1), np.array([3, 0], I32)], lambda x, i: x[:, [3, 0]]),
]  # fmt: skip


def updated(x: np.ndarray, at: Any, new: np.ndarray) -> np.ndarray:
    y = x.copy()
    y[at] = new
    return y


def one_hot(i: np.ndarray, depth: int, on: Any, off: Any, axis: int = -1) -> np.ndarray:
    hit = i[..., None] == np.arange(depth)
    return np.moveaxis(np.where(hit, on, off), -1, axis)


SCATTERS = [
    Case("TensorScatterUpdate", [(3, 4), np.array([[0, 1], [2, 3]], I32), (2,)],
         lambda x, i, u: updated(x, ([0, 2], [1, 3]), u)),
    Case("TensorScatterUpdate", [(3, 4), np.array([[1]], I64), (1, 4)],
         lambda x, i, u: updated(x, [1], u)),
    Case("OneHot", [np.array([0, 2, 5], I32), K(3), K(np.array(1, np.float32)),
                    K(np.array(0, np.float32))],
         lambda i: one_hot(i, 3, np.float32(1), np.float32(0)), {"axis": -1}),
    Case("OneHot", [np.array([[0, -1], [2, 1]], I64), K(3), K(np.array(5, np.float32)),
                    K(np.array(-1, np.float32))],
         lambda i: one_hot(i, 3, np.float32(5), np.float32(-1), 1), {"axis": 1}),
    Case("OneHot", [np.array([1, 0], I32), K(2), K(np.array(1, I32)), K(np.array(0, I32))],
         lambda i: one_hot(i, 2, I32(1), I32(0), 0), {"axis": 0}),
]  # fmt: skip

CASES = [*STRIDED, *SLICES, *GATHERS, *SCATTERS]
