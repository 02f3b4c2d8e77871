"""Rows for ops/quant.py. MindSpore has these ops on Ascend only: NumPy is the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.op_case import Case, K, T, W, numbers

F16, I8, I32 = np.float16, np.int8, np.int32
A, B = numbers(3, 4, low=-9, high=9, dtype=I8), numbers(4, 5, low=-9, high=9, dtype=I8, seed=1)
SCALE = numbers(5, low=0.01, high=0.1)
PACKED = SCALE.view(np.uint32).astype(np.int64)  # the bits of a float32 in 64 bits


def flags(a: bool = False, b: bool = False, dtype: int = 42) -> dict[str, Any]:
    return {"transpose_x1": a, "transpose_x2": b, "dtype": dtype}


def exact(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a.astype(I32) @ b.astype(I32)).astype(np.float32)


QUANTISED = [
    Case("QuantBatchMatmul", [A, B, W(PACKED), K(None), numbers(5, low=-9, high=9, dtype=I32),
                              K(None)],
         lambda a, b, s, c: ((exact(a, b) + c) * SCALE).astype(F16), flags()),
    Case("QuantBatchMatmul", [A, np.ascontiguousarray(B.T), SCALE, K(None), K(None), numbers(3)],
         lambda a, b, s, p: exact(a, b.T) * s * p[:, None], flags(b=True, dtype=43)),
    Case("QuantBatchMatmul", [A, B, SCALE, K(None), numbers(5), K(None)],
         lambda a, b, s, c: exact(a, b) * s + c, flags(dtype=43), dynamic=True),
    Case("WeightQuantBatchMatmul", [(3, 4), B, (5,), K(None), K(None), K(None), K(None)],
         lambda x, w, s: x @ (w * s),
         {"transpose_x": False, "transpose_weight": False, "antiquant_group_size": 0}),
    Case("WeightQuantBatchMatmul",
         [(4, 3), np.ascontiguousarray(B.T), (5, 1), (5, 1), K(None), K(None), (5,)],
         lambda x, w, s, o, c: x.T @ ((w + o) * s).T + c,
         {"transpose_x": True, "transpose_weight": True, "antiquant_group_size": 0}),
    Case("DynamicQuantExt", [(2, 3, 4), K(None)],
         lambda x: (np.round(x / (np.abs(x).max(-1, keepdims=True) / np.float32(127))).astype(I8),
                    np.abs(x).max(-1) / np.float32(127)), dynamic=True),
    Case("DynamicQuantExt", [(3, 4), (4,)],
         lambda x, s: np.abs(x * s).max(-1) / np.float32(127), pick=1),
]  # fmt: skip

ENDS = np.array([1, 1, 4])


def by_rows(x: Any, w: Any, ends: Any, bias: Any = None) -> np.ndarray:
    found = np.zeros((len(x), w.shape[-1]), np.float32)
    start = 0
    for at, end in enumerate(ends):
        found[start:end] = x[start:end] @ w[at] + (0 if bias is None else bias[at])
        start = end
    return found


def settings(split: int, kind: int, turn: bool = False) -> dict[str, Any]:
    return {"split_item": split, "group_type": kind, "transpose_a": False, "transpose_b": turn}


NO = K(None)
WIDE = numbers(3, 4, 5, low=-9, high=9, dtype=I8)
GROUPED = [
    Case("GroupedMatmul", [T((2, 3), (4, 5)), T((3, 2), (5, 3)), *[NO] * 6],
         lambda x, w: x[0] @ w[0], settings(0, -1), pick=0),
    Case("GroupedMatmul", [T((2, 3), (4, 5)), T((3, 2), (5, 3)), T((2,), (3,)), *[NO] * 5],
         lambda x, w, b: x[1] @ w[1] + b[1], settings(0, -1), pick=1),
    Case("GroupedMatmul", [T((6, 4)), T((3, 4, 5)), T((3, 5)), *[NO] * 4, ENDS],
         lambda x, w, b, e: by_rows(x[0], w[0], e, b[0]), settings(3, 0), pick=0),
    Case("GroupedMatmul", [T((4, 4)), T((3, 5, 4)), *[NO] * 5, ENDS],
         lambda x, w, e: by_rows(x[0], w[0].swapaxes(1, 2), e), settings(3, 0, True), pick=0),
    Case("GroupedMatmul", [T((4, 4)), T(WIDE), NO, NO, NO, T((3, 5)), T((3, 5)), ENDS],
         lambda x, w, s, o, e: by_rows(x[0], (w[0] + o[0][:, None]) * s[0][:, None], e),
         settings(3, 0), pick=0),
    Case("GroupedMatmulV2", [T((6, 4)), T((3, 4, 5)), *[NO] * 5, ENDS, K(3), K(0)],
         lambda x, w, e: by_rows(x[0], w[0], e), pick=0),
    Case("GroupedMatmulV4", [T((6, 4)), T((3, 4, 5)), *[NO] * 6, np.array([1, 0, 3]), *[NO] * 3,
                             K(3), K(0), K(1), K(0), NO],
         lambda x, w, e: by_rows(x[0], w[0], np.cumsum(e)), pick=0),
]  # fmt: skip

CASES = [*QUANTISED, *GROUPED]
