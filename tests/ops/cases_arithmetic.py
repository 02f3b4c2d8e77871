"""Rows for ops/arithmetic.py."""

from __future__ import annotations

import numpy as np
from support.op_case import Case, K, S, T, W, numbers

F16, I32, I64 = np.float16, np.int32, np.int64


def true_div(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.divide(x, y, dtype=np.float32)


BINARY = [
    Case("Add", [(2, 3), (2, 3)], np.add, dynamic=True),
    Case("Add", [(2, 3, 4), (4,)], np.add),
    Case("Add", [(1, 3), (4, 1)], np.add, dynamic=True),
    Case("Add", [(), (2,)], np.add),
    Case("Add", [(2, 3), W(numbers(3, seed=5))], np.add),
    Case("Add", [numbers(4, dtype=F16), numbers(4, dtype=F16, seed=1)], np.add),
    Case("Add", [numbers(4, low=-9, high=9, dtype=I64), K(3)], lambda x: x + 3),
    Case("TensorAdd", [(2, 3), (3,)], np.add),
    Case("Sub", [(2, 3), (3,)], np.subtract, dynamic=True),
    Case("Sub", [numbers(4, low=-9, high=9, dtype=I32), K(3)], lambda x: x - I32(3)),
    Case("Mul", [(2, 3), (2, 1)], np.multiply),
    Case("Div", [(2, 3), numbers(3, low=0.5, high=2)], np.divide),
    Case("RealDiv", [(2, 3), numbers(2, 1, low=0.5, high=2)], np.divide),
    Case("Muls", [(2, 3), K(2)], lambda x: x * np.float32(2)),
    Case("Muls", [(2, 3), K(0.5)], lambda x: x * np.float32(0.5)),
    Case("Muls", [numbers(4, dtype=F16), K(0.5)], lambda x: x * F16(0.5)),
    Case("Muls", [(2, 3), S(3)], lambda x, s: x * np.float32(s), untyped=False),
    Case("Divs", [(2, 3), K(4)], lambda x: x / np.float32(4)),
    Case("Maximum", [(2, 3), (3,)], np.maximum),
    Case("Maximum", [numbers(4, low=-9, high=9, dtype=I64), K(0)], lambda x: np.maximum(x, 0)),
    Case("Minimum", [(2, 3), (2, 1)], np.minimum),
    Case("Minimum", [(2, 3), K(0.5)], lambda x: np.minimum(x, np.float32(0.5))),
    # rule 11: a number of the source code became an int32 tensor beside a float one
    Case("Add", [(2, 3), K(np.array(2, I32))], lambda x: x + np.float32(2)),
    Case("Mul", [K(np.array(3, I64)), (2, 3)], lambda x: x * np.float32(3)),
    Case("Sub", [K(1), (2, 3)], lambda x: np.float32(1) - x),
    Case("Sub", [K(1.5), (2, 3)], lambda x: np.float32(1.5) - x),
    Case("Mul", [numbers(3, dtype=F16), K(np.array(3, I32))], lambda x: x * F16(3)),
    # integers divide to float32
    Case("Div", [numbers(4, low=-9, high=9, dtype=I32), K(np.array(2, I32))],
         lambda x: true_div(x, 2)),
    Case("Div", [numbers(4, low=-9, high=9, dtype=I64), numbers(4, low=1, high=9, dtype=I64)],
         true_div),
    Case("Divs", [numbers(4, low=-9, high=9, dtype=I32), K(4)], lambda x: true_div(x, 4)),
    Case("Pow", [numbers(2, 3, low=0.5, high=2), (3,)], np.power),
    Case("Pow", [(2, 3), K(2)], np.square),
    Case("PowTensorScalar", [(2, 3), K(3.0)], lambda x: x**3),
    Case("PowTensorScalar", [numbers(4, low=-5, high=5, dtype=I64), K(2)], np.square),
    Case("PowScalarTensor", [K(2), (2, 3)], lambda x: np.float32(2) ** x),
    Case("SquaredDifference", [(2, 3), (3,)], lambda x, y: (x - y) ** 2),
    Case("AddN", [T((2, 3), (2, 3), (2, 3))], sum),
    Case("AccumulateNV2", [T((2, 3), (2, 3))], sum),
    Case("AddN", [T((4,))], lambda xs: xs[0]),
    Case("Lerp", [(2, 3), (2, 3), (2, 3)], lambda a, b, w: a + w * (b - a)),
    Case("Lerp", [(2, 3), (3,), K(0.25)], lambda a, b: a + np.float32(0.25) * (b - a)),
    Case("LerpScalar", [(2, 3), (2, 3), K(0.25)], lambda a, b: a + np.float32(0.25) * (b - a)),
]  # fmt: skip

SCALED = [
    Case("AddExt", [(2, 3), (3,)], np.add),
    Case("AddExt", [(2, 3), (3,), K(1)], np.add, dynamic=True),
    Case("AddExt", [(2, 3), (3,), K(2)], lambda x, y: x + 2 * y),
    Case("AddExt", [(2, 3), K(np.array(4, I32)), K(0.5)], lambda x: x + np.float32(2)),
    Case("AddScalar", [(2, 3), K(5), K(2)], lambda x: x + np.float32(10)),
    Case("SubExt", [(2, 3), (2, 3), K(3)], lambda x, y: x - 3 * y),
    Case("SubScalar", [(2, 3), K(0.5), K(1)], lambda x: x - np.float32(0.5)),
]


A = np.array([-7, -6, -1, 0, 1, 6, 7, 7], I32)
B = np.array([2, -3, 4, 5, -5, 3, -2, 7], I32)

DIVISION = [
    Case("FloorDiv", [numbers(9, low=-9, high=9), numbers(9, low=0.5, high=3)], np.floor_divide),
    Case("FloorDiv", [A, B], np.floor_divide),
    Case("FloorDiv", [A.astype(I64), K(2)], lambda x: x // 2),
    Case("FloorDivScalar", [A, K(-2)], lambda x: x // I32(-2)),
    Case("FloorDivScalar", [numbers(9, low=-9, high=9), K(2)], lambda x: x // np.float32(2)),
    Case("FloorMod", [A, B], np.mod),
    Case("FloorMod", [A.astype(np.float32), B.astype(np.float32)], np.mod),
    Case("RemainderTensorTensor", [A.astype(I64), B.astype(I64)], np.mod),
    Case("RemainderTensorScalar", [numbers(9, low=-9, high=9), K(2)], lambda x: x % np.float32(2)),
    Case("RemainderScalarTensor", [K(7), B], lambda y: I32(7) % y),
    Case("Mod", [A, B], np.fmod),
    Case("Mod", [numbers(9, low=-9, high=9), K(np.array(1, I32))], lambda x: np.fmod(x, 1)),
    Case("TruncateMod", [A.astype(np.float32), B.astype(np.float32)], np.fmod),
    Case("FmodTensor", [A, B], np.fmod),
    Case("FmodScalar", [numbers(9, low=-9, high=9), K(2.5)], lambda x: np.fmod(x, np.float32(2.5))),
]

FA, FB = A.astype(np.float32), B.astype(np.float32)
ZX, ZY = np.array([0, 1, 0, 2, -3], np.float32), np.array([2, 0, 4, 4, 5], np.float32)
NANS = np.array([1, np.nan, 2, np.nan], np.float32), np.array([np.nan, np.nan, 3, 1], np.float32)
POSITIVE = numbers(2, 3, low=0.5, high=3)


def where_zero(x: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.where(x == 0, np.float32(0), other)


MORE = [
    Case("AddExt", [(2, 3), (3,), S(2)], lambda x, y, a: x + np.float32(a) * y),
    Case("AddV2", [(2, 3), (3,)], np.add),
    Case("AddN", [T(A, B)], sum),
    Case("Addcmul", [(2, 3), (3,), (2, 1), K(np.array(2, np.float32))],
         lambda x, a, b: x + 2 * a * b, dynamic=True),
    Case("AddcmulExt", [(2, 3), (3,), (2, 1)], lambda x, a, b: x + a * b),
    Case("AddcmulExt", [A, B, B, K(2)], lambda x, a, b: x + I32(2) * a * b),
    Case("Addcdiv", [(2, 3), (2, 3), POSITIVE, K(np.array(0.5, np.float32))],
         lambda x, a, b: x + np.float32(0.5) * a / b),
    Case("AddcdivExt", [(2, 3), (2, 3), POSITIVE, K(3)], lambda x, a, b: x + 3 * (a / b)),
    Case("SquareSumAll", [(2, 3), (2, 3)], lambda x, y: ((x**2).sum(), (y**2).sum())),
    Case("Hypot", [(2, 3), (3,)], np.hypot, dynamic=True),
    Case("Hypot", [np.array([3e30, 0, 3e-30], np.float32), np.array([4e30, 0, 4e-30], np.float32)],
         np.hypot),
    Case("LogAddExp", [(2, 3), (3,)], np.logaddexp),
    Case("LogAddExp", [np.array([90, -90, np.inf, -np.inf], np.float32),
                       np.array([90, 90, np.inf, -np.inf], np.float32)], np.logaddexp),
    Case("LogAddExp2", [(2, 3), (3,)], np.logaddexp2),
    Case("LogAddExp2", [np.array([5, 200], np.float32), np.array([5, 199], np.float32)],
         np.logaddexp2),
    Case("Fmax", NANS, np.fmax),
    Case("Fmin", NANS, np.fmin),
    Case("Fmax", [A, B], np.fmax),
    Case("TruncateDiv", [FA, FB], lambda x, y: np.trunc(x / y)),
    Case("TruncateDiv", [A, B], lambda x, y: np.trunc(x / y).astype(I32)),
    Case("DivMod", [FA, FB], np.divide),
    Case("DivMod", [A, B, K(None)], lambda x, y: (x / y).astype(np.float32)),
    Case("DivMod", [FA, FB, K(1)], lambda x, y: np.trunc(x / y)),
    Case("DivMod", [FA, FB, K(2)], np.floor_divide),
    Case("DivMod", [A, B, K("trunc")], lambda x, y: np.trunc(x / y).astype(I32)),
    Case("DivMods", [A, K(2), K(2)], lambda x: x // 2),
    Case("DivMods", [FA, K(3.0), K(1)], lambda x: np.trunc(x / np.float32(3))),
    Case("DivNoNan", [ZX, ZY], lambda x, y: where_zero(y, x / y)),
    Case("DivNoNan", [A, K(np.array(0, I32))], lambda x: x * 0),
    Case("MulNoNan", [np.array([np.inf, 1, np.nan, 2], np.float32),
                      np.array([0, 0, 0, 4], np.float32)], lambda x, y: where_zero(y, x * y)),
    Case("Xdivy", [ZX, ZY], lambda x, y: where_zero(x, x / y)),
    Case("Xlogy", [ZX, ZY], lambda x, y: where_zero(x, x * np.log(y))),
    Case("XLogYScalarOther", [ZX, K(2)], lambda x: x * np.log(np.float32(2))),
    Case("XLogYScalarSelf", [K(3), POSITIVE], lambda y: 3 * np.log(y)),
    Case("Xlogy", [np.array([0, 2], I32), np.array([0, 3], I32)],
         lambda x, y: np.array([0, 2 * np.log(3)], np.float32)),
    Case("Atan2", [np.array([1, 1, -1, -1, 0, 0, 2, -2, 0], np.float32),
                   np.array([1, -1, 1, -1, 1, -1, 0, 0, 0], np.float32)], np.arctan2, dynamic=True),
    Case("Atan2", [(3, 4), (4,)], np.arctan2),
    Case("Atan2Ext", [A, B], lambda x, y: np.arctan2(x, y).astype(np.float32)),
    Case("FloorDiv", [A.astype(np.int8), B.astype(np.int8)], np.floor_divide),
    Case("FloorDiv", [np.array([7, 200], np.uint8), np.array([2, 3], np.uint8)], np.floor_divide),
]  # fmt: skip

CASES = [*BINARY, *SCALED, *DIVISION, *MORE]
