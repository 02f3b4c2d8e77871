"""Rows for ops/gradient.py and ops/gradient_windows.py.

tests/data/gradient.zip has MindSpore's own gradients of whole expressions; these are the formulas.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from support.op_case import Case, K, numbers

FLOAT = np.float32
BENDS = np.array([[-4, -3, -1, -0.5], [-0.1, 0, 0.1, 0.5], [1, 3, 6, 7]], FLOAT)
SHAPE = (3, 4)
LABELS = np.array([0, 2, 1])
Fn = Callable[..., np.ndarray]


def sigmoid(x: np.ndarray) -> np.ndarray:
    return (1 / (1 + np.exp(-x))).astype(FLOAT)


def swish_slope(x: np.ndarray, steep: float) -> np.ndarray:
    s = sigmoid(steep * x)
    return (s * (1 + steep * x * (1 - s))).astype(FLOAT)


def gelu_grad(d: np.ndarray, x: np.ndarray, _: np.ndarray) -> np.ndarray:
    h = np.tanh(0.7978845608 * (x + 0.044715 * x**3))
    slope = 0.7978845608 * (1 + 3 * 0.044715 * x**2)
    return (d * (0.5 * (1 + h) + 0.5 * x * (1 - h**2) * slope)).astype(FLOAT)


def hard_swish_grad(d: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.where(x < -3, 0, np.where(x > 3, d, d * (2 * x + 3) / 6)).astype(FLOAT)


def prelu_grad(d: np.ndarray, x: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    w = w.reshape(-1, 1, 1)
    below = np.where(x > 0, 0, d * x)
    return np.where(x > 0, d, d * w), below.sum((0, 2, 3)).astype(FLOAT)


def norm_grad(
    d: np.ndarray, x: np.ndarray, scale: np.ndarray, axes: tuple[int, ...], eps: float
) -> tuple[np.ndarray, np.ndarray]:
    """-> (of x, x normalised)."""
    rstd = 1 / np.sqrt(x.var(axes, keepdims=True) + eps)
    normal = (x - x.mean(axes, keepdims=True)) * rstd
    inner = d * scale
    rest = inner.mean(axes, keepdims=True) + normal * (inner * normal).mean(axes, keepdims=True)
    return (rstd * (inner - rest)).astype(FLOAT), normal.astype(FLOAT)


def layer_norm_grad(x: np.ndarray, d: np.ndarray, *rest: np.ndarray) -> tuple[np.ndarray, ...]:
    of_x, normal = norm_grad(d, x, rest[2], (1,), 1e-7)
    return of_x, (d * normal).sum(0), d.sum(0)


def batch_norm_grad(d: np.ndarray, x: np.ndarray, scale: np.ndarray, mean: np.ndarray,
                    variance: np.ndarray, _: np.ndarray) -> tuple[np.ndarray, ...]:  # fmt: skip
    s, m, v = (a.reshape(-1, 1, 1) for a in (scale, mean, variance))
    root = np.sqrt(v + FLOAT(1e-5))
    return d * s / root, (d * (x - m) / root).sum((0, 2, 3)), d.sum((0, 2, 3))


def batch_norm_training(d: np.ndarray, x: np.ndarray, scale: np.ndarray,
                        *_: np.ndarray) -> tuple[np.ndarray, ...]:  # fmt: skip
    of_x, normal = norm_grad(d, x, scale.reshape(-1, 1, 1), (0, 2, 3), 1e-5)
    return of_x, (d * normal).sum((0, 2, 3)), d.sum((0, 2, 3))


def group_norm_grad(d: np.ndarray, x: np.ndarray, mean: np.ndarray, rstd: np.ndarray,
                    gamma: np.ndarray) -> tuple[np.ndarray, ...]:  # fmt: skip
    rows = (2, 2, -1)
    normal = ((x.reshape(rows) - mean[..., None]) * rstd[..., None]).reshape(x.shape)
    inner, flat = (d * gamma.reshape(-1, 1, 1)).reshape(rows), normal.reshape(rows)
    rest = inner.mean(2, keepdims=True) + flat * (inner * flat).mean(2, keepdims=True)
    of_x = (rstd[..., None] * (inner - rest)).reshape(x.shape)
    return of_x, (d * normal).sum((0, 2, 3)), d.sum((0, 2, 3))


def l2_normalize_grad(x: np.ndarray, y: np.ndarray, d: np.ndarray) -> np.ndarray:
    norm = np.sqrt(np.maximum((x**2).sum(1, keepdims=True), 1e-4))
    return ((d - y * (y * d).sum(1, keepdims=True)) / norm).astype(FLOAT)


def at_labels(x: np.ndarray, values: np.ndarray) -> np.ndarray:
    found = np.zeros_like(x)
    found[np.arange(len(x)), LABELS] = values
    return found


def added_at(x: np.ndarray, index: np.ndarray, d: np.ndarray) -> np.ndarray:
    found = np.zeros_like(x)
    for place, value in np.ndenumerate(d):
        found[place[0], index[place]] += value
    return found


def sliced_back(d: np.ndarray) -> np.ndarray:
    found = np.zeros((3, 5), FLOAT)
    found[1:, ::2] = d
    return found


def conv_filter(d: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Of a weight [2, 3, 2, 2], stride 1."""
    found = np.zeros((2, 3, 2, 2), FLOAT)
    for i, j in np.ndindex(2, 2):
        found[:, :, i, j] = np.einsum("nohw,nchw->oc", d, x[:, :, i : i + 3, j : j + 3])
    return found


def conv3d_filter(x: np.ndarray, d: np.ndarray) -> np.ndarray:
    found = np.zeros((2, 1, 2, 2, 2), FLOAT)
    for i, j, k in np.ndindex(2, 2, 2):
        part = x[:, :, i : i + 2, j : j + 2, k : k + 2]
        found[:, :, i, j, k] = np.einsum("nodhw,ncdhw->oc", d, part)
    return found


def conv3d_input(w: np.ndarray, d: np.ndarray) -> np.ndarray:
    found = np.zeros((1, 1, 3, 3, 3), FLOAT)
    for i, j, k in np.ndindex(2, 2, 2):
        part = np.einsum("nodhw,oc->ncdhw", d, w[:, :, i, j, k])
        found[:, :, i : i + 2, j : j + 2, k : k + 2] += part
    return found


def spread_evenly(d: np.ndarray) -> np.ndarray:
    """Windows of 2 without gaps."""
    return np.repeat(np.repeat(d, 2, -1), 2, -2) / 4


def to_largest(x: np.ndarray, _: np.ndarray, d: np.ndarray) -> np.ndarray:
    found = np.zeros_like(x)
    for n, c, i, j in np.ndindex(*d.shape):
        part = x[n, c, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
        a, b = np.unravel_index(part.argmax(), (2, 2))
        found[n, c, 2 * i + a, 2 * j + b] = d[n, c, i, j]
    return found


def to_places(x: np.ndarray, d: np.ndarray, places: np.ndarray) -> np.ndarray:
    found = np.zeros((*x.shape[:2], x[0, 0].size), FLOAT)
    for n, c, i in np.ndindex(*d.shape[:2], d[0, 0].size):
        found[n, c, places[n, c].flat[i]] += d[n, c].flat[i]
    return found.reshape(x.shape)


def bilinear_back(d: np.ndarray) -> np.ndarray:
    """From 4 x 4 to 2 x 2 with aligned corners."""
    table = np.array([[1, 0], [2 / 3, 1 / 3], [1 / 3, 2 / 3], [0, 1]])
    found: np.ndarray = np.einsum("ncij,ia,jb->ncab", d, table, table).astype(FLOAT)
    return found


def blocks_summed(d: np.ndarray) -> np.ndarray:
    return d.reshape(1, 2, 2, 2, 2, 2).sum((3, 5))


def unreflected(d: np.ndarray) -> np.ndarray:
    found = d[..., 1:-1].copy()
    found[..., 1] += d[..., 0]
    found[..., -2] += d[..., -1]
    return found


BY_INPUT: dict[str, Fn] = {  # (gradient, what the forward operator was given)
    "ReluGrad": lambda d, x: np.where(x > 0, d, 0),
    "ReLUGrad": lambda d, x: np.where(x > 0, d, 0),
    "ReLU6Grad": lambda d, x: np.where((x > 0) & (x <= 6), d, 0),
    "HSigmoidGrad": lambda d, x: np.where(abs(x) < 3, d / FLOAT(6), FLOAT(0)),
    "HSwishGrad": hard_swish_grad,
    "SiLUGrad": lambda d, x: d * swish_slope(x, 1),
    "FastGeLUGrad": lambda d, x: d * swish_slope(x, 1.702),
    "SoftplusGrad": lambda d, x: d * sigmoid(x),
    "EluGrad": lambda d, y: np.where(y < 0, d * (y + 1), d),
}
BY_OUTPUT: dict[str, Fn] = {  # (what the forward operator gave, gradient)
    "SigmoidGrad": lambda y, d: d * y * (1 - y),
    "TanhGrad": lambda y, d: d * (1 - y * y),
    "SqrtGrad": lambda y, d: d / (2 * y),
    "RsqrtGrad": lambda y, d: d * FLOAT(-0.5) * y**3,
    "ReciprocalGrad": lambda y, d: -d * y * y,
    "InvGrad": lambda y, d: -d * y * y,
    "AsinhGrad": lambda y, d: d / np.cosh(y),
    "AcoshGrad": lambda y, d: d / np.sinh(y),
    "AsinGrad": lambda x, d: d / np.sqrt(1 - x * x),
    "ACosGrad": lambda x, d: -d / np.sqrt(1 - x * x),
    "AtanGrad": lambda x, d: d / (1 + x * x),
}
WINDOW = {"kernel_size": (1, 1, 2, 2), "strides": (1, 1, 2, 2), "pad_mode": "VALID"}
PLACES = np.array([[[[0, 5], [5, 15]]]])
CASES = [
    *(Case(name, [SHAPE, BENDS], wants, dynamic=True) for name, wants in BY_INPUT.items()),
    *(
        Case(name, [(numbers(*SHAPE) * 0.2 + 0.6).astype(FLOAT), SHAPE], wants, dynamic=True)
        for name, wants in BY_OUTPUT.items()
    ),
    Case("GeLUGrad", [SHAPE, BENDS, SHAPE], gelu_grad),
    Case("HShrinkGrad", [SHAPE, BENDS, K(0.5)], lambda d, x: np.where(abs(x) > 0.5, d, 0)),
    Case("SoftShrinkGrad", [SHAPE, BENDS, K(1.0)], lambda d, x: np.where(abs(x) > 1, d, 0)),
    Case("PReLUGrad", [(2, 3, 2, 2), (2, 3, 2, 2), (3,)], prelu_grad),
    Case("BiasAddGrad", [(2, 3, 2, 2)], lambda d: d.sum((0, 2, 3)), {"data_format": 0}),
    Case("BiasAddGrad", [(2, 4, 4, 3)], lambda d: d.sum((0, 1, 2)), {"data_format": 1}),
    *(
        Case(name, [SHAPE, SHAPE, K(-1)], lambda d, y: y * (d - (d * y).sum(1, keepdims=True)))
        for name in ("SoftmaxBackward", "SoftmaxGrad")
    ),
    Case(
        "LogSoftmaxGrad", [SHAPE, SHAPE],
        lambda y, d: d - np.exp(y) * d.sum(0, keepdims=True), {"axis": 0},
    ),
    Case(
        "MedianGrad", [(3,), SHAPE, (3,), LABELS], lambda d, x, y, at: at_labels(x, d),
        attributes={"axis": 1, "keep_dims": False, "global_median": False},
    ),
    Case(
        "MedianGrad", [(), BENDS, np.array(0.5, FLOAT), LABELS],
        lambda d, x, y, at: np.where(x == 0.5, d, FLOAT(0)),
        attributes={"axis": 0, "keep_dims": False, "global_median": True},
    ),
    Case(
        "GatherDGradV2", [SHAPE, K(1), np.array([[0, 0], [1, 2], [3, 3]]), (3, 2)], added_at,
    ),
    Case(
        "LayerNormGrad", [SHAPE, SHAPE, (3, 1), (3, 1), (4,)], layer_norm_grad,
        {"begin_norm_axis": -1, "begin_params_axis": -1}, {"epsilon": 1e-7}, loose=3,
    ),
    Case(
        "BatchNormGrad",
        [(2, 3, 4, 4), (2, 3, 4, 4), (3,), (3,), np.array([1, 2, 3], FLOAT), (3,)],
        batch_norm_grad, {"is_training": False, "epsilon": 1e-5, "data_format": 0},
    ),
    Case(
        "BatchNormGrad",
        [(2, 3, 4, 4), (2, 3, 4, 4), (3,), (3,), np.array([1, 2, 3], FLOAT), (3,)],
        batch_norm_training, {"is_training": True, "epsilon": 1e-5, "data_format": 0}, loose=3,
    ),
    Case(
        "GroupNormGrad",
        [(2, 4, 3, 3), (2, 4, 3, 3), (2, 2), (2, 2), (4,), K(2), K(True), K(True), K(True)],
        group_norm_grad, loose=3,
    ),
    Case(
        "L2NormalizeGrad", [SHAPE, SHAPE, SHAPE], l2_normalize_grad,
        attributes={"axis": [1], "epsilon": 1e-4},
    ),
    Case(
        "SmoothL1LossGrad", [SHAPE, SHAPE, ()],
        lambda x, y, d: np.clip((x - y) / 0.5, -1, 1).astype(FLOAT) * d / 12,
        {"beta": 0.5, "reduction": 1},
    ),
    Case(
        "KLDivLossGrad", [(), SHAPE, SHAPE], lambda d, x, y: -np.maximum(y, 0) * d / FLOAT(3),
        attributes={"reduction": "batchmean"},
    ),
    Case(
        "BinaryCrossEntropyGrad", [sigmoid(numbers(*SHAPE)), SHAPE, (), SHAPE],
        lambda x, y, d, w: w * d * (x - y) / (x * (1 - x)), {"reduction": 0}, loose=3,
    ),
    Case(
        "BinaryCrossEntropyWithLogitsBackward", [(), SHAPE, SHAPE, SHAPE, (4,)],
        lambda d, x, y, w, p: w * d * ((p * y + 1 - y) * sigmoid(x) - p * y), {"reduction": 2},
        loose=3,
    ),
    Case(
        "NLLLossGrad", [SHAPE, (), LABELS, (4,), np.array(2, FLOAT)],
        lambda x, d, at, w, total: at_labels(x, -w[at] * d / total),
        {"reduction": 1, "ignore_index": -100},
    ),
    Case("Conv2DBackpropFilter", [(2, 2, 3, 3), (2, 3, 4, 4), K((2, 3, 2, 2))], conv_filter,
         attributes={"pad_mode": 2, "stride": (1, 1, 1, 1), "dilation": (1, 1, 1, 1)}),
    Case("Conv3DBackpropFilter", [(1, 1, 3, 3, 3), (1, 2, 2, 2, 2), K((2, 1, 2, 2, 2))],
         conv3d_filter, attributes={"pad_mode": "valid"}),
    Case("Conv3DBackpropInput", [(2, 1, 2, 2, 2), (1, 2, 2, 2, 2), K((1, 1, 3, 3, 3))],
         conv3d_input, attributes={"pad_mode": "valid"}),
    Case("AvgPoolGrad", [(1, 2, 4, 4), (1, 2, 2, 2), (1, 2, 2, 2)],
         lambda x, y, d: spread_evenly(d), attributes=WINDOW),
    Case("AvgPool3DGrad", [K((1, 2, 1, 4, 4)), (1, 2, 1, 2, 2)], spread_evenly,
         attributes={"kernel_size": (1, 1, 1, 2, 2), "strides": (1, 1, 1, 2, 2)}),
    Case("AdaptiveAvgPool2DGrad", [(1, 2, 2, 2), K((1, 2, 4, 4))], spread_evenly),
    Case("AdaptiveAvgPool3DGrad", [(1, 2, 1, 2, 2), K((1, 2, 1, 4, 4))], spread_evenly),
    Case("MaxPoolGrad", [(1, 2, 4, 4), (1, 2, 2, 2), (1, 2, 2, 2)], to_largest,
         attributes=WINDOW),
    Case("MaxPoolGradWithArgmaxV2", [(1, 1, 4, 4), (1, 1, 2, 2), PLACES], to_places),
    Case("MaxPoolGradWithArgmax", [(1, 1, 4, 4), (1, 1, 2, 2), PLACES], to_places),
    Case("MaxPool3DGradWithArgmax", [(1, 1, 2, 2, 4), (1, 1, 1, 2, 2), PLACES[:, :, None]],
         to_places),
    Case("ResizeBilinearGrad", [(1, 2, 4, 4), (1, 2, 2, 2)], lambda d, x: bilinear_back(d),
         {"align_corners": True, "half_pixel_centers": False}),
    *(
        Case(name, [(1, 2, 4, 4), K((2, 2))], blocks_summed,
             {"align_corners": False, "half_pixel_centers": False})
        for name in ("ResizeNearestNeighborV2Grad", "ResizeNearestNeighborGrad")
    ),
    Case("PadV3Grad", [(1, 3, 6), K((1, 1))], unreflected, attributes={"mode": "reflect"}),
    Case("StridedSliceGrad", [(2, 3), K((3, 5)), K((1, 0)), K((3, 5)), K((1, 2))], sliced_back),
]  # fmt: skip
