"""Activations."""

from __future__ import annotations

import numpy as np

from mindspore_lite.ops.arguments import axis_of, ints, number, same_type
from mindspore_lite.ops.elementwise import same
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape, constant_of, dtype_argument

for primitive, onnx_name in {
    "ReLU": "Relu", "Sigmoid": "Sigmoid", "Tanh": "Tanh", "Erf": "Erf", "Softsign": "Softsign",
    "SeLU": "Selu", "SeLUExt": "Selu", "Mish": "Mish", "MishExt": "Mish", "Softplus": "Softplus",
    "HSwish": "HardSwish", "ReLUV3": "Relu",
}.items():  # fmt: skip
    op(primitive)(same(onnx_name))


@op("ReLU6")
def relu6(t: Tape, x: Val) -> Val:
    """min(max(x, 0), 6)."""
    return clip(t, x, 0, 6)


def clip(t: Tape, x: Val, low: Val, high: Val) -> Val:
    """x bounded by numbers of its own type; None is no bound."""
    dtype = t.dtype(x)
    return t.op("Clip", [x, *(None if v is None else np.asarray(v, dtype) for v in (low, high))])


@op("HSigmoid")
def hard_sigmoid(t: Tape, x: Val) -> Val:
    """x / 6 + 0.5, within 0 and 1."""
    return t.op("HardSigmoid", [x], alpha=1 / 6, beta=0.5)


@op("SiLU")
def silu(t: Tape, x: Val) -> Val:
    """x * sigmoid(x)."""
    return t.op("Mul", [x, t.op("Sigmoid", [x])])


@op("GeLU", "Gelu")
def gelu_tanh(t: Tape, x: Val) -> Val:
    """The tanh approximation."""
    return t.op("Gelu", [x], approximate="tanh")


@op("GeluExt", "NpuGelu")
def gelu(t: Tape, x: Val, approximate: Val = 0) -> Val:
    """0 or 'none': exact; 1 or 'tanh'."""
    return t.op("Gelu", [x], approximate="tanh" if approximate in (1, "tanh") else "none")


@op("FastGeLU", "FastGelu")
def fast_gelu(t: Tape, x: Val) -> Val:
    """x * sigmoid(1.702 x)."""
    scaled = t.op("Mul", [x, np.asarray(1.702, t.dtype(x))])
    return t.op("Mul", [x, t.op("Sigmoid", [scaled])])


@op("Elu", "EluExt")
def elu(t: Tape, x: Val, *, alpha: Val = 1.0) -> Val:
    """alpha * (exp(x) - 1) below zero."""
    return t.op("Elu", [x], alpha=float(number(alpha, "alpha")))


@op("CeLU")
def celu(t: Tape, x: Val, *, alpha: Val = 1.0) -> Val:
    """alpha * (exp(x / alpha) - 1) below zero."""
    return t.op("Celu", [x], alpha=float(number(alpha, "alpha")))


@op("LeakyReLUExt", "LeakyRelu")
def leaky_relu(t: Tape, x: Val, *, negative_slope: Val = 0.01) -> Val:
    """slope * x below zero."""
    return t.op("LeakyRelu", [x], alpha=float(number(negative_slope, "negative_slope")))


@op("Threshold")
def threshold(t: Tape, x: Val, threshold: Val, value: Val) -> Val:
    """x where it is above the threshold, else the value."""
    bound, other = same_type(t, t.dtype(x), threshold, value)
    return t.op("Where", [t.op("Greater", [x, bound]), x, other])


@op("PReLU")
def prelu(t: Tape, x: Val, w: Val) -> Val:
    """One slope for all, or one per channel (axis 1)."""
    if (slope := constant_of(w)) is not None and slope.size == 1 and slope.dtype == np.float32:
        return t.op("LeakyRelu", [x], alpha=float(slope.item()))  # which fuses with convolutions
    return t.op("PRelu", [x, t.op("Reshape", [w, np.asarray([-1] + [1] * max(t.rank(x) - 2, 0))])])


@op("HShrink", "SoftShrink")
def shrink(t: Tape, x: Val, *, lambd: Val = 0.5) -> Val:
    """Zero within [-lambd, lambd]; SoftShrink also moves the rest towards zero."""
    bound = float(number(lambd, "lambd"))
    return t.op("Shrink", [x], lambd=bound, bias=bound if t.primitive == "SoftShrink" else 0.0)


@op("ClampScalar", "ClampTensor", "Hardtanh", "ClipByValue")
def clamp(t: Tape, x: Val, low: Val = None, high: Val = None) -> Val:
    """Bounds may be numbers, tensors or None."""
    dtype = t.result_dtype(x)
    x = t.cast(x, dtype)
    bounds = [None if v is None else constant_of(v) for v in (low, high)]
    known = all(b is not None or v is None for b, v in zip(bounds, (low, high), strict=True))
    if known and dtype == np.float32 and all(b is None or b.size == 1 for b in bounds):
        return clip(t, x, *(None if b is None else b.item() for b in bounds))
    if low is not None:
        x = t.op("Max", [x, t.cast(low, dtype)])
    return x if high is None else t.op("Min", [x, t.cast(high, dtype)])


@op("ClampMin", "ClampMax")
def clamp_one_side(t: Tape, x: Val, bound: Val) -> Val:
    """Not below a bound, or not above it."""
    low, high = (bound, None) if t.primitive == "ClampMin" else (None, bound)
    return clamp(t, x, low, high)


@op("SoftplusExt")
def softplus_ext(t: Tape, x: Val, beta: Val = 1, threshold: Val = 20) -> Val:
    """log(1 + exp(beta x)) / beta, and x itself where beta x is beyond the threshold."""
    slope, bound = number(beta, "beta"), number(threshold, "threshold")
    if slope == 1 and bound >= 20:  # both forms agree within rounding
        return t.op("Softplus", [x])
    factor, limit = (np.asarray(v, t.dtype(x)) for v in (slope, bound))
    steep = t.op("Mul", [x, factor])
    soft = t.op("Div", [t.op("Softplus", [steep]), factor])
    return soft if bound >= 20 else t.op("Where", [t.op("Greater", [steep, limit]), x, soft])


def softmax_along(t: Tape, onnx_name: str, x: Val, axis: Val) -> Val:
    """ONNX Softmax or LogSoftmax; a 0-d tensor has one axis here, of one element."""
    if t.rank(x) > 0:
        return t.op(onnx_name, [x], axis=axis_of(t, x, axis))
    found = t.op(onnx_name, [t.op("Reshape", [x, np.asarray([1])])], axis=0)
    return t.op("Reshape", [found, np.asarray([], np.int64)])


@op("Softmax")
def softmax(t: Tape, x: Val, *, axis: Val = (-1,)) -> Val:
    """Along one axis, or over several at once."""
    axes = ints(axis, "axis")
    if len(axes) == 1:
        return softmax_along(t, "Softmax", x, axes[0])
    over = np.asarray([axis_of(t, x, a) for a in axes])
    power = t.op("Exp", [t.op("Sub", [x, t.op("ReduceMax", [x, over], keepdims=1)])])
    return t.op("Div", [power, t.op("ReduceSum", [power, over], keepdims=1)])


@op("LogSoftmax")
def log_softmax(t: Tape, x: Val, *, axis: Val = -1) -> Val:
    """Along one axis."""
    return softmax_along(t, "LogSoftmax", x, axis)


@op("LogSoftmaxExt", "SoftmaxExt")
def softmax_ext(t: Tape, x: Val, dim: Val = None, dtype: Val = None) -> Val:
    """Optionally in another type; without an axis it is 0 for 0, 1 and 3 dims, else 1."""
    if dtype is not None:
        x = t.cast(x, dtype_argument(dtype).numpy)
    axis = (0 if t.rank(x) in (0, 1, 3) else 1) if dim is None else dim
    return softmax_along(t, t.primitive.removesuffix("Ext"), x, axis)


def halves(t: Tape, x: Val, axis: Val) -> tuple[Val, Val]:
    """The first and the second half along an axis."""
    first, second = t.op("Split", [x], outputs=2, axis=axis_of(t, x, axis), num_outputs=2)
    return first, second


@op("GLU")
def glu(t: Tape, x: Val, *, axis: Val = -1) -> Val:
    """First half times sigmoid of the second."""
    first, second = halves(t, x, axis)
    return t.op("Mul", [first, t.op("Sigmoid", [second])])


@op("Swiglu")
def swiglu(t: Tape, x: Val, dim: Val = -1) -> Val:
    """SiLU of the first half, times the second."""
    first, second = halves(t, x, dim)
    return t.op("Mul", [silu(t, first), second])


@op("LogSigmoid")
def log_sigmoid(t: Tape, x: Val) -> Val:
    """-> (log(sigmoid(x)), buffer)."""
    return (t.op("Neg", [t.op("Softplus", [t.op("Neg", [x])])]), None)
