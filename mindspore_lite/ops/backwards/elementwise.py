"""Elementwise ONNX operators as MindSpore primitives."""

from __future__ import annotations

from mindspore_lite.ops.backwards.pen import Made, Operand, Pen
from mindspore_lite.ops.backwards.table import Writer, back

_UNARY = {  # ONNX operator: the primitive that computes just that
    "Abs": "Abs", "Acos": "ACos", "Acosh": "Acosh", "Asin": "Asin", "Asinh": "Asinh",
    "Atan": "Atan", "Atanh": "Atanh", "Ceil": "Ceil", "Cos": "Cos", "Cosh": "Cosh", "Erf": "Erf",
    "Exp": "Exp", "Floor": "Floor", "Neg": "Neg", "Relu": "ReLU", "Sigmoid": "Sigmoid",
    "Sign": "Sign", "Sin": "Sin", "Sinh": "Sinh", "Sqrt": "Sqrt", "Tan": "Tan", "Tanh": "Tanh",
}  # fmt: skip
_BINARY = {"Add": "Add", "Sub": "Sub", "Mul": "Mul"}


def _unary(primitive: str) -> Writer:
    def write(p: Pen, x: Operand) -> Made:
        return p.call(primitive, x)

    return write


def _binary(primitive: str) -> Writer:
    def write(p: Pen, a: Operand, b: Operand) -> Made:
        return p.call(primitive, a, b)

    return write


for _onnx, _primitive in _UNARY.items():
    back(_onnx)(_unary(_primitive))
for _onnx, _primitive in _BINARY.items():
    back(_onnx)(_binary(_primitive))
