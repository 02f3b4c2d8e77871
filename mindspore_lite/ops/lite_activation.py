"""converter_lite's activations: as an op, and inside fused ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops.activation import (
    clamp,
    clip,
    fast_gelu,
    glu,
    hard_sigmoid,
    relu6,
    silu,
)
from mindspore_lite.ops.arguments import layout, same_type
from mindspore_lite.ops.table import Meaning, Val, op
from mindspore_lite.ops.tape import Tape, constant_of

# ActivationType 20 and above are numbered as MindSpore's own headers do, not as .ms files are
_PLAIN: dict[int, Callable[[Tape, Val], Val]] = {
    0: lambda t, x: x,
    1: lambda t, x: t.op("Relu", [x]),
    2: lambda t, x: t.op("Sigmoid", [x]),
    3: relu6,
    6: lambda t, x: t.op("Abs", [x]),
    7: lambda t, x: clip(t, x, -1, 1),
    8: lambda t, x: t.op("Softsign", [x]),
    9: lambda t, x: t.op("Softplus", [x]),
    10: lambda t, x: t.op("Tanh", [x]),
    11: lambda t, x: t.op("Selu", [x]),
    12: lambda t, x: t.op("HardSwish", [x]),
    13: hard_sigmoid,
    15: lambda t, x: x,
    17: lambda t, x: t.op("Sign", [x]),
    18: silu,
    20: glu,
    22: fast_gelu,
    23: silu,
}
_BY_ALPHA = {4: "Elu", 5: "LeakyRelu", 14: "ThresholdedRelu", 27: "Celu"}
_NO_MINIMUM = float(np.finfo(np.float32).tiny)  # how the converter writes that there is none


def activated(t: Tape, x: Val, activation_type: int) -> Val:
    """x through an activation that needs nothing but its number, as those of fused ops do."""
    if activation_type not in _PLAIN:
        raise UnsupportedOpError(f"activation type {activation_type} is not supported")
    return _PLAIN[activation_type](t, x)


@op("Activation")
def activation(
    t: Tape,
    x: Val,
    *,
    activation_type: int = 0,
    alpha: float = 0.2,
    min_val: float = -1.0,
    max_val: float = 1.0,
    approximate: bool = False,
) -> Val:
    """One of ActivationType by its number; the other arguments belong to some of them."""
    if activation_type in _BY_ALPHA:
        return t.op(_BY_ALPHA[activation_type], [x], alpha=float(alpha))
    if activation_type == 16:
        return clip(t, x, None if min_val == _NO_MINIMUM else min_val, max_val)
    if activation_type == 19:
        return t.op("Gelu", [x], approximate="tanh" if approximate else "none")
    return activated(t, x, activation_type)


def fused(onnx_name: str) -> Meaning:
    """Two operands, then an activation."""

    def meaning(t: Tape, x: Val, y: Val, *, activation_type: int = 0) -> Val:
        operands = same_type(t, t.result_dtype(x, y), x, y)
        return activated(t, t.op(onnx_name, operands), activation_type)

    meaning.__doc__ = f"ONNX {onnx_name}, then an activation."
    return meaning


for onnx_name in ("Add", "Sub", "Mul", "Div"):
    op(f"{onnx_name}Fusion")(fused(onnx_name))


@op("Eltwise")
def eltwise(t: Tape, values: Val, *, mode: int = 1) -> Val:
    """Product, sum or maximum of all inputs."""
    names = {0: "Mul", 1: "Sum", 2: "Max"}
    if mode not in names:
        raise UnsupportedOpError(f"Eltwise of mode {mode} is not supported")
    if mode:
        return t.op(names[mode], list(values))
    product = values[0]
    for value in values[1:]:
        product = t.op("Mul", [product, value])
    return product


@op("PReLUFusion")
def prelu_fusion(t: Tape, x: Val, slope: Val, *, data_format: Val = "NCHW") -> Val:
    """One slope for all, or one per channel."""
    axes_after_channels = t.rank(x) - 2 if layout(data_format) != "NHWC" else 0
    shape = np.asarray([-1] + [1] * max(axes_after_channels, 0))
    return t.op("PRelu", [x, t.op("Reshape", [slope, shape])])


@op("Clip")
def clip_lite(
    t: Tape, x: Val, low: Val = None, high: Val = None, *, min: Val = None, max: Val = None
) -> Val:
    """Bounds as inputs or as attributes."""
    bounds = [min if low is None else low, max if high is None else high]
    known = [constant_of(b) for b in bounds]
    if all(b is None or k is not None for b, k in zip(bounds, known, strict=True)):
        return clip(t, x, *known)
    return clamp(t, x, *bounds)
