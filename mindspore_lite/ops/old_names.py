"""Names that only old releases and Ascend's backend wrote; most have a newer twin."""

from __future__ import annotations

from mindspore_lite.ops.arguments import axis_of, ints
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape


@op("ReLUV2")
def relu_v2(t: Tape, x: Val) -> Val:
    """-> (y, mask); the mask is for training alone."""
    return (t.op("Relu", [x]), None)


@op("BNInfer")
def bn_infer(
    t: Tape, x: Val, scale: Val, bias: Val, mean: Val, variance: Val, *, epsilon: float = 1e-5
) -> Val:
    """A batch norm that never trained; channels come second."""
    inputs = [x, scale, bias, mean, variance]
    return t.op("BatchNormalization", inputs, epsilon=float(epsilon))


@op("TransposeD")
def transpose_d(t: Tape, x: Val, *, perm: Val) -> Val:
    """The D says that the order is an attribute."""
    return t.op("Transpose", [x], perm=[axis_of(t, x, p) for p in ints(perm, "perm")])
