"""Elementwise arithmetic of ONNX as MindSpore primitives."""

from __future__ import annotations

from typing import Any

import numpy as np

from mindspore_lite.ops.to_mindir.table import Writer, back
from mindspore_lite.ops.to_mindir.writer import Made, MindirWriter, Operand

_UNARY = {  # ONNX operator: the primitive that computes just that
    "Abs": "Abs", "Acos": "ACos", "Acosh": "Acosh", "Asin": "Asin", "Asinh": "Asinh",
    "Atan": "Atan", "Atanh": "Atanh", "Ceil": "Ceil", "Cos": "Cos", "Cosh": "Cosh", "Erf": "Erf",
    "Exp": "Exp", "Floor": "Floor", "IsNaN": "IsNan", "Log": "Log", "Neg": "Neg",
    "Reciprocal": "Reciprocal", "Relu": "ReLU", "Round": "Rint", "Sigmoid": "Sigmoid",
    "Sign": "Sign", "Sin": "Sin", "Sinh": "Sinh", "Sqrt": "Sqrt", "Tan": "Tan", "Tanh": "Tanh",
}  # fmt: skip
_BINARY = {"Add": "Add", "Sub": "Sub", "Mul": "Mul"}


def unary(primitive: str) -> Writer:
    """A primitive of one tensor."""

    def write(p: MindirWriter, x: Operand) -> Made:
        return p.call(primitive, x)

    return write


def binary(primitive: str) -> Writer:
    """A primitive of two tensors, broadcast."""

    def write(p: MindirWriter, a: Operand, b: Operand) -> Made:
        return p.call(primitive, a, b)

    return write


for _onnx, _primitive in _UNARY.items():
    back(_onnx)(unary(_primitive))
for _onnx, _primitive in _BINARY.items():
    back(_onnx)(binary(_primitive))


def is_float(x: Operand) -> bool:
    """Whether a tensor holds floats; bfloat16 is of kind V to NumPy."""
    return x.dtype.kind in "fV"


@back("Div")
def div(p: MindirWriter, a: Operand, b: Operand) -> Made:
    """Integers are divided towards zero; MindSpore's Div would make floats of them."""
    return p.call("Div" if is_float(a) else "TruncateDiv", a, b)


@back("Mod")
def mod(p: MindirWriter, a: Operand, b: Operand, *, fmod: int = 0) -> Made:
    """The rest has the divisor's sign, or with fmod the dividend's."""
    return p.call("TruncateMod" if fmod else "FloorMod", a, b)


@back("Pow")
def power(p: MindirWriter, a: Operand, b: Operand) -> Made:
    """The result has the type of the base; types that differ meet in float64."""
    if a.dtype == b.dtype:
        return p.call("Pow", a, b)
    if is_float(a) and (held := b.const) is not None and (held == held.astype(a.dtype)).all():
        return p.call("Pow", a, held.astype(a.dtype))
    return p.cast(p.call("Pow", p.cast(a, np.float64), p.cast(b, np.float64)), a.dtype)


def _folded(primitive: str) -> Writer:
    def write(p: MindirWriter, *inputs: Operand) -> Any:
        if len(inputs) == 1:
            return p.call("TensorMove", *inputs)
        made: Any = inputs[0]
        for other in inputs[1:]:
            made = p.call(primitive, made, other)
        return made

    return write


back("Max")(_folded("Maximum"))
back("Min")(_folded("Minimum"))


@back("Sum")
def sum_(p: MindirWriter, *inputs: Operand) -> Any:
    """AddN takes tensors of one shape alone."""
    shapes = {x.dims for x in inputs}
    if len(inputs) > 2 and len(shapes) == 1 and None not in (*shapes, *inputs[0].shape):
        return p.call("AddN", p.tuple(inputs))
    return _folded("Add")(p, *inputs)


@back("Mean")
def mean(p: MindirWriter, *inputs: Operand) -> Made:
    """The sum by the number of tensors."""
    return p.call("Div", sum_(p, *inputs), np.asarray(len(inputs), inputs[0].dtype))


@back("IsInf")
def is_inf(
    p: MindirWriter, x: Operand, *, detect_negative: int = 1, detect_positive: int = 1
) -> Made:
    """Both infinities, or the one that is asked for."""
    if detect_negative and detect_positive:
        return p.call("IsInf", x)
    p.require(detect_negative or detect_positive, "no infinity is looked for")
    return p.call("Equal", x, np.asarray(-np.inf if detect_negative else np.inf, x.dtype))


@back("Cast")
def cast(
    p: MindirWriter, x: Operand, *, to: int, saturate: int = 1, round_mode: str = "up"
) -> Made:
    """The last two attributes speak of float8 alone, which has no primitive."""
    return p.cast(x, p.out.dtype)


@back("CastLike")
def cast_like(
    p: MindirWriter, x: Operand, like: Operand, *, saturate: int = 1, round_mode: str = "up"
) -> Made:
    """The type is known now."""
    return p.cast(x, like.dtype)
