"""Rows for ops/elementwise.py."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from support.op_case import Case, K, S, numbers, truths

from mindspore_lite.core.dtypes import BY_NAME

F16, I32, I64 = np.float16, np.int32, np.int64


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

ODD = np.array([np.nan, np.inf, -np.inf, -0.0, 1.5], np.float32)
INTS = numbers(5, low=1, high=9, dtype=I32)
TINY = np.array([1e-9, -1e-7, 1e-4, -3e-5], np.float32)


def as_float(fn: Callable[..., object]) -> Callable[..., object]:
    """Of integers, computed in float32."""
    return lambda x: fn(x.astype(np.float32))


MORE = [
    *unary("AsinExt", np.arcsin, -0.9, 0.9),
    *unary("AcosExt", np.arccos, -0.9, 0.9),
    *unary("AtanExt", np.arctan),
    *unary("AsinhExt", np.arcsinh),
    *unary("AcoshExt", np.arccosh, 1.1, 4),
    *unary("Exp2", np.exp2),
    *unary("Log2", np.log2, 0.1, 4),
    *unary("Log10", np.log10, 0.1, 4),
    *unary("Sinc", lambda x: np.sinc(x).astype(x.dtype)),
    *unary("Frac", lambda x: x - np.trunc(x), -5, 5),
    Case("Sinc", [np.array([0, 1, 0.5], np.float32)], lambda x: np.sinc(x).astype(x.dtype)),
    Case("Exp", [INTS], as_float(np.exp)),
    Case("Sqrt", [INTS], as_float(np.sqrt)),
    Case("Log1p", [INTS], as_float(np.log1p)),
    Case("Log2", [INTS], as_float(np.log2)),
    Case("Floor", [INTS], lambda x: x),
    Case("Expm1", [TINY], np.expm1, loose=0.01),
    Case("Log1p", [TINY], np.log1p, loose=0.01),
    Case("Expm1", [numbers(5, dtype=np.float64)], np.expm1),
    Case("Log1p", [numbers(5, low=0, dtype=np.float64)], np.log1p),
    Case("Round", [INTS, K(1)], lambda x: x),
    Case("Exp", [(4,)], lambda x: np.float32(2) ** (3 * x + 1),
         {"base": 2.0, "scale": 3.0, "shift": 1.0}),
    Case("Log", [numbers(4, low=0.5, high=3)], lambda x: np.log10(2 * x + 1),
         {"base": 10.0, "scale": 2.0, "shift": 1.0}),
    Case("Log", [numbers(4, low=0.5, high=3)], np.log,
         {"base": -1.0, "scale": 1.0, "shift": 0.0}),
    Case("Logit", [numbers(5, low=0, high=1)],
         lambda x: np.log(np.clip(x, 0.1, 0.9) / (1 - np.clip(x, 0.1, 0.9))), {"eps": 0.1}),
    Case("Logit", [numbers(5, low=0.1, high=0.9)], lambda x: np.log(x / (1 - x)), {"eps": -1.0}),
    Case("IsFinite", [ODD], np.isfinite, dynamic=True),
    Case("IsNegInf", [ODD], np.isneginf),
    Case("IsFinite", [INTS], np.isfinite),
    Case("IsNan", [INTS], np.isnan),
    Case("NanToNum", [ODD], np.nan_to_num, {"nan": None, "posinf": None, "neginf": None}),
    Case("NanToNum", [ODD], lambda x: np.nan_to_num(x, nan=1, posinf=2, neginf=3),
         {"nan": 1.0, "posinf": 2.0, "neginf": 3.0}, dynamic=True),
    Case("NanToNum", [ODD.astype(F16)], np.nan_to_num),
    Case("NanToNum", [INTS], lambda x: x),
]  # fmt: skip

CASES = [*UNARY, *TYPES, *MORE]
