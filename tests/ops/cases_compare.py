"""Rows for ops/compare.py."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from support.op_case import Case, K, S, numbers, truths

F16, I32, I64 = np.float16, np.int32, np.int64
A = np.array([-7, -6, -1, 0, 1, 6, 7, 7], I32)
B = np.array([2, -3, 4, 5, -5, 3, -2, 7], I32)

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

ODD = np.array([1, 1.00001, np.nan, np.inf, -np.inf, 100], np.float32)
OTHER = np.array([1, 1, np.nan, np.inf, np.inf, 101], np.float32)
SHIFTED = np.array([-9, -1, 0, 3, 100], I32), np.array([1, 3, 2, 4, 5], I32)

MORE = [
    Case("Greater", [truths(5), truths(5, seed=1)], np.greater),
    Case("EqualExt", [X, X], lambda x, y: np.array([True]), dynamic=True),
    Case("EqualExt", [X, Y], lambda x, y: np.array([False])),
    Case("EqualExt", [X[:1], np.array([1, 1, 1], np.float32)], lambda x, y: np.array([False])),
    Case("EqualExt", [X, X[None]], lambda x, y: np.array([False])),
    Case("ApproximateEqual", [X, Y], lambda x, y: np.abs(x - y) < 0.5, {"tolerance": 0.5}),
    Case("IsClose", [ODD, OTHER], np.isclose,
         {"rtol": 1e-5, "atol": 1e-8, "equal_nan": False}, dynamic=True),
    Case("IsClose", [ODD, OTHER], lambda x, y: np.isclose(x, y, rtol=0.1, equal_nan=True),
         {"rtol": 0.1, "atol": 1e-8, "equal_nan": True}),
    Case("IsClose", [A, B], np.isclose),
    Case("Heaviside", [np.array([-1, 0, 2], np.float32), K(np.array([0.5], np.float32))],
         lambda x: np.heaviside(x, np.float32(0.5))),
    *[Case(f"Bitwise{name}Tensor", [A, B], fn) for name, fn in
      (("And", np.bitwise_and), ("Or", np.bitwise_or), ("Xor", np.bitwise_xor))],
    Case("BitwiseAndScalar", [A, K(3)], lambda x: x & I32(3)),
    Case("BitwiseOrScalar", [A, K(3)], lambda x: x | I32(3)),
    Case("BitwiseXorScalar", [truths(4), K(True)], np.logical_not),
    Case("BitwiseNot", [A], np.invert),
    Case("Invert", [A], np.invert),
    Case("BitwiseNot", [truths(4)], np.logical_not),
    Case("LeftShift", SHIFTED, np.left_shift, dynamic=True),
    Case("RightShift", SHIFTED, np.right_shift),
    Case("LeftShift", [v.astype(np.int8) for v in SHIFTED], np.left_shift),
    Case("RightShift", [np.array([200, 7], np.uint8), np.array([1, 2], np.uint8)], np.right_shift),
    Case("MaskedFill", [(2, 3), truths(2, 3), ()], lambda x, m, v: np.where(m, v, x)),
]  # fmt: skip

CASES = [*LOGIC, *MORE]
