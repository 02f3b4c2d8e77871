"""Activations of ONNX as MindSpore primitives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mindspore_lite.ops.backwards.pen import Made, Operand, Pen
from mindspore_lite.ops.backwards.table import back


def scalar(value: float, like: Operand) -> np.ndarray:
    """A number of the same type."""
    return np.asarray(value, like.dtype)


@back("HardSwish")
def hard_swish(p: Pen, x: Operand) -> Made:
    """x times a straight line within 0 and 1."""
    return p.call("HSwish", x)


@back("HardSigmoid")
def hard_sigmoid(p: Pen, x: Operand, *, alpha: float = 0.2, beta: float = 0.5) -> Made:
    """A straight line within 0 and 1; MindSpore's has a slope of 1/6."""
    if np.float32(alpha) == np.float32(1 / 6) and beta == 0.5:
        return p.call("HSigmoid", x)
    line = p.call("Add", p.call("Mul", x, scalar(alpha, x)), scalar(beta, x))
    return p.call("ClampScalar", line, 0.0, 1.0)


@back("Softmax")
def softmax(p: Pen, x: Operand, *, axis: int = -1) -> Made:
    """Along one axis."""
    return p.call("Softmax", x, (axis,))


@back("LogSoftmax")
def log_softmax(p: Pen, x: Operand, *, axis: int = -1) -> Made:
    """Along one axis."""
    return p.call("LogSoftmax", x, axis)


@back("Gelu")
def gelu(p: Pen, x: Operand, *, approximate: str = "none") -> Made:
    """The exact one in the order that ONNX Runtime takes for one operator."""
    if approximate == "tanh":
        return p.call("GeLU", x)
    bell = p.call("Erf", p.call("Div", x, scalar(math.sqrt(2), x)))
    share = p.call("Mul", x, p.call("Add", bell, scalar(1, x)))
    return p.call("Mul", share, scalar(0.5, x))


@back("Clip")
def clip(p: Pen, x: Operand, low: Operand | None = None, high: Operand | None = None) -> Made:
    """Within bounds, each of which may be missing."""
    bounds = [v for v in (low, high) if v is not None]
    if any(v.const is None for v in bounds) or x.dtype == np.float64:  # scalars are float32
        made: Any = x if low is None else p.call("Maximum", x, low)
        return made if high is None else p.call("Minimum", made, high)
    least, most = (None if v is None else v.number() for v in (low, high))
    if (least, most) == (0, 6):
        return p.call("ReLU6", x)
    return p.call("ClampScalar", x, least, most) if bounds else p.call("TensorMove", x)
