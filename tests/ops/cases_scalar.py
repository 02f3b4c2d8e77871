"""Rows for ops/scalar.py."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from support.op_case import Case, K, S, T

I64, F32 = np.int64, np.float32


def integer(fn: Any) -> Any:
    return lambda *args: np.asarray(fn(*args), I64)


def floating(fn: Any) -> Any:
    return lambda *args: np.asarray(fn(*args), F32)


def truth(fn: Any) -> Any:
    return lambda *args: np.asarray(fn(*args), np.bool_)


CASES = [
    *[
        Case(name, inputs, kind(fn))
        for name, fn in {
            "ScalarAdd": operator.add,
            "ScalarSub": operator.sub,
            "ScalarMul": operator.mul,
            "ScalarFloorDiv": operator.floordiv,
            "ScalarMod": operator.mod,
            "ScalarMax": max,
            "ScalarMin": min,
        }.items()
        for inputs, kind in [
            ([S(-7), S(2)], integer),
            ([S(7), S(-3)], integer),
            ([S(-7.5), S(2.0)], floating),
        ]
    ],
    Case("ScalarAdd", [S(3), K(2)], lambda x: np.asarray(5, I64)),
    Case("ScalarAdd", [S(3), K(2.5)], lambda x: np.asarray(5.5, F32)),
    Case("ScalarAdd", [K(3), K(2)], lambda: np.asarray(5, I64)),
    Case("ScalarFloorDiv", [K(-7), K(2)], lambda: np.asarray(-4, I64)),
    Case("ScalarDiv", [S(7), S(2)], floating(operator.truediv)),
    Case("ScalarDiv", [K(7), K(2)], lambda: np.asarray(3.5, F32)),
    Case("ScalarPow", [S(3), S(4)], integer(operator.pow)),
    Case("ScalarPow", [S(2.0), S(0.5)], floating(operator.pow)),
    Case("ScalarPow", [K(3), K(4)], lambda: np.asarray(81, I64)),
    *[
        Case(name, [S(a), S(b)], truth(fn))
        for name, fn in {
            "ScalarEq": operator.eq,
            "ScalarNe": operator.ne,
            "ScalarGt": operator.gt,
            "ScalarLt": operator.lt,
            "ScalarGe": operator.ge,
            "ScalarLe": operator.le,
        }.items()
        for a, b in [(1, 2), (2, 2), (2.5, 2)]
    ],
    Case("ScalarLt", [K(1), K(2)], lambda: np.asarray(True)),
    *[
        Case(name, [S(True), S(b)], truth(fn))
        for name, fn in {
            "bool_and": operator.and_,
            "bool_or": operator.or_,
            "bool_eq": operator.eq,
        }.items()
        for b in (True, False)
    ],
    *[
        Case(name, inputs, lambda *_, fn=fn: np.asarray(fn(12, 10), I64))
        for name, fn in {
            "bit_and": operator.and_,
            "bit_or": operator.or_,
            "bit_xor": operator.xor,
        }.items()
        for inputs in ([S(12), S(10)], [K(12), K(10)])
    ],
    Case("BoolNot", [S(True)], truth(operator.not_)),
    Case("bool_not", [S(True)], truth(operator.not_)),
    Case("bool_not", [K(False)], lambda: np.asarray(True)),
    Case("ScalarBool", [S(2)], truth(bool)),
    Case("ScalarBool", [S(0.0)], truth(bool)),
    Case("ScalarBool", [K(3)], lambda: np.asarray(True)),
    Case("ScalarUadd", [S(-3)], integer(operator.pos)),
    Case("ScalarUsub", [S(-3)], integer(operator.neg)),
    Case("ScalarUsub", [K(3)], lambda: np.asarray(-3, I64)),
    Case("ScalarLog", [S(2.5)], floating(math.log)),
    Case("ScalarLog", [K(2.5)], lambda: np.asarray(math.log(2.5), F32)),
    Case("ScalarCast", [S(3), K(43)], floating(float)),
    Case("ScalarCast", [S(3.7), K(35)], integer(int)),
    Case("ScalarCast", [K(3.7), K(35)], lambda: np.asarray(3, I64)),
    Case("ScalarCast", [K(3), K(30)], lambda: np.asarray(True)),
    Case("TensorToScalar", [np.asarray([5], I64)], lambda x: x[0]),
    Case("TensorToScalar", [np.asarray(2.5, F32)], lambda x: x),
    Case("TensorToScalar", [K(np.asarray(2.5, F32))], lambda: np.asarray(2.5, F32)),
    *[
        Case(name, inputs, wants)
        for name in ("TupleToTensor", "ListToTensor")
        for inputs, wants in [
            ([T(S(1), K(2)), K(34)], lambda items: np.asarray([1, 2], np.int32)),
            ([T(S(1), S(2))], lambda items: np.asarray([1, 2], I64)),
            ([K((1, 2.5)), K(43)], lambda: np.asarray([1, 2.5], F32)),
        ]
    ],
    *[
        Case(name, inputs, wants)
        for name in ("TensorToTuple", "TensorToList")
        for inputs, wants in [
            ([np.asarray([4, 5], I64)], lambda x: (x[0], x[1])),
            ([K(np.asarray([4, 5], I64))], lambda: (np.asarray(4), np.asarray(5))),
        ]
    ],
]
