"""Losses, as far as they occur in graphs for inference."""

from __future__ import annotations

import numpy as np

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops.arguments import number
from mindspore_lite.ops.elementwise import square
from mindspore_lite.ops.reduce import INT64
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape

_REDUCTIONS = {0: "sum", 1: "mean", 2: "none"}


def word(reduction: Val) -> str:
    """'sum', 'mean' or 'none', from an enum or a word."""
    found = _REDUCTIONS.get(reduction, reduction)
    if found not in ("sum", "mean", "none", "batchmean"):
        raise UnsupportedOpError(f"reduction {reduction!r} is not supported")
    return str(found)


def summed_up(t: Tape, x: Val, reduction: Val) -> Val:
    """The losses of all elements as the reduction wants them."""
    how = word(reduction)
    if how == "none":
        return x
    if how == "batchmean":
        rows = t.cast(t.op("Squeeze", [t.op("Shape", [x], start=0, end=1)]), t.dtype(x))
        return t.op("Div", [t.op("ReduceSum", [x], keepdims=0), rows])
    return t.op(f"Reduce{how.capitalize()}", [x], keepdims=0)


def difference(t: Tape, x: Val, y: Val) -> Val:
    """x - y in their common type."""
    dtype = t.promoted(x, y)
    return t.op("Sub", [t.cast(x, dtype), t.cast(y, dtype)])


@op("MSELossExt")
def mse_loss(t: Tape, x: Val, target: Val, reduction: Val = "mean") -> Val:
    """Squared differences."""
    return summed_up(t, square(t, difference(t, x, target)), reduction)


@op("L1LossExt")
def l1_loss(t: Tape, x: Val, target: Val, reduction: Val = "mean") -> Val:
    """Absolute differences."""
    return summed_up(t, t.op("Abs", [difference(t, x, target)]), reduction)


@op("SmoothL1Loss")
def smooth_l1_loss(
    t: Tape, x: Val, target: Val, *, beta: Val = 1.0, reduction: Val = "none"
) -> Val:
    """d**2 / (2 beta) for a distance d below beta, else d - beta / 2."""
    distance = t.op("Abs", [difference(t, x, target)])
    dtype, bend = t.dtype(distance), float(number(beta, "beta"))
    if bend == 0:
        return summed_up(t, distance, reduction)
    near = t.op("Mul", [square(t, distance), np.asarray(0.5 / bend, dtype)])
    far = t.op("Sub", [distance, np.asarray(0.5 * bend, dtype)])
    is_near = t.op("Less", [distance, np.asarray(bend, dtype)])
    return summed_up(t, t.op("Where", [is_near, near, far]), reduction)


@op("SoftMarginLoss")
def soft_margin_loss(t: Tape, x: Val, target: Val, *, reduction: Val = "mean") -> Val:
    """log(1 + exp(-target x))."""
    margin = t.op("Neg", [t.op("Mul", [x, t.cast(target, t.dtype(x))])])
    return summed_up(t, t.op("Softplus", [margin]), reduction)


def kl_div(t: Tape, x: Val, target: Val, reduction: Val, log_target: Val) -> Val:
    """target * (log(target) - x), and zero where the target is not above zero."""
    if log_target:
        apart = t.op("Sub", [target, x])
        return summed_up(t, t.op("Mul", [t.op("Exp", [target]), apart]), reduction)
    zero = np.asarray(0, t.dtype(target))
    apart = t.op("Mul", [target, t.op("Sub", [t.op("Log", [target]), x])])
    some = t.op("Greater", [target, zero])
    return summed_up(t, t.op("Where", [some, apart, zero]), reduction)


@op("KLDiv")
def kl_div_ext(
    t: Tape, x: Val, target: Val, reduction: Val = "mean", log_target: Val = False
) -> Val:
    """Kullback-Leibler divergence of log-probabilities x from a target."""
    return kl_div(t, x, target, reduction, log_target)


@op("KLDivLoss")
def kl_div_loss(t: Tape, x: Val, target: Val, *, reduction: Val = "mean") -> Val:
    """Kullback-Leibler divergence of log-probabilities x from a target."""
    return kl_div(t, x, target, reduction, False)


@op("BinaryCrossEntropy")
def binary_cross_entropy(
    t: Tape, x: Val, target: Val, weight: Val = None, *, reduction: Val = "mean"
) -> Val:
    """-(target log(x) + (1 - target) log(1 - x)), weighted."""
    dtype = t.dtype(x)
    one, tiny = np.asarray(1, dtype), np.asarray(1e-12, dtype)
    hit, miss = (t.op("Log", [t.op("Add", [v, tiny])]) for v in (x, t.op("Sub", [one, x])))
    found = t.op("Add", [t.op("Mul", [target, hit]),
                         t.op("Mul", [t.op("Sub", [one, target]), miss])])  # fmt: skip
    found = t.op("Neg", [found])
    return summed_up(t, found if weight is None else t.op("Mul", [found, weight]), reduction)


def sigmoid_cross_entropy(t: Tape, x: Val, target: Val, pos_weight: Val = None) -> Val:
    """The same of logits: (1 - target) x + (1 + (p - 1) target) softplus(-x)."""
    one = np.asarray(1, t.dtype(x))
    soft = t.op("Softplus", [t.op("Neg", [x])])
    if pos_weight is not None:
        factor = t.op("Mul", [t.op("Sub", [pos_weight, one]), target])
        soft = t.op("Mul", [soft, t.op("Add", [factor, one])])
    return t.op("Add", [t.op("Mul", [t.op("Sub", [one, target]), x]), soft])


@op("BCEWithLogitsLoss")
def bce_with_logits(
    t: Tape, x: Val, target: Val, weight: Val = None, pos_weight: Val = None, *,
    reduction: Val = "mean",
) -> Val:  # fmt: skip
    """Binary cross entropy of logits, weighted."""
    found = sigmoid_cross_entropy(t, x, target, pos_weight)
    return summed_up(t, found if weight is None else t.op("Mul", [found, weight]), reduction)


@op("SigmoidCrossEntropyWithLogits")
def sigmoid_loss(t: Tape, x: Val, target: Val) -> Val:
    """Binary cross entropy of logits, element by element."""
    return sigmoid_cross_entropy(t, x, target)


@op("SoftmaxCrossEntropyWithLogits")
def softmax_loss(t: Tape, x: Val, target: Val) -> Val:
    """-> (-sum of target * log(softmax(x)) per row, its gradient)."""
    product = t.op("Mul", [target, t.op("LogSoftmax", [x], axis=1)])
    loss = t.op("Neg", [t.op("ReduceSum", [product, np.asarray([1])], keepdims=0)])
    return loss, t.op("Sub", [t.op("Softmax", [x], axis=1), target])


@op("SparseSoftmaxCrossEntropyWithLogits")
def sparse_softmax_loss(t: Tape, x: Val, labels: Val, *, is_grad: Val = False) -> Val:
    """The mean of -log(softmax(x)) at the labels, or its gradient."""
    if is_grad:
        index = t.op("Unsqueeze", [t.cast(labels, INT64), np.asarray([1])])
        ones = t.op("Expand", [np.asarray(-1, t.dtype(x)), t.op("Shape", [index])])
        found = t.op(
            "ScatterElements", [t.op("Softmax", [x], axis=1), index, ones], axis=1, reduction="add"
        )
        rows = t.cast(t.op("Shape", [x], start=0, end=1), t.dtype(x))
        return t.op("Div", [found, rows])
    return t.op("SoftmaxCrossEntropyLoss", [x, labels], reduction="mean")


@op("NLLLoss")
def nll_loss(
    t: Tape, x: Val, labels: Val, weight: Val, *, reduction: Val = "mean", ignore_index: Val = -100
) -> Val:
    """-> (-x at the labels, weighted by class; sum of those weights)."""
    skipped = np.asarray(int(number(ignore_index, "ignore_index")))
    index = t.cast(labels, INT64)
    known = t.op("Not", [t.op("Equal", [index, skipped])])
    safe = t.op("Where", [known, index, np.asarray(0)])
    share = t.op("Where", [known, t.op("Gather", [weight, safe]), np.asarray(0, t.dtype(weight))])
    picked = t.op("GatherElements", [x, t.op("Unsqueeze", [safe, np.asarray([1])])], axis=1)
    picked = t.op("Squeeze", [picked, np.asarray([1])])
    losses = t.op("Neg", [t.op("Mul", [picked, t.cast(share, t.dtype(x))])])
    total = t.op("ReduceSum", [share], keepdims=0)
    how = word(reduction)
    if how == "none":
        return losses, total
    found = t.op("ReduceSum", [losses], keepdims=0)
    return (found if how == "sum" else t.op("Div", [found, total])), total
