"""Rows for ops/norm.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.op_case import Case, K, W, numbers

F16 = np.float16


def batch_norm(
    x: np.ndarray, s: Any, b: Any, m: Any, v: Any, eps: float, last: bool = False
) -> Any:
    shape = (-1,) if last else (-1, *[1] * (x.ndim - 2))
    s, b, m, v = (a.reshape(shape) for a in (s, b, m, v))
    return ((x - m) / np.sqrt(v + np.float32(eps)) * s + b).astype(x.dtype)


def stats(channels: int, dtype: Any = np.float32) -> list[Any]:
    """scale, bias, mean, variance as weights."""
    low = numbers(4, channels, dtype=dtype)
    return [W(low[0]), W(low[1]), W(low[2]), W(numbers(channels, low=0.5, high=2, dtype=dtype))]


def init(epsilon: float, data_format: int = 0) -> dict[str, Any]:
    return {"is_training": False, "epsilon": epsilon, "momentum": 0.9, "data_format": data_format}


def normal(x: np.ndarray, axes: Any, eps: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    rstd = 1 / np.sqrt(var + np.float32(eps))
    return (x - mean) * rstd, mean, rstd


def layer_norm(x: np.ndarray, g: np.ndarray, b: np.ndarray, axis: int, eps: float) -> Any:
    y, mean, rstd = normal(x, tuple(range(axis, x.ndim)), eps)
    return y * g + b, mean, rstd


def group_norm(x: np.ndarray, w: np.ndarray, b: np.ndarray, groups: int, eps: float) -> Any:
    shape = (1, -1, *[1] * (x.ndim - 2))
    y, _, _ = normal(x.reshape(x.shape[0], groups, -1), 2, eps)
    return y.reshape(x.shape) * w.reshape(shape) + b.reshape(shape)


def lrn(x: np.ndarray, radius: int, bias: float, alpha: float, beta: float) -> np.ndarray:
    total = np.zeros_like(x)
    for c in range(x.shape[1]):
        near = x[:, max(c - radius, 0) : c + radius + 1]
        total[:, c] = (near**2).sum(1)
    return x / (np.float32(bias) + np.float32(alpha) * total) ** np.float32(beta)


def l2_normal(x: np.ndarray, axis: Any, eps: float) -> np.ndarray:
    return x / np.sqrt(np.maximum((x**2).sum(axis, keepdims=True), np.float32(eps)))


def p_norm(x: np.ndarray, axis: Any, p: int, keep: bool, eps: float = 1e-12) -> np.ndarray:
    total = (np.abs(x) ** p).sum(axis, keepdims=keep)
    return np.maximum(total if p == 1 else np.sqrt(total), np.float32(eps))


def axes(norm: int, params: int, epsilon: float) -> dict[str, Any]:
    return {"begin_norm_axis": norm, "begin_params_axis": params, "epsilon": epsilon}


def rms_norm(x: np.ndarray, g: np.ndarray, axis: Any, eps: float) -> Any:
    rstd = 1 / np.sqrt((x**2).mean(axis, keepdims=True) + np.float32(eps))
    return x * rstd * g, rstd


def renorm(x: np.ndarray) -> np.ndarray:
    norm = np.sqrt((x**2).sum((0, 2), keepdims=True))
    return np.where(norm > 3, x * (3 / (norm + np.float32(1e-7))), x).astype(np.float32)


def cdist(x: np.ndarray, y: np.ndarray, p: float) -> np.ndarray:
    return np.linalg.norm(x[..., :, None, :] - y[..., None, :, :], p, -1)


def batch_own(x: np.ndarray, s: Any, b: Any, eps: float) -> Any:
    axes = (0, *range(2, x.ndim))
    return batch_norm(x, s, b, x.mean(axes), x.var(axes), eps)


BATCH = [
    Case("BatchNorm", [(2, 3, 4, 4), *stats(3)], lambda *a: batch_norm(*a, 1e-3), init(1e-3),
         pick=0, dynamic=True),
    Case("BatchNorm", [(2, 3, 4, 4), *stats(3)],
         lambda x, s, b, m, v: (batch_norm(x, s, b, m, v, 1e-3), m, v, m, v), init(1e-3)),
    Case("BatchNorm", [(2, 3), *stats(3)], lambda *a: batch_norm(*a, 0.1), init(0.1), pick=0),
    Case("BatchNorm", [(2, 3, 5), *stats(3)], lambda *a: batch_norm(*a, 1e-5), init(1e-5), pick=0),
    Case("BatchNorm", [(2, 4, 4, 3), *stats(3)], lambda *a: batch_norm(*a, 1e-3, last=True),
         init(1e-3, 1), pick=0),
    Case("BatchNorm", [numbers(2, 3, 4, 4, dtype=F16), *stats(3)],
         lambda *a: batch_norm(*a, 1e-3), init(1e-3), pick=0),
    Case("FusedBatchNormEx", [(2, 3, 4, 4), *stats(3)], lambda *a: batch_norm(*a, 1e-3),
         attributes={"epsilon": 1e-3, "format": "NCHW"}, pick=0),
    Case("BatchNorm", [(2, 3, 4, 4), *stats(3)],
         lambda x, s, b, m, v: batch_own(x, s, b, 1e-3), {**init(1e-3), "is_training": True},
         pick=0, dynamic=True),
    Case("BatchNorm", [(4, 3), *stats(3)], lambda x, s, b, m, v: batch_own(x, s, b, 1e-3),
         {**init(1e-3), "is_training": True}, pick=0),
    Case("BatchNormExt", [(2, 3, 4, 4), *stats(3), K(False), K(0.1), K(1e-3)],
         lambda x, s, b, m, v: (batch_norm(x, s, b, m, v, 1e-3), m, 1 / np.sqrt(v + 1e-3))),
    Case("BatchNormExt", [(2, 3, 4), K(None), K(None), *stats(3)[2:], K(False), K(0.1), K(1e-3)],
         lambda x, m, v: batch_norm(x, np.ones(3), np.zeros(3), m, v, 1e-3), pick=0, dynamic=True),
    Case("BatchNormExt", [(2, 3, 4), K(None), K(None), K(None), K(None), K(True), K(0.1), K(1e-3)],
         lambda x: (batch_own(x, np.ones(3), np.zeros(3), 1e-3), x.mean((0, 2)),
                    1 / np.sqrt(x.var((0, 2)) + np.float32(1e-3)))),
    Case("FusedBatchNorm", [(2, 3, 4, 4), *stats(3)], lambda *a: batch_norm(*a, 1e-3),
         attributes={"epsilon": 1e-3, "format": "NCHW"}, pick=0),
]  # fmt: skip

OTHERS = [
    Case("LayerNorm", [(2, 3, 4), (4,), (4,)],
         lambda x, g, b: (*layer_norm(x, g, b, 2, 1e-5)[:2], x.var(2, keepdims=True)),
         axes(-1, -1, 1e-5)),
    Case("LayerNorm", [(2, 3, 4), (4,), (4,)],
         lambda x, g, b: (*layer_norm(x, g, b, 1, 1e-5)[:2], x.var((1, 2), keepdims=True)),
         axes(1, 2, 1e-5), dynamic=True),
    Case("LayerNorm", [numbers(2, 4, dtype=F16), numbers(4, dtype=F16), numbers(4, dtype=F16)],
         lambda x, g, b: layer_norm(x.astype("f"), g, b, 1, 1e-5)[0].astype(F16),
         axes(1, 1, 1e-5), pick=0),
    Case("LayerNormV3", [(2, 3, 4), (4,), (4,)], lambda x, g, b: layer_norm(x, g, b, 2, 1e-5),
         axes(-1, -1, 1e-5)),
    Case("LayerNorm", [(2, 3, 4), (3, 4), (3, 4)],
         lambda x, g, b: layer_norm(x, g, b, 1, 1e-2)[0], axes(1, 1, 1e-2), pick=0, dynamic=True),
    Case("LayerNormV3", [(2, 3, 4), (4,), (4,)], lambda x, g, b: layer_norm(x, g, b, 2, 1e-5)[0],
         axes(2, -1, 1e-5), pick=0),
    Case("LayerNormExt", [(2, 3, 4), K((4,)), (4,), (4,), K(1e-5)],
         lambda x, g, b: layer_norm(x, g, b, 2, 1e-5)[0], pick=0),
    Case("LayerNormExt", [(2, 3, 4), K((3, 4)), K(None), K(None), K(1e-2)],
         lambda x: normal(x, (1, 2), 1e-2)[0], pick=0),
    Case("LayerNormExt", [(2, 4), K((4,)), (4,), K(None), K(1e-5)],
         lambda x, g: normal(x, 1, 1e-5)[0] * g, pick=0),
    Case("GroupNorm", [(2, 6, 4, 4), K(3), (6,), (6,), K(1e-5)],
         lambda x, w, b: group_norm(x, w, b, 3, 1e-5), pick=0),
    Case("GroupNorm", [(2, 6, 4, 4), K(3), (6,), (6,), K(1e-5)],
         lambda x, w, b: (group_norm(x, w, b, 3, 1e-5),
                          *(v[..., 0] for v in normal(x.reshape(2, 3, -1), 2, 1e-5)[1:]))),
    Case("GroupNorm", [(2, 4, 5), K(4), (4,), (4,), K(0.5)],
         lambda x, w, b: group_norm(x, w, b, 4, 0.5), pick=0),
    Case("GroupNorm", [(2, 6, 4, 4), K(3), K(None), K(None), K(1e-5)],
         lambda x: group_norm(x, np.ones(6, "f"), np.zeros(6, "f"), 3, 1e-5), pick=0, dynamic=True),
    Case("LayerNormExt", [(2, 4), K((4,)), K(None), (4,), K(1e-5)],
         lambda x, b: normal(x, 1, 1e-5)[0] + b, pick=0, dynamic=True),
    Case("AddLayerNormV2", [(2, 3, 4), (2, 3, 4), (4,), (4,), K(1e-5), K(True)],
         lambda x, y, g, b: (*layer_norm(x + y, g, b, 2, 1e-5), x + y), dynamic=True),
    Case("InstanceNorm", [(2, 3, 4, 4), *stats(3)],
         lambda x, g, b, *_: group_norm(x, g, b, 3, 1e-3), attributes={"epsilon": 1e-3}, pick=0),
    Case("RmsNorm", [(2, 3, 4), (4,)], lambda x, g: rms_norm(x, g, 2, 1e-3), {"epsilon": 1e-3},
         dynamic=True),
    Case("RmsNorm", [(2, 3, 4), (3, 4)], lambda x, g: rms_norm(x, g, (1, 2), 1e-3),
         {"epsilon": 1e-3}),
    Case("RmsNorm", [numbers(2, 4, low=500, high=900, dtype=F16), numbers(4, dtype=F16)],
         lambda x, g: rms_norm(x.astype("f"), g, 1, 1e-6)[0].astype(F16), {"epsilon": 1e-6},
         pick=0),
    Case("RmsNorm", [numbers(2, 4, dtype=np.float64), numbers(4, dtype=np.float64)],
         lambda x, g: rms_norm(x, g, 1, 1e-2)[0], {"epsilon": 1e-2}, pick=0),
    Case("AddRmsNorm", [(2, 3, 4), (2, 3, 4), (4,), K(1e-6)],
         lambda x, y, g: (*rms_norm(x + y, g, 2, 1e-6), x + y)),
    Case("L2Normalize", [(2, 3, 4)], lambda x: l2_normal(x, 1, 1e-4),
         attributes={"axis": 1, "epsilon": 1e-4}),
    Case("L2Normalize", [(2, 3, 4)], lambda x: l2_normal(x, (0, 2), 30),
         attributes={"axis": [0, -1], "epsilon": 30.0}),
    Case("LpNorm", [(2, 3)], lambda x: p_norm(x, 1, 2, False),
         attributes={"axis": (1,), "p": 2, "keep_dims": False, "epsilon": 1e-12}),
    Case("LpNorm", [(2, 3)], lambda x: p_norm(x, (0, 1), 1, True),
         attributes={"axis": [0, 1], "p": 1, "keep_dims": True}),
    Case("LpNorm", [(2, 3)], lambda x: p_norm(x, 0, 2, False, 2.0),
         attributes={"axis": 0, "epsilon": 2.0}),
    Case("LpNorm", [(2, 3)], lambda x: (np.abs(x) ** 3).sum(1) ** np.float32(1 / 3),
         attributes={"axis": 1, "p": 3}),
    Case("LpNormV2", [(2, 3), K(2.0), K((1,)), K(True), K(1e-12)], lambda x: p_norm(x, 1, 2, True)),
    Case("LpNormV2", [(2, 3), K(2.0), K(None), K(False), K(1e-12)],
         lambda x: p_norm(x, None, 2, False)),
    *[Case("LinalgVectorNorm", [(2, 3, 4), K(p), K((1,)), K(keep), K(None)],
           lambda x, p=p, keep=keep: np.linalg.norm(x, p, 1, keepdims=keep), dynamic=True)
      for p, keep in ((2.0, False), (1.0, True), (3.0, False), (0.0, True), (np.inf, False),
                      (-np.inf, True), (0.5, False))],
    Case("LinalgVectorNorm", [(2, 3), K(2.0), K(None), K(False), K(44)],
         lambda x: np.linalg.norm(x.astype(np.float64))),
    Case("EuclideanNorm", [(2, 3, 4), K(np.array([0, 2]))],
         lambda x: np.sqrt((x**2).sum((0, 2))), attributes={"keep_dims": False}),
    Case("Renorm", [(2, 3, 4)], renorm, attributes={"p": 2, "dim": 1, "maxnorm": 3.0}),
    Case("Cdist", [(2, 3, 4), (2, 5, 4)], lambda x, y: cdist(x, y, 2.0), {"p": 2.0}, dynamic=True),
    Case("Cdist", [(3, 4), (5, 4)], lambda x, y: cdist(x, y, 1.0), {"p": 1.0}),
    Case("Cdist", [(3, 4), (5, 4)], lambda x, y: cdist(x, y, np.inf), {"p": np.inf}),
    Case("LRN", [(2, 7, 3, 3)], lambda x: lrn(x, 2, 1.0, 0.01, 0.75),
         attributes={"depth_radius": 2, "bias": 1.0, "alpha": 0.01, "beta": 0.75}),
    Case("LRN", [(1, 5, 2, 2)], lambda x: lrn(x, 1, 2.0, 0.5, 0.5),
         attributes={"depth_radius": 1, "bias": 2.0, "alpha": 0.5, "beta": 0.5}),
]  # fmt: skip

CASES = [*BATCH, *OTHERS]
