"""Rows for ops/matmul.py."""

from __future__ import annotations

import numpy as np
from support.op_case import Case, K, W, numbers

F16, I32 = np.float16, np.int32


def flags(a: bool, b: bool) -> dict[str, bool]:
    return {"transpose_a": a, "transpose_b": b}


PLAIN = [
    Case("MatMul", [(2, 3), (3, 4)], np.matmul, flags(False, False), dynamic=True),
    Case("MatMul", [(3, 2), (3, 4)], lambda a, b: a.T @ b, flags(True, False)),
    Case("MatMul", [(2, 3), (4, 3)], lambda a, b: a @ b.T, flags(False, True), dynamic=True),
    Case("MatMul", [(3, 2), (4, 3)], lambda a, b: a.T @ b.T, flags(True, True)),
    Case("MatMul", [(2, 3), W(numbers(4, 3))], lambda a, b: a @ b.T, flags(False, True)),
    Case("MatMul", [(2, 3), (4, 3)], lambda a, b: a @ b.T,
         attributes={"transpose_x1": False, "transpose_x2": True}),
    Case("MatMul", [numbers(2, 3, high=5, dtype=I32), numbers(4, 3, high=5, dtype=I32)],
         lambda a, b: a @ b.T, flags(False, True)),
    Case("MatMul", [numbers(2, 3, dtype=F16), numbers(3, 2, dtype=F16)], np.matmul),
    Case("MatMulV2", [(2, 3), (3, 4)], np.matmul),
    Case("BatchMatMul", [(5, 2, 3), (5, 3, 4)], np.matmul, flags(False, False)),
    Case("BatchMatMul", [(5, 3, 2), (5, 4, 3)],
         lambda a, b: a.swapaxes(1, 2) @ b.swapaxes(1, 2), flags(True, True), dynamic=True),
    Case("BatchMatMul", [(2, 1, 2, 3), (5, 4, 3)], lambda a, b: a @ b.swapaxes(1, 2),
         flags(False, True)),
    Case("BatchMatMulV2", [(5, 3, 2), (5, 3, 4)], lambda a, b: a.swapaxes(1, 2) @ b,
         flags(True, False)),
    Case("MatMulExt", [(2, 3), (3,)], np.matmul),
    Case("MatMulExt", [(3,), (3,)], np.matmul),
    Case("MatMulExt", [(2, 4, 3), (3, 2)], np.matmul, dynamic=True),
    Case("BatchMatMulExt", [(5, 2, 3), (5, 3, 4)], np.matmul),
    Case("Mm", [(2, 3), (3, 4)], np.matmul),
    Case("Mv", [(2, 3), (3,)], np.matmul),
    Case("Dot", [(3,), (3,)], np.dot),
]  # fmt: skip

WITH_SUMS = [
    Case("Dense", [(2, 3), (4, 3), (4,)], lambda x, w, b: x @ w.T + b, dynamic=True),
    Case("Dense", [(2, 3), (4, 3), K(None)], lambda x, w: x @ w.T),
    Case("Dense", [(5, 2, 3), (4, 3), (4,)], lambda x, w, b: x @ w.T + b),
    Case("Dense", [(3,), (4, 3), (4,)], lambda x, w, b: x @ w.T + b),
    Case("Addmm", [(2, 4), (2, 3), (3, 4), K(1), K(1)], lambda x, a, b: x + a @ b),
    Case("Addmm", [(4,), (2, 3), (3, 4), K(0.5), K(2)], lambda x, a, b: x / 2 + 2 * (a @ b)),
    Case("Baddbmm", [(5, 2, 4), (5, 2, 3), (5, 3, 4), K(2), K(3)],
         lambda x, a, b: 2 * x + 3 * (a @ b)),
    Case("Addmv", [(2,), (2, 3), (3,), K(1), K(0.5)], lambda x, a, b: x + (a @ b) / 2),
]  # fmt: skip

CASES = [*PLAIN, *WITH_SUMS]
