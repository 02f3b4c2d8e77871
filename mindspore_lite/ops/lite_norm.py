"""converter_lite's normalisations."""

from __future__ import annotations

import numpy as np

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.mindir.records import TensorType
from mindspore_lite.ops.arguments import axis_of
from mindspore_lite.ops.lite_activation import activated
from mindspore_lite.ops.reduce import reduced
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape


def first_or_all(t: Tape, y: Val, *others: Val) -> Val:
    """A result of several parts, of which converted files often declare just the first."""
    return y if isinstance(t.result, TensorType) else (y, *others)


@op("L2NormalizeFusion")
def l2_normalize_fusion(
    t: Tape, x: Val, *, axis: Val = (), epsilon: float = 1e-10, activation_type: int = 0
) -> Val:
    """The epsilon bounds the sum of squares; no axes are all of them."""
    total = reduced(t, "ReduceSumSquare", x, axis, True)
    at_least = t.op("Max", [total, np.asarray(epsilon, t.dtype(x))])
    return activated(t, t.op("Div", [x, t.op("Sqrt", [at_least])]), activation_type)


@op("LayerNormFusion")
def layer_norm_fusion(
    t: Tape,
    x: Val,
    gamma: Val = None,
    beta: Val = None,
    *,
    begin_norm_axis: int = -1,
    begin_params_axis: int = -1,
    epsilon: float = 1e-5,
) -> Val:
    """-> y, or (y, mean, 1/deviation); gamma and beta may be left out."""
    axis = axis_of(t, x, begin_norm_axis)
    if gamma is not None and axis == axis_of(t, x, begin_params_axis):
        inputs = [x, gamma] if beta is None else [x, gamma, beta]
        found = t.op("LayerNormalization", inputs, outputs=3, axis=axis, epsilon=float(epsilon))
        return first_or_all(t, *found)
    axes = np.arange(axis, t.rank(x))
    mean = t.op("ReduceMean", [x, axes])
    centred = t.op("Sub", [x, mean])
    variance = t.op("ReduceMean", [t.op("Mul", [centred, centred]), axes])
    wider = t.op("Add", [variance, np.asarray(epsilon, t.dtype(x))])
    inverse = t.op("Reciprocal", [t.op("Sqrt", [wider])])
    y = t.op("Mul", [centred, inverse])
    if gamma is not None:
        y = t.op("Mul", [y, gamma])
    return first_or_all(t, y if beta is None else t.op("Add", [y, beta]), mean, inverse)


@op("GroupNormFusion")
def group_norm_fusion(
    t: Tape, x: Val, gamma: Val, beta: Val, *, num_groups: int, epsilon: float = 1e-5
) -> Val:
    """Channels come second."""
    inputs = [x, gamma, beta]
    return t.op("GroupNormalization", inputs, num_groups=num_groups, epsilon=float(epsilon))


@op("LpNormalization")
def lp_normalization(t: Tape, x: Val, *, axis: int = -1, p: int = 2) -> Val:
    """x by its norm of order 1 or 2 along an axis."""
    if p not in (1, 2):
        raise UnsupportedOpError(f"LpNormalization of order {p} is not supported")
    return t.op("LpNormalization", [x], axis=axis_of(t, x, axis), p=p)
