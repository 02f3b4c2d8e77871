"""Rows for ops/elementwise.py."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from support.op_case import Case, K, S, T, W, numbers, truths

from mindspore_lite.dtypes import BY_NAME
from mindspore_lite.mindir.records import Monad

F16, I32, I64 = np.float16, np.int32, np.int64
U = K(Monad.MEMORY)


def unary(
    primitive: str, fn: Callable[..., object], low: float = -2, high: float = 2
) -> list[Case]:
    """A row per rank, one of them with dims known only at run time."""
    return [
        Case(primitive, [numbers(2, 3, 4, low=low, high=high)], fn, dynamic=True),
        Case(primitive, [numbers(low=low, high=high)], fn),
    ]


UNARY = [
    *unary("Neg", np.negative),
    *unary("Abs", np.abs),
    *unary("Sign", np.sign),
    *unary("Floor", np.floor),
    *unary("Ceil", np.ceil),
    *unary("Sqrt", np.sqrt, 0.1, 4),
    *unary("Exp", np.exp),
    *unary("Log", np.log, 0.1, 4),
    *unary("Sin", np.sin),
    *unary("Cos", np.cos),
    *unary("Tan", np.tan, -1, 1),
    *unary("Asin", np.arcsin, -0.9, 0.9),
    *unary("ACos", np.arccos, -0.9, 0.9),
    *unary("Atan", np.arctan),
    *unary("Sinh", np.sinh),
    *unary("Cosh", np.cosh),
    *unary("Asinh", np.arcsinh),
    *unary("Acosh", np.arccosh, 1.1, 4),
    *unary("Atanh", np.arctanh, -0.9, 0.9),
    *unary("Reciprocal", np.reciprocal, 0.5, 2),
    *unary("Inv", np.reciprocal, 0.5, 2),
    *unary("Rint", np.rint),
    *unary("Square", np.square),
    *unary("Rsqrt", lambda x: np.reciprocal(np.sqrt(x)), 0.5, 4),
    *unary("Expm1", np.expm1),
    *unary("Log1p", np.log1p, 0, 4),
    *unary("Trunc", np.trunc),
    Case("Neg", [numbers(5, low=-9, high=9, dtype=I32)], np.negative),
    Case("Neg", [numbers(5, low=-9, high=9, dtype=I64)], np.negative),
    Case("Abs", [numbers(5, low=-9, high=9, dtype=I32)], np.abs),
    Case("Sign", [numbers(5, low=-9, high=9, dtype=I64)], np.sign),
    Case("Square", [numbers(5, low=-9, high=9, dtype=I32)], np.square),
    Case("Trunc", [numbers(5, low=-9, high=9, dtype=I32)], lambda x: x),
    Case("Exp", [numbers(3, 3, dtype=F16)], np.exp),
    Case("Sqrt", [numbers(3, 3, low=0.1, high=4, dtype=F16)], np.sqrt),
    Case("Expm1", [numbers(3, dtype=F16)], np.expm1),
    Case("IsNan", [np.array([1, np.nan, np.inf, -np.inf], np.float32)], np.isnan),
    Case("IsInf", [np.array([1, np.nan, np.inf, -np.inf], np.float32)], np.isinf),
    Case("LogicalNot", [truths(3, 4)], np.logical_not),
    Case("Rint", [np.array([0.5, 1.5, 2.5, -0.5, -1.5], np.float32)], np.rint),
    Case("Round", [np.array([0.5, 1.5, -2.5, 0.4], np.float32)], np.round),
    Case("Round", [numbers(20, low=-9, high=9), K(0)], np.round),
    Case("Round", [numbers(20, low=-9, high=9), K(2)], lambda x: np.round(x, 2)),
    Case("Round", [numbers(20, low=-900, high=900), K(-2)], lambda x: np.round(x, -2)),
    Case("Round", [numbers(4, low=-9, high=9, dtype=I32), K(0)], lambda x: x),
]


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
    Case("InplaceAddExt", [(2, 3), (3,), K(2), U], lambda x, y: x + 2 * y),
    Case("InplaceAddsExt", [(2, 3), K(4), K(1), U], lambda x: x + np.float32(4)),
    Case("InplaceSubExt", [(2, 3), (3,), K(1), U], np.subtract),
    Case("InplaceSubScalar", [(2, 3), K(4), K(2), U], lambda x: x - np.float32(8)),
    Case("InplaceMul", [(2, 3), (3,), U], np.multiply),
    Case("InplaceMuls", [(2, 3), K(3), U], lambda x: x * np.float32(3)),
    Case("InplaceDiv", [(2, 3), numbers(3, low=0.5, high=2), U], np.divide),
    Case("InplaceDivs", [(2, 3), K(4), U], lambda x: x / np.float32(4)),
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

X, Y = np.array([1, 2, 3], np.float32), np.array([3, 2, 1], np.float32)


def comparison(tensors: str, scalars: str, fn: Callable[..., object]) -> list[Case]:
    """Of floats, of integers of two widths, with a number, and of types that do not fit."""
    return [
        Case(tensors, [X, Y], fn, dynamic=True),
        Case(tensors, [X.astype(I32), Y.astype(I64)], fn),
        Case(tensors, [numbers(2, 3), K(np.array(0, I32))], lambda x: fn(x, 0)),
        Case(tensors, [X.astype(F16), Y.astype(F16)], fn),
        Case(scalars, [X, K(2)], lambda x: fn(x, 2)),
        Case(scalars, [X.astype(I32), K(2)], lambda x: fn(x, 2)),
        Case(scalars, [X.astype(I32), K(1.5)], lambda x: fn(x, 1.5)),
        Case(scalars, [X, S(2.0)], fn),
    ]


LOGIC = [
    *comparison("Equal", "EqScalar", np.equal),
    *comparison("NotEqual", "NeScalar", np.not_equal),
    *comparison("Greater", "GreaterScalar", np.greater),
    *comparison("GreaterEqual", "GreaterEqualScalar", np.greater_equal),
    *comparison("Less", "LessScalar", np.less),
    *comparison("LessEqual", "LessEqualScalar", np.less_equal),
    Case("Equal", [truths(5), truths(5, seed=1)], np.equal),
    Case("LogicalAnd", [truths(2, 3), truths(3, seed=1)], np.logical_and),
    Case("LogicalOr", [truths(2, 3), truths(3, seed=1)], np.logical_or),
    Case("LogicalXor", [truths(2, 3), truths(3, seed=1)], np.logical_xor),
    Case("LogicalAnd", [truths(2, 3), K(True)], lambda x: x),
    Case("BitwiseAnd", [A, B], np.bitwise_and),
    Case("BitwiseOr", [A.astype(I64), B.astype(I64)], np.bitwise_or),
    Case("BitwiseXor", [A, B], np.bitwise_xor),
    Case("BitwiseAnd", [truths(5), truths(5, seed=1)], np.bitwise_and),
    Case("BitwiseOr", [truths(5), truths(5, seed=1)], np.bitwise_or),
    Case("BitwiseXor", [truths(5), truths(5, seed=1)], np.bitwise_xor),
    Case("Select", [truths(2, 3), (2, 3), (2, 3)], np.where),
    Case("Select", [truths(2, 1), (2, 3), (3,)], np.where),
    Case("SelectV2", [truths(2, 3), (2, 3), K(np.array(0, I32))],
         lambda c, x: np.where(c, x, np.float32(0))),
    Case("Select", [truths(4), numbers(4, high=9, dtype=I64), numbers(4, high=9, dtype=I64)],
         np.where),
    Case("MaskedFill", [(2, 3), truths(2, 3), K(np.array(-1e9, np.float32))],
         lambda x, m: np.where(m, np.float32(-1e9), x)),
    Case("MaskedFill", [(2, 3), truths(3), K(0)], lambda x, m: np.where(m, np.float32(0), x)),
    Case("MaskedFill", [numbers(3, dtype=F16), truths(3), K(np.array(2, np.float32))],
         lambda x, m: np.where(m, F16(2), x)),
    Case("MaskedFillScalar", [(2, 3), truths(2, 3), K(-2.5)],
         lambda x, m: np.where(m, np.float32(-2.5), x)),
]  # fmt: skip

TYPES = [
    Case("Cast", [(2, 3), K(34)], lambda x: x.astype(I32)),
    Case("Cast", [(2, 3), K(35)], lambda x: x.astype(I64)),
    Case("Cast", [(2, 3), K(42)], lambda x: x.astype(F16)),
    Case("Cast", [(2, 3), K(43)], lambda x: x),
    Case("Cast", [(2, 3), K(44)], lambda x: x.astype(np.float64)),
    Case("Cast", [numbers(4, low=-1, high=2, dtype=I32), K(30)], lambda x: x.astype(np.bool_)),
    Case("Cast", [truths(4), K(43)], lambda x: x.astype(np.float32)),
    Case("Cast", [(2, 3), K(BY_NAME["float16"])], lambda x: x.astype(F16)),  # as old files do
    Case("Cast", [K(np.array([1, 2], I32)), K(43)], lambda: np.array([1, 2], np.float32)),
    Case("Cast", [numbers(4, high=9, dtype=I64), K(37)], lambda x: x.astype(np.uint8)),
    Case("ToDtype", [(2, 3), K(34)], lambda x: x.astype(I32)),
    Case("TypeAs", [(2, 3), numbers(1, dtype=F16)], lambda x, like: x.astype(F16)),
    Case("TypeAs", [(2, 3), (1,)], lambda x, like: x),
    Case("ScalarToTensor", [K(3), K(43)], lambda: np.float32(3)),
    Case("ScalarToTensor", [K(3)], lambda: np.int64(3)),
    Case("ScalarToTensor", [S(3), K(34)], I32),
]

CASES = [*UNARY, *BINARY, *SCALED, *DIVISION, *LOGIC, *TYPES]
