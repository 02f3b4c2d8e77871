"""Rows for ops/linalg.py."""

from __future__ import annotations

import numpy as np
from support.op_case import Case, K, numbers

F16, F32, F64 = np.float16, np.float32, np.float64
I8, I16, I32, I64 = np.int8, np.int16, np.int32, np.int64

SQUARE = (numbers(2, 3, 3) + 3 * np.eye(3)).astype(F32)
POSITIVE = (SQUARE @ SQUARE.swapaxes(1, 2)).astype(F32)
FACTOR = np.linalg.cholesky(POSITIVE)
PIVOTS = np.array([[0, 2, 1], [1, 0, 0], [3, 0, 1]], F32)
SINGULAR = np.array([[1, 2], [2, 4]], F64)
# solved in a hurry, 1e-6 would be lost against 1
SMALL_PIVOT = np.array([[1e-6, 1], [1, 1]], F32)


def solve(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.linalg.solve(a.astype(F64), b.astype(F64)).astype(b.dtype)


def inverse(x: np.ndarray) -> np.ndarray:
    return np.linalg.inv(x.astype(F64)).astype(x.dtype)


DETERMINANTS = [
    Case("MatrixDeterminant", [SQUARE], np.linalg.det, dynamic=True),
    Case("MatrixDeterminant", [PIVOTS.astype(F64)], np.linalg.det, dynamic=True),
    Case("MatrixDeterminant", [SINGULAR], lambda x: F64(0)),
    Case("LogMatrixDeterminant", [SQUARE], lambda x: tuple(np.linalg.slogdet(x)), dynamic=True),
    Case("LogMatrixDeterminant", [(PIVOTS * 1e20).astype(F32)],
         lambda x: tuple(v.astype(F32) for v in np.linalg.slogdet(x.astype(F64)))),
    Case("LogMatrixDeterminant", [SINGULAR], lambda x: (F64(0), F64(-np.inf))),
]  # fmt: skip

INVERSES = [
    Case("MatrixInverse", [SQUARE], inverse, attributes={"adjoint": False}, dynamic=True),
    Case("MatrixInverse", [SQUARE[0]], lambda x: inverse(x).T, attributes={"adjoint": True}),
    Case("MatrixInverse", [numbers(2, 2, 4, 4, dtype=F64)], inverse),
    Case("MatrixInverse", [PIVOTS], inverse, dynamic=True),
    Case("MatrixInverse", [SMALL_PIVOT], inverse),
    Case("MatrixInverse", [np.array([[4]], F32)], inverse),
    Case("MatrixInverse", [(numbers(40, 40) + 4 * np.eye(40)).astype(F32)], inverse),
    Case("MatrixInverseExt", [SQUARE.astype(F16)], lambda x: inverse(x.astype(F32)).astype(F16)),
    Case("MatrixSolve", [SQUARE, (2, 3, 2)], solve, attributes={"adjoint": False}, dynamic=True),
    Case("MatrixSolve", [SQUARE[0], (3, 1)], lambda a, b: solve(a.T, b),
         attributes={"adjoint": True}),
    Case("MatrixTriangularSolve", [SQUARE, (2, 3, 2)], lambda a, b: solve(np.tril(a), b),
         attributes={"lower": True}),
    Case("MatrixTriangularSolve", [SQUARE[0], (3, 2)], lambda a, b: solve(np.triu(a).T, b),
         attributes={"lower": False, "adjoint": True}),
    Case("SolveTriangular", [SQUARE[0], (3, 2), K(0), K(False), K(False)],
         lambda a, b: solve(np.triu(a), b), dynamic=True),
    Case("SolveTriangular", [SQUARE[0], (3,), K(1), K(True), K(True)],
         lambda a, b: solve((np.tril(a, -1) + np.eye(3)).T, b)),
    Case("TriangularSolve", [(3, 2), SQUARE[0], K(True), K(False), K(False)],
         lambda b, a: (solve(np.triu(a), b), a)),
    Case("TriangularSolve", [(2, 3, 2), SQUARE, K(False), K(True), K(True)],
         lambda b, a: (solve((np.tril(a, -1) + np.eye(3)).swapaxes(1, 2), b), a)),
    Case("MatrixPower", [SQUARE], lambda x: np.linalg.matrix_power(x, 5), attributes={"n": 5}),
    Case("MatrixPower", [SQUARE[0]], lambda x: inverse(x @ x), attributes={"n": -2},
         dynamic=True),
    Case("MatrixPower", [SQUARE], lambda x: np.broadcast_to(np.eye(3, dtype=F32), (2, 3, 3)),
         attributes={"n": 0}),
]  # fmt: skip

FACTORS = [
    Case("Cholesky", [POSITIVE], np.linalg.cholesky, {"upper": False}, dynamic=True),
    Case("Cholesky", [POSITIVE[0].astype(F64)], lambda x: np.linalg.cholesky(x).T,
         {"upper": True}),
    Case("CholeskyInverse", [FACTOR[0]], lambda x: inverse(x @ x.T), {"upper": False}),
    Case("CholeskyInverse", [FACTOR[0].T.copy()], lambda x: inverse(x.T @ x), {"upper": True}),
    Case("CholeskySolve", [(3, 2), FACTOR[0]], lambda b, x: solve(x @ x.T, b),
         attributes={"upper": False}),
    Case("CholeskySolve", [(2, 3, 1), FACTOR.swapaxes(1, 2).copy()],
         lambda b, x: solve(x.swapaxes(1, 2) @ x, b), attributes={"upper": True}),
]  # fmt: skip

QR = [
    Case("Qr", [(4, 3)], lambda x: tuple(np.linalg.qr(x)), {"full_matrices": False}, loose=5),
    Case("Qr", [(2, 3, 4)], lambda x: tuple(np.linalg.qr(x)), {"full_matrices": False}, loose=5,
         dynamic=True),
    Case("Qr", [numbers(2, 4, 3).astype(F64)], lambda x: tuple(np.linalg.qr(x, "complete")),
         {"full_matrices": True}, loose=5),
    Case("Qr", [np.zeros((3, 2), F32)], lambda x: (np.eye(3, 2, dtype=F32), x[:2]),
         {"full_matrices": False}),
]  # fmt: skip


VECTORS = [
    Case("Ger", [(2,), (3,)], np.outer),
    Case("Cross", [(2, 3), (2, 3)], np.cross, {"dim": -65530}),
    Case("Cross", [(3, 2), (3, 2)], lambda x, y: np.cross(x, y, axis=0), {"dim": 0}, dynamic=True),
    Case("Cross", [numbers(2, 3, high=9, dtype=I64), numbers(2, 3, high=9, dtype=I64, seed=1)],
         np.cross, {"dim": -1}),
]  # fmt: skip

CASES = [*DETERMINANTS, *INVERSES, *FACTORS, *QR, *VECTORS]
