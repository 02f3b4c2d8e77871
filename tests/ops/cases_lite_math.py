"""Rows for ops/lite_math.py, ops/lite_norm.py and ops/lite_recurrent.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.op_case import Case, K, W, numbers

I32 = np.int32


def axes(*values: int) -> K:
    """Axes as converter_lite keeps them."""
    return K(np.array(values, I32))


PRODUCTS = [
    Case("MatMulFusion", [(2, 3), (3, 4)], lambda a, b: a @ b, dynamic=True),
    Case("MatMulFusion", [(2, 3), W(numbers(4, 3)), W(numbers(4))], lambda a, b, c: a @ b.T + c,
         attributes={"transpose_b": True, "activation_type": 0}),
    Case("MatMulFusion", [(3, 2), (3, 4), (4,)], lambda a, b, c: np.maximum(a.T @ b + c, 0),
         attributes={"transpose_a": True, "transpose_b": False, "activation_type": 1}),
    Case("MatMulFusion", [(2, 5, 3), W(numbers(3, 4)), W(numbers(4))],
         lambda a, b, c: np.clip(a @ b + c, 0, 6), attributes={"activation_type": 3}),
    Case("MatMulFusion", [(2, 3), (3, 4), (5, 1, 1)], lambda a, b, c: a @ b + c),
    Case("MatMulFusion", [(2, 5, 3), (2, 4, 3)], lambda a, b: a @ b.transpose(0, 2, 1),
         attributes={"transpose_b": True}, dynamic=True),
    Case("FullConnection", [(2, 3), W(numbers(4, 3)), W(numbers(4))], lambda x, w, b: x @ w.T + b,
         attributes={"has_bias": True, "use_axis": False, "axis": 0, "activation_type": 0}),
    Case("FullConnection", [(2, 2, 2, 3), W(numbers(4, 12))],
         lambda x, w: np.maximum(x.reshape(2, 12) @ w.T, 0),
         attributes={"has_bias": False, "use_axis": True, "axis": 1, "activation_type": 1},
         dynamic=True),
    Case("FullConnection", [(2, 3, 2, 2), W(numbers(5, 4)), W(numbers(5))],
         lambda x, w, b: x.reshape(2, 3, 4) @ w.T + b,
         attributes={"has_bias": True, "use_axis": True, "axis": 2}, dynamic=True),
    Case("FullConnection", [(2, 3, 4), W(numbers(5, 4))], lambda x, w: x.reshape(6, 4) @ w.T),
    Case("FullConnection", [(2, 6), W(numbers(5, 3))], lambda x, w: x.reshape(4, 3) @ w.T),
    Case("FullConnection", [(2, 3), numbers(4, 3)], lambda x, w: x @ w.T, dynamic=True),
    Case("ScaleFusion", [(2, 4, 4, 3), W(numbers(3)), W(numbers(3, seed=1))],
         lambda x, s, b: np.maximum(x * s + b, 0), attributes={"axis": -1, "activation_type": 1}),
    Case("ScaleFusion", [(2, 3, 4, 4), W(numbers(3)), W(numbers(3, seed=1))],
         lambda x, s, b: x * s.reshape(3, 1, 1) + b.reshape(3, 1, 1), attributes={"axis": 1},
         dynamic=True),
    Case("ScaleFusion", [(2, 3, 4), (2, 3)], lambda x, s: x * s[..., None], attributes={"axis": 0}),
]  # fmt: skip

NUMPY: dict[int, Any] = {
    0: np.mean, 1: np.max, 2: np.min, 3: np.prod, 4: np.sum,
    5: lambda x, *a, **k: np.sum(x * x, *a, **k),
    6: lambda x, *a, **k: np.sum(np.abs(x), *a, **k),
    8: lambda x, *a, **k: np.sqrt(np.sum(x * x, *a, **k)),
    9: lambda x, *a, **k: np.sum(np.abs(x), *a, **k),
    10: lambda x, *a, **k: np.log(np.sum(x, *a, **k)),
    11: lambda x, *a, **k: np.log(np.sum(np.exp(x), *a, **k)),
}  # fmt: skip

REDUCTIONS = [
    Case("ReduceFusion", [numbers(2, 4, 4, 3, low=0.1), axes(1, 2)],
         lambda x, how=how: how(x, (1, 2), keepdims=True),
         attributes={"mode": mode, "keep_dims": True, "reduce_to_end": False, "coeff": 1.0})
    for mode, how in NUMPY.items()
] + [
    Case("ReduceFusion", [(2, 3, 4), axes(-1)], lambda x: x.mean(-1), attributes={"mode": 0},
         dynamic=True),
    Case("ReduceFusion", [(2, 3, 4)], lambda x: np.asarray(x.sum()), attributes={"mode": 4}),
    Case("ReduceFusion", [(2, 3, 4), K(np.zeros(0, I32))], lambda x: x.max(keepdims=True),
         attributes={"mode": 1, "keep_dims": True}),
    Case("ReduceFusion", [(2, 3, 4), axes(1)], lambda x: 3 * x.sum((1, 2)),
         attributes={"mode": 4, "keep_dims": True, "reduce_to_end": True, "coeff": 3.0}),
    Case("ReduceFusion", [(2, 3, 4), axes(1)], lambda x: x.sum((1, 2)),
         attributes={"mode": 4, "reduce_to_end": True, "coeff": 0.0}),
    Case("ReduceFusion", [(2, 3, 4), axes(1)], lambda x: x.sum(1),
         attributes={"mode": 4, "reduce_to_end": False, "coeff": 3.0}),
    Case("ReduceFusion", [numbers(2, 3) > -1, axes(1)], lambda x: x.all(1),
         attributes={"mode": 7}),
]  # fmt: skip


def best(x: np.ndarray, k: int, axis: int, sign: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(-sign * x, axis, kind="stable")
    index = np.take(order, range(k), axis)
    return np.take_along_axis(x, index, axis), index.astype(I32)


EXTREMES = [
    Case("ArgMaxFusion", [(2, 5, 3)], lambda x: x.argmax(1).astype(I32),
         attributes={"axis": 1, "top_k": 1, "keep_dims": False, "out_max_value": False}),
    Case("ArgMaxFusion", [(2, 5, 3)], lambda x: x.argmax(-1, keepdims=True).astype(I32),
         attributes={"axis": -1, "keep_dims": True}),
    Case("ArgMaxFusion", [(2, 5, 3)], lambda x: x.max(1), attributes={"axis": 1,
                                                                      "out_max_value": True},
         untyped=False),
    Case("ArgMaxFusion", [(2, 5, 3)], lambda x: (x.argmax(1).astype(I32), x.max(1)),
         attributes={"axis": 1, "out_max_value": True}, untyped=False),
    Case("ArgMaxFusion", [(2, 5, 3)], lambda x: best(x, 2, 1, 1)[::-1],
         attributes={"axis": 1, "top_k": 2, "out_max_value": True}, untyped=False),
    Case("ArgMinFusion", [(2, 5, 3)], lambda x: x.argmin(1).astype(I32), attributes={"axis": 1},
         dynamic=True),
    Case("ArgMinFusion", [(2, 5, 3)], lambda x: best(x, 3, 1, -1)[1],
         attributes={"axis": 1, "top_k": 3}),
    Case("TopKFusion", [(2, 5), K(np.array(3, I32))], lambda x: best(x, 3, 1, 1),
         attributes={"axis": -1, "largest": 1, "sorted": True}, dynamic=True),
    Case("TopKFusion", [(5, 2), np.array([2], I32)], lambda x, k: best(x, 2, 0, -1),
         attributes={"axis": 0, "largest": 0, "sorted": True}),
]  # fmt: skip

POSITIVE = numbers(2, 3, low=0.5)
POWERS = [
    Case("PowFusion", [POSITIVE, K(np.array(2.5, np.float32))], lambda x: x**2.5,
         attributes={"scale": 1.0, "shift": 0.0}),
    Case("PowFusion", [POSITIVE, (3,)], lambda x, y: (2 * x + 1) ** y,
         attributes={"scale": 2.0, "shift": 1.0}, dynamic=True),
    Case("PowFusion", [POSITIVE, K(np.array(2, I32))], lambda x: x**2),
    Case("ExpFusion", [(2, 3)], np.exp, attributes={"base": -1.0, "scale": 1.0, "shift": 0.0}),
    Case("ExpFusion", [(2, 3)], lambda x: 2 ** (3 * x - 1),
         attributes={"base": 2.0, "scale": 3.0, "shift": -1.0}),
]  # fmt: skip


def layer_norm(x: np.ndarray, axis: int, eps: float) -> tuple[Any, Any, Any]:
    over = tuple(range(axis % x.ndim, x.ndim))
    mean, inverse = x.mean(over, keepdims=True), 1 / np.sqrt(x.var(over, keepdims=True) + eps)
    return (x - mean) * inverse, mean, inverse.astype(np.float32)


def batch_norm(x: np.ndarray, s: Any, b: Any, m: Any, v: Any) -> Any:
    return (x - m) / np.sqrt(v + np.float32(1e-3)) * s + b


STATISTICS = [W(numbers(3, seed=i)) for i in range(3)] + [W(numbers(3, low=0.5))]
EPS = {"epsilon": 1e-3}
NORMS = [
    Case("L2NormalizeFusion", [(2, 3, 4)], lambda x: x / np.sqrt((x * x).sum(-1, keepdims=True)),
         attributes={"axis": [-1], "epsilon": 1e-10, "activation_type": 0}, dynamic=True),
    Case("L2NormalizeFusion", [(2, 3)], lambda x: np.maximum(x / np.sqrt(np.float32(50)), 0),
         attributes={"axis": [], "epsilon": 50.0, "activation_type": 1}),
    Case("LayerNormFusion", [(2, 3, 4), W(numbers(4)), W(numbers(4, seed=1))],
         lambda x, g, b: layer_norm(x, -1, 1e-3)[0] * g + b,
         attributes={"begin_norm_axis": -1, "begin_params_axis": -1, "elementwise_affine": True,
                     **EPS}, untyped=False, dynamic=True),
    Case("LayerNormFusion", [(2, 3, 4), W(numbers(3, 4)), W(numbers(3, 4, seed=1))],
         lambda x, g, b: (layer_norm(x, 1, 1e-3)[0] * g + b, *layer_norm(x, 1, 1e-3)[1:]),
         attributes={"begin_norm_axis": 1, "begin_params_axis": 1, **EPS}),
    Case("LayerNormFusion", [(2, 3, 4)], lambda x: layer_norm(x, -1, 1e-3),
         attributes={"begin_norm_axis": -1, "elementwise_affine": False, **EPS}, dynamic=True),
    Case("LayerNormFusion", [(2, 3, 4), W(numbers(4)), W(numbers(4, seed=1))],
         lambda x, g, b: layer_norm(x, 1, 1e-3)[0] * g + b,
         attributes={"begin_norm_axis": 1, "begin_params_axis": 2, **EPS}, untyped=False),
    Case("LpNormalization", [(2, 3, 4)], lambda x: x / np.abs(x).sum(1, keepdims=True),
         attributes={"axis": 1, "p": 1}),
    Case("LpNormalization", [(2, 3)], lambda x: x / np.sqrt((x * x).sum(-1, keepdims=True)),
         attributes={"axis": -1, "p": 2}),
    Case("GroupNormFusion", [(2, 4, 3, 3), W(numbers(4)), W(numbers(4, seed=1))],
         lambda x, g, b: layer_norm(x.reshape(2, 2, -1), -1, 1e-3)[0].reshape(x.shape)
         * g.reshape(4, 1, 1) + b.reshape(4, 1, 1),
         attributes={"num_groups": 2, "affine": True, **EPS}),
    Case("FusedBatchNorm", [(2, 4, 4, 3), *STATISTICS], batch_norm,
         attributes={"momentum": 0.9, "mode": 1, "format": 1, **EPS}, untyped=False),
    Case("FusedBatchNorm", [(2, 3), *STATISTICS], batch_norm, attributes={"format": 1, **EPS},
         untyped=False, dynamic=True),
    Case("LRN", [(1, 3, 3, 4)],
         lambda x: np.moveaxis(lrn(np.moveaxis(x, -1, 1)), 1, -1),
         attributes={"depth_radius": 1, "bias": 1.0, "alpha": 0.5, "beta": 0.5, "format": 1}),
]  # fmt: skip


def lrn(x: np.ndarray) -> np.ndarray:
    squares = np.pad(x * x, [(0, 0), (1, 1), (0, 0), (0, 0)])
    total = sum(squares[:, i : i + x.shape[1]] for i in range(3))
    return x / np.sqrt(1 + np.float32(0.5) * total)


def sigmoid(x: np.ndarray) -> Any:
    return 1 / (1 + np.exp(-x))


def gru(x: np.ndarray, w: Any, r: Any, b: Any, h: Any) -> tuple[np.ndarray, np.ndarray]:
    """One direction after the other; the gates are (update, reset, hidden)."""
    ways = []
    for d in range(w.shape[0]):
        hidden, steps = h.reshape(w.shape[0], *h.shape[-2:])[d], []
        n = hidden.shape[-1]
        (wz, wr, wh), (rz, rr, rh) = np.split(w[d], 3), np.split(r[d], 3)
        bz, br, bh, cz, cr, ch = np.split(b[d], 6)
        for row in x if d == 0 else x[::-1]:
            z = sigmoid(row @ wz.T + bz + hidden @ rz.T + cz)
            reset = sigmoid(row @ wr.T + br + hidden @ rr.T + cr)
            new = np.tanh(row @ wh.T + bh + (reset * hidden) @ rh.T + ch)
            hidden = z * hidden + (1 - z) * new
            steps.append(hidden)
        ways.append((np.stack(steps if d == 0 else steps[::-1]), hidden, n))
    return np.stack([s for s, _, _ in ways], 1), np.stack([h for _, h, _ in ways])


def recurrent(directions: int) -> list[W]:
    shapes = [(directions, 12, 3), (directions, 12, 4), (directions, 24)]
    return [W(numbers(*shape, seed=i, low=-1, high=1)) for i, shape in enumerate(shapes)]


RECURRENT = [
    Case("GRU", [(5, 2, 3), *recurrent(1), numbers(1, 2, 4)], gru,
         attributes={"bidirectional": False}),
    Case("GRU", [(5, 2, 3), *recurrent(1), numbers(2, 4)], gru),
    Case("GRU", [(5, 2, 3), *recurrent(2), numbers(2, 2, 4)], gru,
         attributes={"bidirectional": True}),
]  # fmt: skip

SPECTRA = [
    *[Case("Rfft", [(2, 6)], lambda x, n=n: np.fft.rfft(x, n).astype(np.complex64),
           attributes={"fft_length": n}) for n in (6, 4, 8)],
    *[Case(name, [numbers(2, 3) + np.complex64(1j) * numbers(2, 3, seed=1)], wants)
      for name, wants in [("FftReal", np.real), ("FftImag", np.imag)]],
]  # fmt: skip

CASES = [*PRODUCTS, *REDUCTIONS, *EXTREMES, *POWERS, *NORMS, *RECURRENT, *SPECTRA]
