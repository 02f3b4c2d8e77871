"""Elementwise operators."""

import numpy as np
from support.onnx_case import OnnxCase

_X = np.random.default_rng(0).uniform(0.1, 0.9, (2, 3)).astype(np.float32)
_UNARY = [
    "Abs", "Acos", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Floor",
    "Neg", "Relu", "Sigmoid", "Sign", "Sin", "Sinh", "Sqrt", "Tan", "Tanh",
]  # fmt: skip

CASES = [
    *[OnnxCase(op_type, [_X - 0.5 if op_type != "Sqrt" else _X]) for op_type in _UNARY],
    OnnxCase("Acosh", [_X + 1]),
    *[OnnxCase(op_type, [_X, _X[:1]], primitives={op_type}) for op_type in ("Add", "Sub", "Mul")],
    OnnxCase("Mul", [_X, _X], open_dims=True, constants=[1]),
]
