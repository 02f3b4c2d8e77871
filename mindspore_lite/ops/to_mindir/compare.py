"""Comparison, logic, bits and choosing by a condition, as MindSpore primitives."""

from __future__ import annotations

from mindspore_lite.ops.to_mindir.elementwise import binary, unary
from mindspore_lite.ops.to_mindir.table import back
from mindspore_lite.ops.to_mindir.writer import Made, MindirWriter, Operand

_BINARY = {  # ONNX operator: the primitive that computes just that
    "Equal": "Equal", "Greater": "Greater", "GreaterOrEqual": "GreaterEqual", "Less": "Less",
    "LessOrEqual": "LessEqual", "And": "LogicalAnd", "Or": "LogicalOr", "Xor": "LogicalXor",
    "BitwiseAnd": "BitwiseAnd", "BitwiseOr": "BitwiseOr", "BitwiseXor": "BitwiseXor",
}  # fmt: skip

for _onnx, _primitive in _BINARY.items():
    back(_onnx)(binary(_primitive))
for _onnx, _primitive in {"Not": "LogicalNot", "BitwiseNot": "Invert"}.items():
    back(_onnx)(unary(_primitive))


@back("Where")
def where(p: MindirWriter, condition: Operand, x: Operand, y: Operand) -> Made:
    """x where the condition holds, else y."""
    return p.call("Select", condition, x, y)


@back("BitShift")
def bit_shift(p: MindirWriter, x: Operand, y: Operand, *, direction: str) -> Made:
    """ONNX shifts unsigned numbers alone."""
    return p.call("LeftShift" if direction == "LEFT" else "RightShift", x, y)
