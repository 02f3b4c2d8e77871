"""Activations of ONNX as MindSpore primitives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mindspore_lite.ops.to_mindir.table import Writer, back
from mindspore_lite.ops.to_mindir.writer import Made, MindirWriter, Operand, tensor_type, type_id


def scalar(value: float, like: Operand) -> np.ndarray:
    """A number of the same type."""
    return np.asarray(value, like.dtype)


def _same(primitive: str) -> Writer:
    def write(p: MindirWriter, x: Operand) -> Made:
        return p.call(primitive, x)

    return write


for _onnx, _primitive in {
    "HardSwish": "HSwish", "Mish": "Mish", "Softplus": "Softplus", "Softsign": "Softsign",
}.items():  # fmt: skip
    back(_onnx)(_same(_primitive))


@back("HardSigmoid")
def hard_sigmoid(p: MindirWriter, x: Operand, *, alpha: float = 0.2, beta: float = 0.5) -> Made:
    """A straight line within 0 and 1; MindSpore's has a slope of 1/6."""
    if np.float32(alpha) == np.float32(1 / 6) and beta == 0.5:
        return p.call("HSigmoid", x)
    line = p.call("Add", p.call("Mul", x, scalar(alpha, x)), scalar(beta, x))
    return p.call("ClampScalar", line, 0.0, 1.0)


@back("Softmax")
def softmax(p: MindirWriter, x: Operand, *, axis: int = -1) -> Made:
    """Along one axis."""
    return p.call("Softmax", x, (axis,))


@back("LogSoftmax")
def log_softmax(p: MindirWriter, x: Operand, *, axis: int = -1) -> Made:
    """Along one axis."""
    return p.call("LogSoftmax", x, axis)


@back("Gelu")
def gelu(p: MindirWriter, x: Operand, *, approximate: str = "none") -> Made:
    """The exact one in the order that ONNX Runtime takes for one operator."""
    if approximate == "tanh":
        return p.call("GeLU", x)
    bell = p.call("Erf", p.call("Div", x, scalar(math.sqrt(2), x)))
    share = p.call("Mul", x, p.call("Add", bell, scalar(1, x)))
    return p.call("Mul", share, scalar(0.5, x))


@back("Clip")
def clip(
    p: MindirWriter, x: Operand, low: Operand | None = None, high: Operand | None = None
) -> Made:
    """Within bounds, each of which may be missing."""
    bounds = [v for v in (low, high) if v is not None]
    if not bounds:
        return p.call("TensorMove", x)
    if any(v.const is None for v in bounds) or x.dtype == np.float64:  # scalars are float32
        made: Any = x if low is None else p.call("Maximum", x, low)
        return made if high is None else p.call("Minimum", made, high)
    least, most = (None if v is None else v.number() for v in (low, high))
    if (least, most) == (0, 6):
        return p.call("ReLU6", x)
    return p.call("ClampScalar", x, least, most)


# --- below zero -----------------------------------------------------------------------------------


@back("Elu")
def elu(p: MindirWriter, x: Operand, *, alpha: float = 1.0) -> Made:
    """alpha * (exp(x) - 1) below zero."""
    return p.call("Elu", x, alpha)


@back("Selu")
def selu(
    p: MindirWriter, x: Operand, *, alpha: float = 1.67326319, gamma: float = 1.05070102
) -> Made:
    """Elu times a factor; the usual two numbers have a primitive."""
    if np.allclose([alpha, gamma], [1.67326324, 1.05070098], rtol=1e-6):
        return p.call("SeLU", x)
    # with its type said, as MindSpore infers none for other slopes than 1
    steep = p.call("Elu", x, alpha, type=tensor_type(x.value))
    return p.call("Mul", steep, scalar(gamma, x))


@back("Celu")
def celu(p: MindirWriter, x: Operand, *, alpha: float = 1.0) -> Made:
    """alpha * (exp(x / alpha) - 1) below zero."""
    return p.call("CeLU", x, alpha)


@back("LeakyRelu")
def leaky_relu(p: MindirWriter, x: Operand, *, alpha: float = 0.01) -> Made:
    """PReLU with one slope, which is read as LeakyRelu again."""
    if x.rank > 1:
        return p.call("PReLU", x, np.asarray([alpha], x.dtype))
    return _steep(p, x, scalar(alpha, x))


@back("PRelu")
def prelu(p: MindirWriter, x: Operand, slope: Operand) -> Made:
    """One slope for all or one per channel has a primitive."""
    dims = (1,) * (x.rank - slope.rank) + slope.shape
    if x.rank > 1 and all(d == 1 for axis, d in enumerate(dims) if axis != 1):
        return p.call("PReLU", x, p.call("Reshape", slope, (-1,)))
    return _steep(p, x, slope)


def _steep(p: MindirWriter, x: Operand, slope: Any) -> Made:
    below = p.call("Less", x, scalar(0, x))
    return p.call("Select", below, p.call("Mul", x, slope), x)


# --- thresholds -----------------------------------------------------------------------------------


@back("ThresholdedRelu")
def thresholded_relu(p: MindirWriter, x: Operand, *, alpha: float = 1.0) -> Made:
    """x above alpha, else zero."""
    return p.call("Select", p.call("Greater", x, scalar(alpha, x)), x, scalar(0, x))


@back("Shrink")
def shrink(p: MindirWriter, x: Operand, *, bias: float = 0.0, lambd: float = 0.5) -> Made:
    """Zero within [-lambd, lambd], and the rest moved towards zero by the bias."""
    if x.dtype.kind == "f" and lambd >= 0 and bias in (0, lambd):
        return p.call("SoftShrink" if bias else "HShrink", x, lambd)
    p.require(x.dtype.kind == "f", "integers")
    above = p.call("Select", p.call("Greater", x, scalar(lambd, x)),
                   p.call("Sub", x, scalar(bias, x)), scalar(0, x))  # fmt: skip
    below = p.call("Less", x, scalar(-lambd, x))
    return p.call("Select", below, p.call("Add", x, scalar(bias, x)), above)


@back("Swish")
def swish(p: MindirWriter, x: Operand, *, alpha: float = 1.0) -> Made:
    """x * sigmoid(alpha * x)."""
    if alpha == 1:
        return p.call("SiLU", x)
    return p.call("Mul", x, p.call("Sigmoid", p.call("Mul", x, scalar(alpha, x))))


@back("Hardmax")
def hardmax(p: MindirWriter, x: Operand, *, axis: int = -1) -> Made:
    """One at the first largest along an axis, else zero."""
    depth = x.shape[axis]
    p.require(depth is not None, "sizes known only at run time")
    at = p.call("Argmax", x, axis, type_id(np.dtype(np.int64)))
    where = axis % x.rank
    return p.call("OneHot", at, depth, scalar(1, x), scalar(0, x),
                  -1 if where == x.rank - 1 else where)  # fmt: skip


@back("Dropout")
def dropout(
    p: MindirWriter, x: Operand, ratio: Operand | None = None, training: Operand | None = None, *,
    seed: int = 0,
) -> Any:  # fmt: skip
    """Nothing in inference; the mask keeps all."""
    p.require(training is None or not training.number(), "training_mode")
    y = p.call("TensorMove", x)
    return (y, p.cast(p.call("OnesLike", x), np.bool_)) if p.used(1) else y
