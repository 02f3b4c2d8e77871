"""Rows for ops/reduce.py."""

from __future__ import annotations

import numpy as np
from support.op_case import Case, K, numbers, truths

F16, I32, I64 = np.float16, np.int32, np.int64
INTS = numbers(3, 4, low=-9, high=9, dtype=I32)
DISTINCT = np.random.default_rng(3).permutation(24).reshape(2, 3, 4).astype(np.float32)


PLAIN = [
    Case("ReduceSum", [(2, 3, 4), K((1,))], lambda x: x.sum(1), {"keep_dims": False},
         dynamic=True),
    Case("ReduceSum", [(2, 3, 4), K((0, -1))], lambda x: x.sum((0, 2), keepdims=True),
         {"keep_dims": True, "skip_mode": False}),
    Case("ReduceSum", [(2, 3), K(())], lambda x: x.sum(), {"keep_dims": False}),
    Case("ReduceSum", [(2, 3), K(())], lambda x: x, {"keep_dims": False, "skip_mode": True}),
    Case("ReduceSum", [(2, 3), K((0,))], lambda x: x.sum(0),
         {"keep_dims": False, "skip_mode": True}),
    Case("ReduceSum", [(2, 3)], lambda x: x.sum()),
    Case("ReduceSum", [(2, 3), K(None)], lambda x: x.sum(), {"keep_dims": False}),
    Case("ReduceSum", [INTS, K(1)], lambda x: x.sum(1, dtype=I32), {"keep_dims": False}),
    Case("ReduceSum", [(2, 3), K(np.array([0], I64))], lambda x: x.sum(0), {"keep_dims": False}),
    Case("ReduceMean", [(2, 3, 4, 4), K((2, 3))], lambda x: x.mean((2, 3), keepdims=True),
         {"keep_dims": True}, dynamic=True),
    Case("ReduceMean", [(2, 3), K(-1)], lambda x: x.mean(-1), {"keep_dims": False}),
    Case("ReduceMean", [numbers(2, 8, dtype=F16), K((1,))], lambda x: x.mean(1),
         {"keep_dims": False}),
    Case("ReduceMax", [(2, 3, 4), K((1,))], lambda x: x.max(1), {"keep_dims": False}),
    Case("ReduceMax", [INTS, K((0,))], lambda x: x.max(0), {"keep_dims": False}),
    Case("ReduceMin", [(2, 3, 4), K((-1, 0))], lambda x: x.min((0, 2)), {"keep_dims": False}),
    Case("ReduceMin", [INTS.astype(I64), K(())], lambda x: x.min(), {"keep_dims": False}),
    Case("ReduceProd", [(2, 3), K((1,))], lambda x: x.prod(1, keepdims=True),
         {"keep_dims": True}),
    Case("ReduceAll", [truths(4, 2), K((1,))], lambda x: x.all(1), {"keep_dims": False}),
    Case("ReduceAll", [truths(4, 2), K(None)], lambda x: x.all(), {"keep_dims": False}),
    Case("ReduceAny", [truths(4, 2), K((0,))], lambda x: x.any(0, keepdims=True),
         {"keep_dims": True}),
    Case("ReduceAny", [truths(4, 2), K(())], lambda x: x.any(), {"keep_dims": False}),
    Case("Max", [(2, 3)], np.max, dynamic=True),
    Case("Min", [(2, 3)], np.min),
    Case("Max", [INTS], np.max),
]  # fmt: skip

EXT = [
    Case("SumExt", [(2, 3), K(None), K(False), K(None)], np.sum),
    Case("SumExt", [(2, 3), K((1,)), K(True), K(None)], lambda x: x.sum(1, keepdims=True)),
    Case("SumExt", [numbers(2, 3, dtype=F16), K((0,)), K(False), K(43)],
         lambda x: x.astype(np.float32).sum(0)),
    Case("MeanExt", [(2, 3, 4), K((0, -1)), K(False), K(None)], lambda x: x.mean((0, 2))),
    Case("MeanExt", [INTS, K((1,)), K(False), K(43)], lambda x: x.mean(1, dtype=np.float32)),
    Case("ProdExt", [(2, 3), K(1), K(False), K(None)], lambda x: x.prod(1)),
    Case("ProdExt", [(2, 3), K(None), K(False), K(None)], np.prod),
    # a sum of int32 is declared int64
    Case("SumExt", [INTS, K((0,)), K(False), K(None)], lambda x: x.sum(0, dtype=I64),
         untyped=False),
]  # fmt: skip

EXTREMES = [
    Case("MaxDim", [DISTINCT, K(1), K(False)], lambda x: (x.max(1), x.argmax(1))),
    Case("MaxDim", [DISTINCT, K(-1), K(True)],
         lambda x: (x.max(-1, keepdims=True), x.argmax(-1, keepdims=True))),
    Case("MinDim", [DISTINCT, K(0), K(False)], lambda x: (x.min(0), x.argmin(0))),
    Case("ArgMaxWithValue", [DISTINCT], lambda x: (x.argmax(1), x.max(1)),
         {"axis": 1, "keep_dims": False}),
    Case("ArgMaxWithValue", [DISTINCT], lambda x: (x.argmax(0).astype(I32), x.max(0)),
         {"axis": 0, "keep_dims": False}, untyped=False),
    Case("ArgMinWithValue", [DISTINCT],
         lambda x: (x.argmin(-1, keepdims=True), x.min(-1, keepdims=True)),
         {"axis": -1, "keep_dims": True}),
    Case("Argmax", [DISTINCT], lambda x: x.argmax(-1).astype(I32)),
    Case("Argmax", [DISTINCT], lambda x: x.argmax(1), {"axis": 1, "output_type": 35}),
    Case("Argmin", [DISTINCT], lambda x: x.argmin(0).astype(I32), {"axis": 0, "output_type": 34}),
    Case("Argmax", [np.array([1, 5, 5, 2], np.float32)], lambda x: I32(1)),
    Case("ArgMaxExt", [DISTINCT, K(None), K(False)], np.argmax),
    Case("ArgMaxExt", [DISTINCT, K(-2), K(True)], lambda x: x.argmax(1, keepdims=True)),
    Case("ArgMinExt", [DISTINCT, K(2), K(False)], lambda x: x.argmin(2)),
]  # fmt: skip


def exclusive(x: np.ndarray, axis: int) -> np.ndarray:
    return np.cumsum(x, axis) - x


def reverse(x: np.ndarray, axis: int) -> np.ndarray:
    return np.flip(np.cumsum(np.flip(x, axis), axis), axis)


SEQUENCES = [
    Case("CumSum", [(2, 3), K(1)], lambda x: x.cumsum(1), {"exclusive": False, "reverse": False}),
    Case("CumSum", [(2, 3), K(-2)], lambda x: exclusive(x, 0),
         {"exclusive": True, "reverse": False}),
    Case("CumSum", [(2, 3), K(-1)], lambda x: reverse(x, 1),
         {"exclusive": False, "reverse": True}),
    Case("CumSum", [INTS, K(0)], lambda x: x.cumsum(0, dtype=I32)),
    Case("TopK", [DISTINCT, K(2)],
         lambda x: (-np.sort(-x)[..., :2], np.argsort(-x)[..., :2].astype(I32)),
         attributes={"sorted": True}),
    Case("TopK", [DISTINCT.astype(I64), K(3)],
         lambda x: (-np.sort(-x)[..., :3], np.argsort(-x)[..., :3].astype(I32))),
    Case("TopK", [DISTINCT, K(np.array(1, I32))],
         lambda x: (x.max(-1, keepdims=True), x.argmax(-1, keepdims=True).astype(I32))),
    Case("NonZero", [np.array([[0, 1.5, 0], [2, 0, 3]], np.float32)], np.argwhere),
    Case("NonZero", [truths(3, 4, 2)], np.argwhere, dynamic=True),
]  # fmt: skip

CASES = [*PLAIN, *EXT, *EXTREMES, *SEQUENCES]
