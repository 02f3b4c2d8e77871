"""Rows for ops/slice.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.op_case import Case, K, S, T, numbers, truths

F16, F32, F64 = np.float16, np.float32, np.float64
I8, I16, I32, I64 = np.int8, np.int16, np.int32, np.int64


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


def turned(x: np.ndarray, lengths: list[int], seq: int, batch: int) -> np.ndarray:
    y = np.moveaxis(x, (batch, seq), (0, 1)).copy()
    for row, n in zip(y, lengths, strict=True):
        row[:n] = row[:n][::-1].copy()
    return np.moveaxis(y, (0, 1), (batch, seq))


MORE = [
    Case("StridedSlice", [(6,), K((1,)), K((5,)), T(S(2))], lambda x, s: x[1:5:2]),
    Case("StridedSlice", [(6,), K((0,)), K((0,)), T(S(-2))], lambda x, s: x[::-2],
         attributes={"begin_mask": 1, "end_mask": 1}, dynamic=True),
    Case("StridedSlice", [(6,), K((0,)), K((0,)), T(S(2))], lambda x, s: x[::2],
         attributes={"begin_mask": 1, "end_mask": 1}),
    Case("Slice", [(4, 5), T(S(1), K(0)), T(K(2), S(-1))], lambda x, b, s: x[1:3], dynamic=True),
    Case("Slice", [(4, 5), np.array([1, 2], I64), np.array([2, 2], I64)],
         lambda x, b, s: x[1:3, 2:4]),
    Case("Slice", [(4,), T(S(1)), K((-1,))], lambda x, b: x[1:]),
    Case("SliceExt", [(4, 5), K(0), K(None), K(None), K(2)], lambda x: x[::2]),
    Case("Narrow", [(4, 5), K(1), S(-2), K(2)], lambda x, s: x[:, -2:], dynamic=True),
    Case("Narrow", [(4, 5), K(0), S(1), S(2)], lambda x, s, n: x[1:3]),
    Case("SelectExt", [(4, 5), K(0), S(-1)], lambda x, i: x[-1]),
    Case("SelectView", [(4, 5), K(2), K(0)], lambda x: x[2]),
    Case("ReverseSequence", [(2, 4), np.array([3, 2], I32)],
         lambda x, n: turned(x, [3, 2], 1, 0), attributes={"seq_dim": 1, "batch_dim": 0}),
    Case("ReverseSequence", [(3, 2, 4), np.array([3, 1], I64)],
         lambda x, n: turned(x, [3, 1], 2, 1), attributes={"seq_dim": 2, "batch_dim": 1},
         dynamic=True),
    Case("ReverseSequence", [numbers(4, 2, high=9, dtype=I32), K(np.array([4, 2], I64))],
         lambda x: turned(x, [4, 2], 0, 1), attributes={"seq_dim": 0, "batch_dim": 1}),
    Case("Roll", [(2, 5)], lambda x: np.roll(x, 7, 1), {"shifts": 7, "dims": 1}, dynamic=True),
    Case("Roll", [(3, 5)], lambda x: np.roll(x, (1, -2), (0, 1)),
         {"shifts": (1, -2), "dims": (0, -1)}, dynamic=True),
    Case("Roll", [(3, 5)], lambda x: np.roll(x, 4), {"shifts": (4,), "dims": None}, dynamic=True),
    Case("Roll", [(3, 5)], lambda x: np.roll(x, 4), {"shifts": (4,), "dims": ()}),
    Case("Roll", [(3, 5)], lambda x: x, {"shifts": (5,), "dims": (1,)}),
    Case("Roll", [(3, 5)], lambda x: np.roll(x, -1, 0), attributes={"shift": (-1,), "axis": (0,)}),
    Case("AsStrided", [(3, 4), K((2, 3)), K((4, 1)), K(1)],
         lambda x: x.reshape(-1)[[[1, 2, 3], [5, 6, 7]]], dynamic=True),
]  # fmt: skip

CASES = [*STRIDED, *SLICES, *MORE]
