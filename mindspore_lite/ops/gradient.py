"""Gradients of activations, functions, norms and losses; networks with `ms.grad` inside hold them.

The first argument is mostly the gradient that comes in, but some primitives take what the forward
operator saw or gave first. Those of windows, slices and resizing are in gradient_windows.py.
"""

from __future__ import annotations

import numpy as np

from mindspore_lite.ops.arguments import axis_of, ints, layout, number
from mindspore_lite.ops.loss import word
from mindspore_lite.ops.norm import channel_shaped, standardised, widened
from mindspore_lite.ops.scatter import along_axis, shaped_like
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape, bounded

_I64 = np.dtype(np.int64)
_GELU = (0.7978845608, 0.044715)  # sqrt(2 / pi), and the weight of the cube


def number_like(t: Tape, x: Val, value: float) -> np.ndarray:
    """A number of the type of x."""
    return np.asarray(value, t.dtype(x))


def product(t: Tape, *factors: Val) -> Val:
    """All factors multiplied."""
    found = factors[0]
    for factor in factors[1:]:
        found = t.op("Mul", [found, factor])
    return found


def where_true(t: Tape, condition: Val, dout: Val) -> Val:
    """The gradient where a condition holds, else zero."""
    return t.op("Where", [condition, dout, number_like(t, dout, 0)])


# --- by what the forward operator was given -------------------------------------------------------


@op("ReluGrad", "ReLUGrad")
def relu_grad(t: Tape, dout: Val, x: Val) -> Val:
    """dout where x is positive."""
    return where_true(t, t.op("Greater", [x, number_like(t, x, 0)]), dout)


@op("ReLU6Grad")
def relu6_grad(t: Tape, dout: Val, x: Val) -> Val:
    """dout where x lies above 0, and at most at 6."""
    low = t.op("Greater", [x, number_like(t, x, 0)])
    return where_true(t, t.op("And", [low, t.op("LessOrEqual", [x, number_like(t, x, 6)])]), dout)


@op("HShrinkGrad", "SoftShrinkGrad")
def shrink_grad(t: Tape, dout: Val, x: Val, lambd: Val = 0.5) -> Val:
    """dout where x lies farther from zero than lambd."""
    bound = number_like(t, x, float(number(lambd, "lambd")))
    return where_true(t, t.op("Greater", [t.op("Abs", [x]), bound]), dout)


@op("HSigmoidGrad")
def hard_sigmoid_grad(t: Tape, dout: Val, x: Val) -> Val:
    """dout / 6 where x lies within -3 and 3."""
    inside = t.op("Less", [t.op("Abs", [x]), number_like(t, x, 3)])
    return where_true(t, inside, product(t, dout, number_like(t, dout, 1 / 6)))


@op("HSwishGrad")
def hard_swish_grad(t: Tape, dout: Val, x: Val) -> Val:
    """dout * (2 x + 3) / 6 from -3 to 3, both included, and dout above."""
    slope = t.op("Add", [product(t, x, number_like(t, x, 1 / 3)), number_like(t, x, 0.5)])
    inside = t.op("LessOrEqual", [x, number_like(t, x, 3)])
    found = t.op("Where", [inside, product(t, dout, slope), dout])
    return where_true(t, t.op("GreaterOrEqual", [x, number_like(t, x, -3)]), found)


@op("SiLUGrad")
def silu_grad(t: Tape, dout: Val, x: Val) -> Val:
    """dout * s * (1 + x (1 - s)), s being the sigmoid of x."""
    return product(t, dout, _swish_slope(t, x, 1.0))


@op("FastGeLUGrad")
def fast_gelu_grad(t: Tape, dout: Val, x: Val) -> Val:
    """The same with the sigmoid of 1.702 x."""
    return product(t, dout, _swish_slope(t, x, 1.702))


def _swish_slope(t: Tape, x: Val, steep: float) -> Val:
    scaled, one = product(t, x, number_like(t, x, steep)), number_like(t, x, 1)
    sigmoid = t.op("Sigmoid", [scaled])
    rest = product(t, scaled, t.op("Sub", [one, sigmoid]))
    return product(t, sigmoid, t.op("Add", [rest, one]))


@op("GeLUGrad")
def gelu_grad(t: Tape, dout: Val, x: Val, y: Val) -> Val:
    """Of the tanh approximation: (1 + h) / 2 + x (1 - h^2) / 2 * h', h being the tanh."""
    root, cube = _GELU
    one, half, square = number_like(t, x, 1), number_like(t, x, 0.5), product(t, x, x)
    inner = t.op("Add", [product(t, square, number_like(t, x, cube)), one])
    tanh = t.op("Tanh", [product(t, x, inner, number_like(t, x, root))])
    slope = t.op("Add", [product(t, square, number_like(t, x, 3 * cube)), one])
    rest = t.op("Sub", [one, product(t, tanh, tanh)])
    right = product(t, x, rest, slope, number_like(t, x, root))
    return product(t, dout, half, t.op("Add", [t.op("Add", [one, tanh]), right]))


@op("SoftplusGrad")
def softplus_grad(t: Tape, dout: Val, x: Val) -> Val:
    """dout * sigmoid(x)."""
    return product(t, dout, t.op("Sigmoid", [x]))


@op("PReLUGrad")
def prelu_grad(t: Tape, dout: Val, x: Val, weight: Val) -> Val:
    """-> (of x, of the weight, which has one number per channel or one for all)."""
    positive = t.op("Greater", [x, number_like(t, x, 0)])
    single = t.shape(weight) == (1,)
    shaped = weight if single else channel_shaped(t, weight, t.rank(x))
    of_x = t.op("Where", [positive, dout, product(t, dout, shaped)])
    below = t.op("Where", [positive, number_like(t, x, 0), product(t, dout, x)])
    kept = () if single else (1,)
    axes = np.asarray([axis for axis in range(t.rank(x)) if axis not in kept])
    summed = t.op("ReduceSum", [below, axes], keepdims=0)
    return of_x, t.op("Reshape", [summed, t.op("Shape", [weight])])


@op("AsinGrad", "ACosGrad")
def asin_grad(t: Tape, x: Val, dout: Val) -> Val:
    """dout / sqrt(1 - x^2), for ACos with a minus."""
    width = t.op("Sqrt", [t.op("Sub", [number_like(t, x, 1), product(t, x, x)])])
    found = t.op("Div", [dout, width])
    return t.op("Neg", [found]) if t.primitive == "ACosGrad" else found


@op("AtanGrad")
def atan_grad(t: Tape, x: Val, dout: Val) -> Val:
    """dout / (1 + x^2)."""
    return t.op("Div", [dout, t.op("Add", [product(t, x, x), number_like(t, x, 1)])])


@op("BiasAddGrad")
def bias_add_grad(t: Tape, dout: Val, *, data_format: Val = "NCHW") -> Val:
    """The sum over all axes but that of the channels."""
    rank = t.rank(dout)
    kept = rank - 1 if layout(data_format) == "NHWC" else 1
    axes = np.asarray([axis for axis in range(rank) if axis != kept])
    return t.op("ReduceSum", [dout, axes], keepdims=0)


# --- by what the forward operator gave ------------------------------------------------------------


@op("SigmoidGrad")
def sigmoid_grad(t: Tape, y: Val, dout: Val) -> Val:
    """dout * y * (1 - y)."""
    return product(t, dout, y, t.op("Sub", [number_like(t, y, 1), y]))


@op("TanhGrad")
def tanh_grad(t: Tape, y: Val, dout: Val) -> Val:
    """dout * (1 - y^2)."""
    return product(t, dout, t.op("Sub", [number_like(t, y, 1), product(t, y, y)]))


@op("EluGrad")
def elu_grad(t: Tape, dout: Val, y: Val) -> Val:
    """dout * (y + 1) where y is negative, else dout."""
    below = t.op("Less", [y, number_like(t, y, 0)])
    return t.op("Where", [below, product(t, dout, t.op("Add", [y, number_like(t, y, 1)])), dout])


@op("SqrtGrad")
def sqrt_grad(t: Tape, y: Val, dout: Val) -> Val:
    """dout / (2 y)."""
    return t.op("Div", [dout, product(t, y, number_like(t, y, 2))])


@op("RsqrtGrad")
def rsqrt_grad(t: Tape, y: Val, dout: Val) -> Val:
    """-dout / 2 * y^3."""
    return product(t, dout, number_like(t, y, -0.5), y, y, y)


@op("ReciprocalGrad", "InvGrad")
def reciprocal_grad(t: Tape, y: Val, dout: Val) -> Val:
    """-dout * y^2."""
    return product(t, dout, number_like(t, y, -1), y, y)


@op("AsinhGrad", "AcoshGrad")
def asinh_grad(t: Tape, y: Val, dout: Val) -> Val:
    """dout / cosh(y); of Acosh dout / sinh(y)."""
    return t.op("Div", [dout, t.op("Cosh" if t.primitive == "AsinhGrad" else "Sinh", [y])])


@op("SoftmaxBackward", "SoftmaxGrad")
def softmax_grad(t: Tape, dout: Val, y: Val, dim: Val = -1) -> Val:
    """y * (dout - the sum of dout * y)."""
    axis = np.asarray([axis_of(t, y, dim)])
    total = t.op("ReduceSum", [product(t, dout, y), axis], keepdims=1)
    return product(t, y, t.op("Sub", [dout, total]))


@op("LogSoftmaxGrad")
def log_softmax_grad(t: Tape, y: Val, dout: Val, *, axis: Val = -1) -> Val:
    """dout - exp(y) * the sum of dout."""
    total = t.op("ReduceSum", [dout, np.asarray([axis_of(t, y, axis)])], keepdims=1)
    return t.op("Sub", [dout, product(t, t.op("Exp", [y]), total)])


@op("MedianGrad")
def median_grad(
    t: Tape,
    dout: Val,
    x: Val,
    y: Val,
    indices: Val,
    *,
    global_median: Val = False,
    axis: Val = 0,
    keep_dims: Val = False,
) -> Val:
    """dout at the place of the median; of a global one shared by all that are equal to it."""
    if global_median:
        equal = t.cast(t.op("Equal", [x, y]), t.dtype(x))
        return product(t, equal, t.op("Div", [dout, t.op("ReduceSum", [equal], keepdims=0)]))
    if not keep_dims:
        at = np.asarray([axis_of(t, x, axis)])
        dout, indices = (t.op("Unsqueeze", [v, at]) for v in (dout, indices))
    return along_axis(t, _zeros_like(t, x, t.dtype(dout)), axis, indices, dout, "add")


@op("GatherDGradV2")
def gather_grad(t: Tape, x: Val, dim: Val, index: Val, dout: Val) -> Val:
    """dout added up at the places that the index named."""
    return along_axis(t, _zeros_like(t, x, t.dtype(dout)), dim, index, dout, "add")


def _zeros_like(t: Tape, x: Val, dtype: np.dtype) -> Val:
    zeros = t.op("Expand", [np.zeros((), dtype), t.op("Shape", [x])])
    return shaped_like(t, x, zeros, dtype)


# --- norms ----------------------------------------------------------------------------------------


def _through_norm(t: Tape, dnormal: Val, normal: Val, rstd: Val, axes: Val) -> Val:
    """The gradient of what was normalised over some axes, mean and deviation included."""

    def mean(value: Val) -> Val:
        return t.op("ReduceMean", [value, axes], keepdims=1)

    rest = t.op("Add", [mean(dnormal), product(t, normal, mean(product(t, dnormal, normal)))])
    return product(t, rstd, t.op("Sub", [dnormal, rest]))


def _summed(t: Tape, axes: list[int], like: Val, *values: Val) -> list[Val]:
    """Sums in the shape of a parameter."""
    found = []
    for value in values:
        total = t.op("ReduceSum", [value, np.asarray(axes)], keepdims=0) if axes else value
        found.append(t.op("Reshape", [t.cast(total, t.dtype(like)), t.op("Shape", [like])]))
    return found


@op("LayerNormGrad")
def layer_norm_grad(
    t: Tape,
    x: Val,
    dout: Val,
    variance: Val,
    mean: Val,
    gamma: Val,
    *,
    begin_norm_axis: Val = 1,
    begin_params_axis: Val = 1,
    epsilon: Val = 1e-7,
) -> Val:
    """-> (of x, of gamma, of beta)."""
    start, dtype = axis_of(t, x, begin_norm_axis), t.dtype(x)
    axes = np.asarray(range(start, t.rank(x)))
    normal, _, _, rstd = standardised(t, widened(t, x), axes, float(number(epsilon, "epsilon")))
    dout = widened(t, dout)
    of_x = _through_norm(t, product(t, dout, widened(t, gamma)), normal, rstd, axes)
    outer = list(range(axis_of(t, x, begin_params_axis)))
    return (t.cast(of_x, dtype), *_summed(t, outer, gamma, product(t, dout, normal), dout))


@op("BatchNormGrad")
def batch_norm_grad(
    t: Tape,
    dout: Val,
    x: Val,
    scale: Val,
    mean: Val,
    variance: Val,
    reserve: Val = None,
    *,
    is_training: Val = False,
    epsilon: Val = 1e-5,
    data_format: Val = "NCHW",
) -> Val:
    """-> (of x, of scale, of bias); in training the statistics are those of the batch."""
    rank, dtype, eps = t.rank(x), t.dtype(x), float(number(epsilon, "epsilon"))
    last = layout(data_format) == "NHWC" and rank == 4
    turn, back = [0, 3, 1, 2], [0, 2, 3, 1]
    if last:
        x, dout = (t.op("Transpose", [v], perm=turn) for v in (x, dout))
    x, dout = widened(t, x), widened(t, dout)
    over = [axis for axis in range(rank) if axis != 1]
    by_channel = channel_shaped(t, widened(t, scale), rank)
    if is_training:
        normal, _, _, rstd = standardised(t, x, np.asarray(over), eps)
        of_x = _through_norm(t, product(t, dout, by_channel), normal, rstd, np.asarray(over))
    else:
        middle, spread = (channel_shaped(t, widened(t, v), rank) for v in (mean, variance))
        root = t.op("Sqrt", [t.op("Add", [spread, number_like(t, spread, eps)])])
        normal = t.op("Div", [t.op("Sub", [x, middle]), root])
        of_x = t.op("Div", [product(t, dout, by_channel), root])
    if last:
        of_x = t.op("Transpose", [of_x], perm=back)
    return (t.cast(of_x, dtype), *_summed(t, over, scale, product(t, dout, normal), dout))


@op("GroupNormGrad")
def group_norm_grad(
    t: Tape,
    dout: Val,
    x: Val,
    mean: Val,
    rstd: Val,
    gamma: Val,
    num_groups: Val,
    dx_is_require: Val = True,
    dgamma_is_require: Val = True,
    dbeta_is_require: Val = True,
) -> Val:
    """-> (of x, of gamma, of beta)."""
    groups = bounded(int(number(num_groups, "num_groups")), "groups")
    rank, dtype, shape = t.rank(x), t.dtype(x), t.op("Shape", [x])
    x, dout = widened(t, x), widened(t, dout)
    rows, last = np.asarray([0, groups, -1]), np.asarray([2])
    middle, inverse = (t.op("Unsqueeze", [widened(t, v), last]) for v in (mean, rstd))
    apart = t.op("Sub", [t.op("Reshape", [x, rows]), middle])
    flat = product(t, apart, inverse)
    inner = product(t, dout, channel_shaped(t, widened(t, gamma), rank))
    of_x = _through_norm(t, t.op("Reshape", [inner, rows]), flat, inverse, last)
    of_x = t.cast(t.op("Reshape", [of_x, shape]), dtype)
    normal = t.op("Reshape", [flat, shape])
    over = [axis for axis in range(rank) if axis != 1]
    return (of_x, *_summed(t, over, gamma, product(t, dout, normal), dout))


@op("L2NormalizeGrad")
def l2_normalize_grad(
    t: Tape, x: Val, y: Val, dout: Val, *, axis: Val = 0, epsilon: Val = 1e-4
) -> Val:
    """(dout - y * the sum of y * dout) / norm, the epsilon bounding the sum of squares."""
    axes = np.asarray(ints(axis, "axis"))
    total = t.op("ReduceSumSquare", [x, axes], keepdims=1)
    least = t.op("Max", [total, number_like(t, x, float(number(epsilon, "epsilon")))])
    along = t.op("ReduceSum", [product(t, y, dout), axes], keepdims=1)
    return t.op("Div", [t.op("Sub", [dout, product(t, y, along)]), t.op("Sqrt", [least])])


# --- losses ---------------------------------------------------------------------------------------


def _shared_out(t: Tape, slope: Val, x: Val, dout: Val, reduction: Val) -> Val:
    """The gradient of a loss by its slope at each element, as the reduction divides it."""
    found, how = product(t, slope, dout), word(reduction)
    if how in ("sum", "none"):
        return found
    many = t.op("Size", [x]) if how == "mean" else t.op("Shape", [x], start=0, end=1)
    return t.op("Div", [found, t.cast(many, t.dtype(x))])


@op("SmoothL1LossGrad")
def smooth_l1_grad(
    t: Tape, x: Val, target: Val, dout: Val, *, beta: Val = 1.0, reduction: Val = "none"
) -> Val:
    """(x - target) / beta, within -1 and 1."""
    apart, one = t.op("Sub", [x, target]), number_like(t, x, 1)
    steep = t.op("Div", [apart, number_like(t, x, float(number(beta, "beta")))])
    slope = t.op("Clip", [steep, np.negative(one), one])
    return _shared_out(t, slope, x, dout, reduction)


@op("KLDivLossGrad")
def kl_div_grad(t: Tape, dout: Val, x: Val, target: Val, *, reduction: Val = "mean") -> Val:
    """-target where it is positive."""
    slope = t.op("Neg", [t.op("Max", [target, number_like(t, target, 0)])])
    return _shared_out(t, slope, x, dout, reduction)


@op("BinaryCrossEntropyGrad")
def bce_grad(
    t: Tape, x: Val, target: Val, dout: Val, weight: Val = None, *, reduction: Val = "mean"
) -> Val:
    """(x - target) / (x (1 - x)), weighted."""
    width = product(t, x, t.op("Sub", [number_like(t, x, 1), x]))
    least = t.op("Max", [width, number_like(t, x, 1e-12)])
    slope = t.op("Div", [t.op("Sub", [x, target]), least])
    slope = slope if weight is None else product(t, slope, weight)
    return _shared_out(t, slope, x, dout, reduction)


@op("BinaryCrossEntropyWithLogitsBackward")
def bce_logits_grad(
    t: Tape,
    dout: Val,
    x: Val,
    target: Val,
    weight: Val = None,
    pos_weight: Val = None,
    *,
    reduction: Val = "mean",
) -> Val:
    """sigmoid(x) - target; with p per class (p target + 1 - target) sigmoid(x) - p target."""
    sigmoid = t.op("Sigmoid", [x])
    if pos_weight is None:
        slope = t.op("Sub", [sigmoid, target])
    else:
        hit = product(t, pos_weight, target)
        miss = t.op("Sub", [number_like(t, x, 1), target])
        slope = t.op("Sub", [product(t, t.op("Add", [hit, miss]), sigmoid), hit])
    slope = slope if weight is None else product(t, slope, weight)
    return _shared_out(t, slope, x, dout, reduction)


@op("NLLLossGrad")
def nll_grad(
    t: Tape,
    x: Val,
    dout: Val,
    labels: Val,
    weight: Val,
    total: Val,
    *,
    reduction: Val = "mean",
    ignore_index: Val = -100,
) -> Val:
    """Minus the weight of its class at each label, zero elsewhere."""
    index = t.cast(labels, _I64)
    known = t.op("Not", [t.op("Equal", [index, np.asarray(int(number(ignore_index, "it")))])])
    safe = t.op("Where", [known, index, np.asarray(0)])
    share = t.cast(t.op("Gather", [weight, safe]), t.dtype(x))
    slope = t.op("Neg", [product(t, t.op("Where", [known, share, number_like(t, x, 0)]), dout)])
    if word(reduction) == "mean":
        slope = t.op("Div", [slope, t.cast(total, t.dtype(x))])
    last = np.asarray([1])
    zeros = _zeros_like(t, x, t.dtype(x))
    at, new = (t.op("Unsqueeze", [v, last]) for v in (safe, slope))
    return t.op("ScatterElements", [zeros, at, new], axis=1)
