"""Rows for ops/complex.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.op_case import Case, K, T, W, numbers


def complexes(*shape: int, dtype: Any = np.complex64, seed: int = 0) -> np.ndarray:
    both = numbers(2, *shape, seed=seed)
    return (both[0] + 1j * both[1]).astype(dtype)


A, B, X = complexes(2, 3), complexes(2, 3, seed=1), numbers(2, 3, seed=2)
WIDE = complexes(2, 3, dtype=np.complex128)
C64 = np.complex64

PARTS = [
    Case("Complex", [(2, 3), (2, 3)], lambda x, y: x + 1j * y, dynamic=True),
    Case("Real", [A], np.real, dynamic=True),
    Case("Real", [X], lambda x: x),
    Case("Imag", [A], np.imag),
    Case("Imag", [X], np.zeros_like),
    Case("Real", [W(WIDE)], np.real),
    Case("RealView", [A], np.real),
    Case("ImagView", [A], np.imag),
    Case("Conj", [A], np.conj),
    Case("Conj", [X], lambda x: x),
    Case("ComplexAbs", [A], np.abs),
    Case("ComplexAbs", [X], np.abs),
    Case("Angle", [complexes(6, 6)], np.angle, dynamic=True),
    Case("Angle", [np.array([0, -1, 1, 1j, -1j, -1 + 0j, -1e-8 + 1j], C64)], np.angle),
    Case("Angle", [X], lambda x: np.angle(x).astype(np.float32)),
    Case("Polar", [(2, 3), (2, 3)], lambda r, a: (r * np.exp(1j * a)).astype(C64)),
    Case("Cast", [X, K(51)], lambda x: x.astype(C64), dynamic=True),
    Case("Cast", [A, K(52)], lambda x: x.astype(np.complex128)),
    Case("Cast", [A, K(43)], np.real),
]

ARITHMETIC = [
    Case("Add", [A, B], np.add, dynamic=True),
    Case("Add", [A, X[0]], np.add),
    Case("Add", [A[0], X], np.add),
    Case("Add", [A, K(2.5)], lambda x: x + C64(2.5)),
    Case("Sub", [A, B[0]], np.subtract),
    Case("Sub", [X, A], np.subtract),
    Case("AddExt", [A, B, K(2)], lambda x, y: x + C64(2) * y),
    Case("SubExt", [A, B, K(1)], np.subtract),
    Case("AddScalar", [A, K(0.5), K(1)], lambda x: x + C64(0.5)),
    Case("SubScalar", [A, K(0.5), K(2)], lambda x: x - C64(1)),
    Case("Mul", [A, B], np.multiply, dynamic=True),
    Case("Mul", [A, W(B)], np.multiply),
    Case("Mul", [X, A], np.multiply),
    Case("Mul", [WIDE, WIDE], np.multiply),
    Case("Muls", [A, K(3)], lambda x: x * C64(3)),
    Case("Div", [A, B], np.divide),
    Case("Div", [A, X], np.divide),
    Case("RealDiv", [X, A], np.divide),
    Case("Divs", [A, K(4)], lambda x: x / C64(4)),
    Case("Neg", [A], np.negative),
    Case("Reciprocal", [A], np.reciprocal),
    Case("Square", [A], np.square),
    Case("MatMul", [A, complexes(3, 4)], np.matmul, dynamic=True),
    Case("MatMul", [A, B], lambda x, y: x.T @ y, {"transpose_a": True, "transpose_b": False}),
    Case("BatchMatMul", [complexes(2, 2, 3), complexes(2, 3, 2)], np.matmul),
    Case("MatMulExt", [A, numbers(3, 4)], np.matmul),
    Case("MatMulExt", [numbers(4, 2), A], np.matmul),
    Case("Equal", [np.stack([A[0], B[1]]), A], np.equal),
    Case("NotEqual", [np.stack([A[0], A[1].conj()]), A], np.not_equal),
]  # fmt: skip

FUNCTIONS = [
    Case("Abs", [A], lambda x: np.abs(x).astype(C64)),
    Case("Exp", [A], np.exp, dynamic=True),
    Case("Log", [A], np.log),
    Case("Sqrt", [A], np.sqrt),
    Case("Sin", [A], np.sin),
    Case("Cos", [A], np.cos),
    Case("Sinh", [A], np.sinh),
    Case("Cosh", [A], np.cosh),
]

MOVED = [
    Case("Reshape", [A, K((3, -1))], lambda x: x.reshape(3, 2), dynamic=True),
    Case("Transpose", [A, K((1, 0))], np.transpose),
    Case("Concat", [T(A, B), K(1)], lambda v: np.concatenate(v, 1)),
    Case("Gather", [A, np.array([2, 0]), K(1), K(0)], lambda x, i: x[:, i]),
    Case("ReduceSum", [A, K((1,))], lambda x: x.sum(1), {"keep_dims": False, "skip_mode": False}),
    Case("SumExt", [A, K((1,)), K(False), K(None)], lambda x: x.sum(1)),
    Case("Select", [X > 0, A, B], np.where),
]

CASES = [*PARTS, *ARITHMETIC, *FUNCTIONS, *MOVED]
