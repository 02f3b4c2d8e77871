"""Normalisation."""

from __future__ import annotations

import math

import numpy as np

from mindspore_lite.ops.arguments import axis_of, ints, layout, number
from mindspore_lite.ops.spatial import in_nchw
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import MAX_TABLE, Tape, bounded, dtype_argument

F32 = np.dtype(np.float32)


def channel_shaped(t: Tape, value: Val, rank: int) -> Val:
    """A value per channel, which is axis 1, in a shape that broadcasts."""
    return t.op("Reshape", [value, np.asarray([1, -1] + [1] * (rank - 2))]) if rank != 2 else value


def standardised(t: Tape, x: Val, axes: Val, epsilon: float) -> tuple[Val, Val, Val, Val]:
    """-> (x without its mean and with deviation 1, mean, variance, 1/deviation), over axes."""
    mean = t.op("ReduceMean", [x, axes], keepdims=1)
    apart = t.op("Sub", [x, mean])
    variance = t.op("ReduceMean", [t.op("Mul", [apart, apart]), axes], keepdims=1)
    rstd = reciprocal_root(t, variance, epsilon)
    return t.op("Mul", [apart, rstd]), mean, variance, rstd


def by_batch_statistics(t: Tape, x: Val, scale: Val, bias: Val, epsilon: float) -> Val:
    """As in training: mean and biased variance of the batch itself; -> (y, mean, 1/deviation)."""
    dtype, rank = t.dtype(x), t.rank(x)
    axes = np.asarray([0, *range(2, rank)])
    y, mean, _, rstd = standardised(t, widened(t, x), axes, epsilon)
    for name, value in (("Mul", scale), ("Add", bias)):
        if value is not None:
            y = t.op(name, [y, channel_shaped(t, widened(t, value), rank)])
    flat = [t.op("Reshape", [v, np.asarray([-1])]) for v in (mean, rstd)]
    return (t.cast(y, dtype), *flat)


def widened(t: Tape, x: Val) -> Val:
    """Half floats as float32: sums of their squares overflow."""
    return t.cast(x, F32) if t.dtype(x).itemsize < 4 else x


def reciprocal_root(t: Tape, x: Val, epsilon: float) -> Val:
    """1 / sqrt(x + epsilon)."""
    return t.op("Reciprocal", [t.op("Sqrt", [t.op("Add", [x, np.asarray(epsilon, t.dtype(x))])])])


@op("BatchNorm", "FusedBatchNorm", "FusedBatchNormEx")
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
    """-> (y, mean, variance, ...); with is_training the statistics are those of the batch."""
    layout(data_format)

    def run(x: Val) -> Val:
        if is_training:
            return by_batch_statistics(t, x, scale, bias, epsilon)[0]
        return t.op("BatchNormalization", [x, scale, bias, mean, variance], epsilon=float(epsilon))

    y = in_nchw(t, x, data_format, run) if t.rank(x) == 4 else run(x)
    return (y, *[None] * 4) if is_training else (y, mean, variance, mean, variance)


@op("BatchNormExt")
def batch_norm_ext(
    t: Tape,
    x: Val,
    weight: Val = None,
    bias: Val = None,
    running_mean: Val = None,
    running_var: Val = None,
    training: bool = False,
    momentum: Val = 0.1,
    epsilon: Val = 1e-5,
) -> Val:
    """-> (y, mean, 1/deviation); any of weight, bias and the running values may be left out."""
    eps = float(number(epsilon, "epsilon"))
    if training or running_mean is None or running_var is None:
        return by_batch_statistics(t, x, weight, bias, eps)
    dtype = t.dtype(running_mean)
    one, zero = (t.op("Expand", [np.asarray(v, dtype), t.op("Shape", [running_mean])])
                 for v in (1, 0))  # fmt: skip
    inputs = [x, one if weight is None else weight, zero if bias is None else bias]
    y = t.op("BatchNormalization", [*inputs, running_mean, running_var], epsilon=eps)
    return (y, running_mean, reciprocal_root(t, running_var, eps))


@op("InstanceNorm")
def instance_norm(
    t: Tape,
    x: Val,
    gamma: Val,
    beta: Val,
    mean: Val = None,
    variance: Val = None,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.1,
) -> Val:
    """-> (y, ...): every image and channel by its own mean and variance."""
    dtype = t.dtype(x)
    inputs = [t.cast(v, t.dtype(gamma)) for v in (x, gamma, beta)]
    y = t.op("InstanceNormalization", inputs, epsilon=float(epsilon))
    return (t.cast(y, dtype), None, None)


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
    """-> (y, mean, variance), of LayerNormV3 (y, mean, 1/deviation)."""
    axis, eps = axis_of(t, x, begin_norm_axis), float(epsilon)
    axes = np.asarray(range(axis, t.rank(x)))
    normal, mean, variance, rstd = standardised(t, widened(t, x), axes, eps)
    if axis == axis_of(t, x, begin_params_axis):
        y = t.op("LayerNormalization", [x, gamma, beta], axis=axis, epsilon=eps)
    else:  # gamma and beta have fewer axes than are normalised
        scaled = t.op("Mul", [normal, widened(t, gamma)])
        y = t.cast(t.op("Add", [scaled, widened(t, beta)]), t.dtype(x))
    return y, mean, rstd if t.primitive == "LayerNormV3" else variance


@op("LayerNormExt")
def layer_norm_ext(
    t: Tape, x: Val, normalized_shape: Val, weight: Val = None, bias: Val = None, eps: Val = 1e-5
) -> Val:
    """The last len(normalized_shape) axes; weight and bias may be left out."""
    shape, epsilon = ints(normalized_shape, "normalized_shape"), float(number(eps, "eps"))
    if weight is None:
        bounded(math.prod(shape), "normalised elements", MAX_TABLE)
        weight = np.ones(shape, t.dtype(x))
    inputs = [x, weight, bias] if bias is not None else [x, weight]
    return t.op("LayerNormalization", inputs, outputs=3, axis=-len(shape), epsilon=epsilon)


@op("AddLayerNormV2")
def add_layer_norm(
    t: Tape,
    x1: Val,
    x2: Val,
    gamma: Val,
    beta: Val,
    epsilon: Val = 1e-5,
    additional_out: Val = False,
) -> Val:
    """-> (y, mean, 1/deviation, x1 + x2), over the axes that gamma has."""
    total, eps = t.op("Add", [x1, x2]), float(number(epsilon, "epsilon"))
    inputs = [total, gamma, beta]
    return (
        *t.op("LayerNormalization", inputs, outputs=3, axis=-t.rank(gamma), epsilon=eps),
        total,
    )


@op("RmsNorm")
def rms_norm(t: Tape, x: Val, gamma: Val, *, epsilon: Val = 1e-6) -> Val:
    """-> (y, 1/root mean square), over the axes that gamma has."""
    dtype = t.dtype(x)
    axes = np.asarray(range(-t.rank(gamma), 0))
    wide = widened(t, x)
    if t.dtype(wide) == np.float64:  # whose epsilon gets lost when ONNX Runtime 1.31 joins them
        squares = t.op("Mul", [wide, wide])
    else:
        squares = t.op("Pow", [wide, np.asarray(2, t.dtype(wide))])
    mean = t.op("ReduceMean", [squares, axes], keepdims=1)
    eps = np.asarray(number(epsilon, "epsilon"), t.dtype(wide))
    root = t.op("Sqrt", [t.op("Add", [mean, eps])])  # this order is what ONNX Runtime fuses
    y = t.op("Mul", [t.cast(t.op("Div", [wide, root]), dtype), t.cast(gamma, dtype)])
    return y, t.op("Reciprocal", [root])


@op("AddRmsNorm")
def add_rms_norm(t: Tape, x1: Val, x2: Val, gamma: Val, epsilon: Val = 1e-6) -> Val:
    """-> (y, 1/root mean square, x1 + x2)."""
    total = t.op("Add", [x1, x2])
    return (*rms_norm(t, total, gamma, epsilon=epsilon), total)


@op("GroupNorm")
def group_norm(
    t: Tape, x: Val, num_groups: Val, weight: Val = None, bias: Val = None, eps: Val = 1e-5
) -> Val:
    """-> (y, mean, 1/deviation of each group)."""
    groups = bounded(int(number(num_groups, "num_groups")), "groups")
    epsilon = float(number(eps, "eps"))
    dtype = t.dtype(x)
    if t.shape(x)[1] == groups and t.rank(x) > 2 and weight is not None and bias is not None:
        factors = [t.cast(v, dtype) for v in (weight, bias)]
        y = t.op("InstanceNormalization", [x, *factors], epsilon=epsilon)
        return (y, *_group_statistics(t, x, groups, epsilon))
    rows = t.op("Reshape", [x, np.asarray([0, groups, -1])])
    # ONNX defines GroupNormalization by the mean of squares, which loses digits where a group lies
    # far from zero; ONNX Runtime's kernel for InstanceNormalization takes the mean off first
    units = [np.ones(groups, dtype), np.zeros(groups, dtype)]
    y = t.op("InstanceNormalization", [rows, *units], epsilon=epsilon)
    y = t.op("Reshape", [y, t.op("Shape", [x])])
    per_channel = np.asarray([-1] + [1] * (t.rank(x) - 2))
    for name, factor in (("Mul", weight), ("Add", bias)):
        if factor is not None:
            y = t.op(name, [y, t.op("Reshape", [t.cast(factor, dtype), per_channel])])
    return (y, *_group_statistics(t, x, groups, epsilon))


def _group_statistics(t: Tape, x: Val, groups: int, epsilon: float) -> tuple[Val, Val]:
    """Mean and 1/deviation of each group."""
    last = np.asarray([2])
    rows = t.op("Reshape", [x, np.asarray([0, groups, -1])])
    _, mean, _, rstd = standardised(t, widened(t, rows), last, epsilon)
    first, second = (t.cast(t.op("Squeeze", [v, last]), t.dtype(x)) for v in (mean, rstd))
    return first, second


@op("L2Normalize")
def l2_normalize(t: Tape, x: Val, *, axis: Val = 0, epsilon: float = 1e-4) -> Val:
    """The epsilon bounds the sum of squares, not the norm."""
    axes = np.asarray(ints(axis, "axis"))
    total = t.op("ReduceSumSquare", [x, axes], keepdims=1)
    at_least = t.op("Max", [total, np.asarray(epsilon, t.dtype(x))])
    return t.op("Div", [x, t.op("Sqrt", [at_least])])


def p_norm(t: Tape, x: Val, p: float, axes: Val, keep: bool) -> Val:
    """(sum |x|**p) ** (1/p), and what that tends to for 0 and the infinities."""
    named = {1.0: "ReduceL1", 2.0: "ReduceL2"}
    dtype = t.dtype(x)

    def reduced(name: str, value: Val) -> Val:
        return t.op(name, [value] if axes is None else [value, axes], keepdims=int(keep))

    if p in named:
        return reduced(named[p], x)
    if p == 0:
        zero = t.op("Equal", [x, np.asarray(0, dtype)])
        return reduced("ReduceSum", t.cast(t.op("Not", [zero]), dtype))
    size = t.op("Abs", [x])
    if math.isinf(p):
        return reduced("ReduceMax" if p > 0 else "ReduceMin", size)
    total = reduced("ReduceSum", t.op("Pow", [size, np.asarray(p, dtype)]))
    return t.op("Pow", [total, np.asarray(1 / p, dtype)])


@op("LpNorm")
def lp_norm(
    t: Tape, x: Val, *, axis: Val, p: float = 2, keep_dims: bool = False, epsilon: float = 1e-12
) -> Val:
    """Norm of any order, at least epsilon."""
    axes = np.asarray(ints(axis, "axis"), np.int64)
    norm = p_norm(t, x, float(p), axes if axes.size else None, keep_dims)
    return t.op("Max", [norm, np.asarray(epsilon, t.dtype(x))])


@op("LpNormV2")
def lp_norm_v2(
    t: Tape, x: Val, p: Val = 2, dim: Val = None, keepdim: bool = False, epsilon: Val = 1e-12
) -> Val:
    """LpNorm with all its settings as inputs; without dim, of all elements."""
    axes = () if dim is None else dim
    order, bound = float(number(p, "p")), float(number(epsilon, "epsilon"))
    return lp_norm(t, x, axis=axes, p=order, keep_dims=keepdim, epsilon=bound)


@op("LinalgVectorNorm")
def vector_norm(
    t: Tape, x: Val, ord: Val = 2, dim: Val = None, keepdim: bool = False, dtype: Val = None
) -> Val:
    """Norm of any order; without dim, of all elements."""
    kind = t.dtype(x) if dtype is None else dtype_argument(dtype).numpy
    axes = np.asarray(() if dim is None else ints(dim, "dim"), np.int64)
    order = 2.0 if ord is None else float(number(ord, "the order"))
    return p_norm(t, t.cast(x, kind), order, axes if axes.size else None, keepdim)


@op("EuclideanNorm")
def euclidean_norm(t: Tape, x: Val, axes: Val, *, keep_dims: bool = False) -> Val:
    """The root of the sum of squares."""
    return t.op("ReduceL2", [x, t.cast(axes, np.dtype(np.int64))], keepdims=int(keep_dims))


@op("Renorm")
def renorm(t: Tape, x: Val, *, p: int, dim: int, maxnorm: float) -> Val:
    """Scale down each slice along an axis whose norm exceeds the given one."""
    others = np.asarray([a for a in range(t.rank(x)) if a != axis_of(t, x, dim)], np.int64)
    dtype = t.dtype(x)
    norm = p_norm(t, x, float(p), others, keep=True)
    most, tiny = np.asarray(maxnorm, dtype), np.asarray(1e-7, dtype)
    factor = t.op("Div", [most, t.op("Add", [norm, tiny])])
    too_long = t.op("Greater", [norm, most])
    return t.op("Mul", [x, t.op("Where", [too_long, factor, np.asarray(1, dtype)])])


@op("Cdist")
def cdist(t: Tape, x1: Val, x2: Val, *, p: float = 2.0) -> Val:
    """The norm of the difference of each row of x1 and each row of x2."""
    rows = t.op("Unsqueeze", [x1, np.asarray([-2])])
    apart = t.op("Sub", [rows, t.op("Unsqueeze", [x2, np.asarray([-3])])])
    return p_norm(t, apart, float(p), np.asarray([-1]), keep=False)


@op("LRN")
def lrn(
    t: Tape,
    x: Val,
    *,
    depth_radius: int = 5,
    bias: float = 1.0,
    alpha: float = 1.0,
    beta: float = 0.5,
    data_format: Val = "NCHW",
) -> Val:
    """ONNX divides alpha by the window's size, MindSpore does not; converters keep a layout."""
    size = 2 * depth_radius + 1
    how: dict[str, Val] = {"alpha": alpha * size, "beta": float(beta), "bias": float(bias)}
    return in_nchw(t, x, data_format, lambda x: t.op("LRN", [x], size=size, **how))
