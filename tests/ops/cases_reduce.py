"""Rows for ops/reduce.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
    Case("ReduceMax", [(2, 3, 4, 4), K((3, 2))], lambda x: x.max((2, 3), keepdims=True),
         {"keep_dims": True}, dynamic=True),
    Case("ReduceMean", [(2, 3, 4, 4), K((1, 2))], lambda x: x.mean((1, 2), keepdims=True),
         {"keep_dims": True}),
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
    # integers add up to int64
    Case("SumExt", [INTS, K((0,)), K(False), K(None)], lambda x: x.sum(0, dtype=I64)),
    Case("ProdExt", [INTS, K(1), K(False), K(None)], lambda x: x.prod(1, dtype=I64)),
    Case("SumExt", [truths(3, 2), K(None), K(False), K(None)], lambda x: np.asarray(x.sum())),
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


def spread(fn: Callable[..., np.ndarray], correction: int, axis: Any, keep: bool = False) -> Any:
    """Variance or deviation, and the mean."""

    def compute(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = fn(x, axis=axis, ddof=correction, keepdims=keep)
        return np.asarray(found, x.dtype), np.asarray(x.mean(axis=axis, keepdims=keep), x.dtype)

    return compute


NANS = np.array([[1, np.nan, 2], [np.nan, 3, 4]], np.float32)
MOMENTS = [
    Case("ReduceStd", [(2, 3, 4)], spread(np.std, 1, (1,)),
         {"axis": (1,), "unbiased": True, "keep_dims": False}, dynamic=True),
    Case("ReduceStd", [(2, 3, 4)], spread(np.std, 0, (0, 2), True),
         {"axis": (0, -1), "unbiased": False, "keep_dims": True}),
    Case("ReduceStd", [(2, 3)], spread(np.std, 1, None),
         {"axis": (), "unbiased": True, "keep_dims": False}),
    Case("Var", [(2, 3), K((1,)), K(1), K(False)], lambda x: x.var(1, ddof=1), dynamic=True),
    Case("Var", [(2, 3), K(None), K(0), K(False)], lambda x: x.var()),
    Case("Std", [(2, 3, 4), K((0, 1)), K(2), K(True)],
         lambda x: x.std((0, 1), ddof=2, keepdims=True)),
    Case("VarMean", [(2, 3), K((0,)), K(1), K(False)], spread(np.var, 1, 0), dynamic=True),
    Case("StdMean", [(2, 3), K(None), K(1), K(False)], spread(np.std, 1, None)),
    Case("LogSumExp", [(2, 3, 4), K((1,)), K(False)], lambda x: np.log(np.exp(x).sum(1))),
    Case("LogSumExp", [(2, 3), K((0, 1)), K(True)],
         lambda x: np.log(np.exp(x).sum(keepdims=True)), dynamic=True),
    Case("Norm", [(2, 3), K(2.0), K(None), K(False), K(None)], np.linalg.norm),
    *[Case("Norm", [(2, 3), K(p), K((1,)), K(True), K(None)],
           lambda x, p=p: np.linalg.norm(x, p, axis=1, keepdims=True))
      for p in (1.0, 2.0, 3.0, 0.0, float("inf"), float("-inf"))],
    Case("Norm", [numbers(2, 3, dtype=F16), K(2.0), K((1,)), K(False), K(43)],
         lambda x: np.linalg.norm(x.astype(np.float32), axis=1)),
    Case("CountNonZero", [INTS, K(None)], lambda x: np.asarray(np.count_nonzero(x))),
    Case("CountNonZero", [INTS, K((1,))], lambda x: np.count_nonzero(x, 1).astype(I32),
         untyped=False),
    Case("Nansum", [NANS, K((1,)), K(True), K(None)], lambda x: np.nansum(x, 1, keepdims=True)),
    Case("Nansum", [INTS, K(None), K(False), K(None)], lambda x: np.asarray(x.sum())),
    Case("Any", [truths(4, 2)], np.any),
    Case("AnyExt", [truths(4, 2), K(1), K(True)], lambda x: x.any(1, keepdims=True)),
    Case("ReduceAny", [INTS, K((0,))], lambda x: x.any(0), {"keep_dims": False}),
]  # fmt: skip

OLD = [
    Case(f"Reduce{name}D", [(2, 3)], fn, attributes={"axis": (1,), "keep_dims": True})
    for name, fn in {
        "Mean": lambda x: x.mean(1, keepdims=True), "Sum": lambda x: x.sum(1, keepdims=True),
        "Max": lambda x: x.max(1, keepdims=True), "Min": lambda x: x.min(1, keepdims=True),
        "Prod": lambda x: x.prod(1, keepdims=True),
    }.items()
] + [
    Case("ReduceAllD", [truths(3, 2)], lambda x: x.all(0), attributes={"axis": 0}),
    Case("ReduceAnyD", [truths(3, 2)], lambda x: x.any(0), attributes={"axis": 0}),
]  # fmt: skip

WITHOUT_DIMS = [
    Case("ReduceSum", [(), K((0,))], lambda x: x, {"keep_dims": False}),
    Case("ReduceMax", [(), K((-1,))], lambda x: x, {"keep_dims": True}),
    Case("Argmax", [()], lambda x: I32(0), {"axis": -1, "output_type": 34}),
    Case("MaxDim", [(), K(0), K(False)], lambda x: (x, I64(0))),
    Case("ArgMaxExt", [(), K(None), K(False)], lambda x: I64(0)),
    Case("Var", [(), K(None), K(0), K(False)], lambda x: np.float32(0)),
]
ONE_MORE = [Case("ArgminV2", [DISTINCT, K(1)], lambda x: x.argmin(1).astype(I32))]

CASES = [*PLAIN, *EXT, *EXTREMES, *MOMENTS, *OLD, *WITHOUT_DIMS, *ONE_MORE]
