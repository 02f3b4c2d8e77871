"""Rows for ops/loss.py."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from support.op_case import Case, K, numbers

FLOAT, I32 = np.float32, np.int32
X, Y = numbers(2, 3), numbers(2, 3, seed=1)
P, Q = numbers(2, 3, low=0.1, high=0.9), numbers(2, 3, low=0.1, high=0.9, seed=1)
W = numbers(2, 3, low=0.1, high=2, seed=2)
LABELS = np.array([2, 0], I32)
REDUCTIONS: dict[int, Callable[..., np.ndarray]] = {0: np.sum, 1: np.mean, 2: np.asarray}


def softplus(x: np.ndarray) -> np.ndarray:
    return np.log1p(np.exp(x))


def smooth(x: np.ndarray, y: np.ndarray, beta: float) -> np.ndarray:
    d = np.abs(x - y)
    return np.where(d < beta, d * d * FLOAT(0.5 / beta), d - FLOAT(0.5 * beta))


def kl(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return y * (np.log(y) - x)


def bce(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return -(y * np.log(x) + (1 - y) * np.log(1 - x))


def logits(x: np.ndarray, y: np.ndarray, p: float | np.ndarray = 1.0) -> np.ndarray:
    return (1 - y) * x + (1 + (p - FLOAT(1)) * y) * softplus(-x)


def log_softmax(x: np.ndarray) -> np.ndarray:
    return x - np.log(np.exp(x).sum(1, keepdims=True))


def nll(x: np.ndarray, labels: np.ndarray, w: np.ndarray) -> np.ndarray:
    return -x[np.arange(len(x)), labels] * w[labels]


def reduced(code: int, fn: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda *given: REDUCTIONS[code](fn(*given))


CASES = [
    *[case for code in REDUCTIONS for case in (
        Case("MSELossExt", [X, Y, K(code)], reduced(code, lambda x, y: (x - y) ** 2)),
        Case("L1LossExt", [X, Y, K(code)], reduced(code, lambda x, y: np.abs(x - y))),
        Case("SmoothL1Loss", [X, Y], reduced(code, lambda x, y: smooth(x, y, 0.5)),
             {"beta": 0.5, "reduction": code}),
        Case("KLDiv", [X, Q, K(code), K(False)], reduced(code, kl)),
        Case("BinaryCrossEntropy", [P, Q, W], reduced(code, lambda x, y, w: bce(x, y) * w),
             {"reduction": code}),
        Case("BCEWithLogitsLoss", [X, Q, W, W[0]],
             reduced(code, lambda x, y, w, p: logits(x, y, p) * w), {"reduction": code}),
        Case("SoftMarginLoss", [X, np.sign(Y)], reduced(code, lambda x, y: softplus(-x * y)),
             {"reduction": code}),
    )],
    Case("MSELossExt", [X, Y], lambda x, y: ((x - y) ** 2).mean(), dynamic=True),
    Case("SmoothL1Loss", [X, Y], lambda x, y: np.abs(x - y), {"beta": 0.0, "reduction": "none"}),
    Case("BinaryCrossEntropy", [P, Q, K(None)], lambda x, y: bce(x, y).mean(), {"reduction": 1}),
    Case("BCEWithLogitsLoss", [X, Q, K(None), K(None)], lambda x, y: logits(x, y).sum(),
         {"reduction": 0}),
    Case("KLDiv", [X, np.array([[0, 0.5, 0.5], [1, 0, 0]], FLOAT), K(0), K(False)],
         lambda x, y: np.where(y > 0, kl(x, np.where(y > 0, y, FLOAT(1))), FLOAT(0)).sum()),
    Case("KLDiv", [X, Y, K(1), K(True)], lambda x, y: (np.exp(y) * (y - x)).mean()),
    Case("KLDivLoss", [X, Q], lambda x, y: kl(x, y).sum() / FLOAT(2),
         attributes={"reduction": "batchmean"}),
    Case("SigmoidCrossEntropyWithLogits", [X, Q], logits),
    Case("SoftmaxCrossEntropyWithLogits", [X, Q],
         lambda x, y: (-(y * log_softmax(x)).sum(1), np.exp(log_softmax(x)) - y)),
    Case("SparseSoftmaxCrossEntropyWithLogits", [X, LABELS],
         lambda x, y: -log_softmax(x)[np.arange(2), y].mean(), attributes={"is_grad": False}),
    Case("NLLLoss", [X, LABELS, W[0]], lambda x, y, w: (nll(x, y, w), w[y].sum()),
         {"reduction": 2, "ignore_index": -100}),
    Case("NLLLoss", [X, LABELS, W[0]], lambda x, y, w: (nll(x, y, w).sum(), w[y].sum()),
         {"reduction": 0, "ignore_index": -100}),
    Case("NLLLoss", [X, LABELS, W[0]],
         lambda x, y, w: (nll(x, y, w)[0] / w[2], w[2]), {"reduction": "mean", "ignore_index": 0},
         dynamic=True),
]  # fmt: skip
