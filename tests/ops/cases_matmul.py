"""Rows for ops/matmul.py."""

from __future__ import annotations

import numpy as np
from support.op_case import Case, K, S, T, W, numbers

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
    Case("MatMulV2", [(2, 3), (4, 3), (4,)], lambda a, b, c: a @ b.T + c,
         attributes={"transpose_x1": False, "transpose_x2": True}),
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
    Case("Vdot", [(3,), (3,)], np.dot),
    Case("MatMul", [numbers(2, 3, high=5, dtype=np.int8), numbers(3, 4, high=5, dtype=np.int8)],
         np.matmul, flags(False, False)),
    Case("MatMul", [numbers(2, 3, dtype=np.float64), numbers(4, 3, dtype=np.float64)],
         lambda a, b: a @ b.T, flags(False, True)),
    Case("BatchMatMul", [numbers(2, 2, 3, high=5, dtype=np.uint8),
                         numbers(2, 4, 3, high=5, dtype=np.uint8)],
         lambda a, b: a @ b.swapaxes(1, 2), flags(False, True)),
    Case("Outer", [(2,), (3,)], np.outer, dynamic=True),
    Case("TransposeBatchMatmulTranspose",
         [(3, 2, 4), (2, 4, 5), K((1, 0, 2)), K((1, 0, 2)), K(False), K(False)],
         lambda a, b: (a.transpose(1, 0, 2) @ b).transpose(1, 0, 2)),
    Case("TransposeBatchMatmulTranspose",
         [(3, 2, 4), (2, 5, 4), K((1, 0, 2)), K((0, 1, 2)), K(False), K(True)],
         lambda a, b: a.transpose(1, 0, 2) @ b.swapaxes(1, 2)),
    Case("Einsum", [T((2, 3), (3, 4))], lambda v: v[0] @ v[1],
         attributes={"equation": "ij,jk->ik"}, dynamic=True),
    Case("Einsum", [T((5, 2, 3), (5, 4, 3))], lambda v: np.einsum("...ij,...kj", *v),
         attributes={"equation": "...ij,...kj"}),
    Case("Einsum", [T(numbers(3, 3, dtype=F16))], lambda v: np.trace(v[0]),
         attributes={"equation": "ii->"}),
    Case("EinsumExt", [K("bi,bj->bij"), T((2, 3), (2, 4))],
         lambda v: np.einsum("bi,bj->bij", *v)),
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
    Case("Addmm", [(2, 4), (2, 3), (3, 4), S(0.5), S(2.0)],
         lambda x, a, b, beta, alpha: beta * x + alpha * (a @ b)),
    Case("InplaceAddmm", [(2, 4), (2, 3), (3, 4), K(0.5), K(2)],
         lambda x, a, b: x / 2 + 2 * (a @ b)),
    Case("Addbmm", [(2, 4), (5, 2, 3), (5, 3, 4), K(2), K(3)],
         lambda x, a, b: 2 * x + 3 * (a @ b).sum(0), dynamic=True),
    Case("FusedMatMulBiasAdd", [(2, 3), (3, 4), (4,)], lambda a, b, c: a @ b + c,
         flags(False, False)),
    Case("FusedMatMulBiasAdd", [(3, 2), (4, 3), (4,)], lambda a, b, c: a.T @ b.T + c,
         flags(True, True)),
    Case("Addmv", [(2,), (2, 3), (3,), K(1), K(0.5)], lambda x, a, b: x + (a @ b) / 2),
]  # fmt: skip

CASES = [*PLAIN, *WITH_SUMS]
