"""Normalisation."""

from __future__ import annotations

import numpy as np

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops.arguments import axis_of, ints, layout, number
from mindspore_lite.ops.spatial import in_nchw
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape


@op("BatchNorm", "FusedBatchNorm")
def batch_norm(
    t: Tape,
    x: Val,
    scale: Val,
    bias: Val,
    mean: Val,
    variance: Val,
    *,
    is_training: bool = False,
    epsilon: float = 1e-5,
    momentum: float = 0.1,
    data_format: Val = "NCHW",
) -> Val:
    """-> (y, mean, variance, ...); only y has a meaning at inference."""
    if is_training:
        raise UnsupportedOpError(
            "BatchNorm in training mode; call set_train(False) before exporting"
        )
    layout(data_format)

    def run(x: Val) -> Val:
        return t.op("BatchNormalization", [x, scale, bias, mean, variance], epsilon=float(epsilon))

    y = in_nchw(t, x, data_format, run) if t.rank(x) == 4 else run(x)
    return (y, mean, variance, mean, variance)


@op("LayerNorm", "LayerNormV3")
def layer_norm(
    t: Tape,
    x: Val,
    gamma: Val,
    beta: Val,
    *,
    begin_norm_axis: int = 1,
    begin_params_axis: int = 1,
    epsilon: float = 1e-7,
) -> Val:
    """-> (y, mean, 1/deviation)."""
    axis = axis_of(t, x, begin_norm_axis)
    if axis != axis_of(t, x, begin_params_axis):
        raise UnsupportedOpError("LayerNorm with different begin_norm_axis and begin_params_axis")
    inputs = [x, gamma, beta]
    return t.op("LayerNormalization", inputs, outputs=3, axis=axis, epsilon=float(epsilon))


@op("LayerNormExt")
def layer_norm_ext(
    t: Tape, x: Val, normalized_shape: Val, weight: Val = None, bias: Val = None, eps: float = 1e-5
) -> Val:
    """The last len(normalized_shape) axes; weight and bias may be left out."""
    shape = ints(normalized_shape, "normalized_shape")
    if weight is None:
        weight = np.ones(shape, t.dtype(x))
    inputs = [x, weight, bias] if bias is not None else [x, weight]
    return t.op("LayerNormalization", inputs, outputs=3, axis=-len(shape), epsilon=float(eps))


@op("GroupNorm")
def group_norm(t: Tape, x: Val, num_groups: Val, weight: Val, bias: Val, eps: Val = 1e-5) -> Val:
    """-> (y, mean, 1/deviation); only y is given."""
    groups, epsilon = int(number(num_groups, "num_groups")), float(number(eps, "eps"))
    y = t.op("GroupNormalization", [x, weight, bias], num_groups=groups, epsilon=epsilon)
    return (y, None, None)


@op("L2Normalize")
def l2_normalize(t: Tape, x: Val, *, axis: Val = 0, epsilon: float = 1e-4) -> Val:
    """The epsilon bounds the sum of squares, not the norm."""
    axes = np.asarray(ints(axis, "axis"))
    total = t.op("ReduceSumSquare", [x, axes], keepdims=1)
    bounded = t.op("Max", [total, np.asarray(epsilon, t.dtype(x))])
    return t.op("Div", [x, t.op("Sqrt", [bounded])])


@op("LpNorm")
def lp_norm(
    t: Tape, x: Val, *, axis: Val, p: int = 2, keep_dims: bool = False, epsilon: float = 1e-12
) -> Val:
    """Norm of order 1 or 2, at least epsilon."""
    if p not in (1, 2):
        raise UnsupportedOpError(f"LpNorm of order {p} is not supported")
    axes = np.asarray(ints(axis, "axis"))
    norm = t.op(f"ReduceL{p}", [x, axes], keepdims=int(keep_dims))
    return t.op("Max", [norm, np.asarray(epsilon, t.dtype(x))])


@op("LRN")
def lrn(
    t: Tape,
    x: Val,
    *,
    depth_radius: int = 5,
    bias: float = 1.0,
    alpha: float = 1.0,
    beta: float = 0.5,
) -> Val:
    """ONNX divides alpha by the window's size, MindSpore does not."""
    size = 2 * depth_radius + 1
    return t.op("LRN", [x], size=size, alpha=alpha * size, beta=float(beta), bias=float(bias))
