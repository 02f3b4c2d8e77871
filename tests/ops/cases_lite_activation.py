"""Rows for ops/lite_activation.py."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from support.op_case import Case, K, W, numbers

NHWC, NCHW = {"format": 1}, {"format": 0}
SELU = (1.0507009873554805, 1.6732632423543772)
erf = np.vectorize(math.erf, otypes=[np.float32])


def sigmoid(x: np.ndarray) -> Any:
    return 1 / (1 + np.exp(-x))


def elu(x: np.ndarray, alpha: float) -> Any:
    return np.where(x > 0, x, alpha * np.expm1(x)).astype(np.float32)


def gelu(x: np.ndarray) -> Any:
    return x * (1 + erf(x / np.float32(math.sqrt(2)))) / 2


def gelu_tanh(x: np.ndarray) -> Any:
    return x * (1 + np.tanh(np.float32(math.sqrt(2 / math.pi)) * (x + 0.044715 * x**3))) / 2


def act(code: int, wants: Any, shape: Any = (2, 6), **more: Any) -> Case:
    return Case("Activation", [shape], wants, attributes={"activation_type": code, **more})


ACTIVATIONS = [
    act(0, lambda x: x),
    act(1, lambda x: np.maximum(x, 0), (2, 3, 4, 4)),
    act(2, sigmoid),
    act(3, lambda x: np.clip(x * 1, 0, 6)),
    act(4, lambda x: elu(x, 1.0), alpha=1.0),
    act(4, lambda x: elu(x, 0.3), alpha=0.3),
    act(5, lambda x: np.where(x > 0, x, np.float32(0.2) * x)),
    act(5, lambda x: np.where(x > 0, x, np.float32(0.01) * x), alpha=0.01),
    act(6, np.abs),
    act(7, lambda x: np.clip(x, -1, 1)),
    act(8, lambda x: x / (1 + np.abs(x))),
    act(9, lambda x: np.log1p(np.exp(x))),
    act(10, np.tanh),
    act(11, lambda x: np.float32(SELU[0]) * elu(x, SELU[1])),
    act(12, lambda x: x * np.clip(x + 3, 0, 6) / 6),
    act(13, lambda x: np.clip(x + 3, 0, 6) / 6),
    act(14, lambda x: np.where(x > 1, x, np.float32(0)), alpha=1.0),
    act(15, lambda x: x),
    act(16, lambda x: np.clip(x, -1, 1), min_val=-1.0, max_val=1.0),
    act(16, lambda x: np.minimum(x, 0.5), min_val=float(np.finfo(np.float32).tiny), max_val=0.5),
    act(16, lambda x: np.maximum(x, 0), min_val=0.0, max_val=float(np.finfo(np.float32).max)),
    act(17, np.sign),
    act(18, lambda x: x * sigmoid(x)),
    act(19, gelu),
    act(19, gelu_tanh, approximate=True),
    act(20, lambda x: x[:, :3] * sigmoid(x[:, 3:])),
    act(22, lambda x: x * sigmoid(np.float32(1.702) * x)),
    act(23, lambda x: x * sigmoid(x)),
    act(27, lambda x: elu(x / np.float32(0.5), 0.5) * np.where(x > 0, 0.5, 1).astype(np.float32),
        alpha=0.5),
]  # fmt: skip

BINARY = [
    Case("AddFusion", [(2, 3), (3,)], lambda x, y: x + y, dynamic=True),
    Case("AddFusion", [(2, 3), (2, 3)], lambda x, y: np.maximum(x + y, 0),
         attributes={"activation_type": 1}),
    Case("AddFusion", [(2, 3), K(np.array([1, 2, 3], np.int32))], lambda x: x + [1, 2, 3] * x**0,
         untyped=False),
    Case("SubFusion", [(2, 3), (2, 1)], lambda x, y: np.clip(x - y, 0, 6),
         attributes={"activation_type": 3}),
    Case("SubFusion", [numbers(4, dtype=np.int32), numbers(4, dtype=np.int32, seed=1)],
         lambda x, y: x - y, attributes={"activation_type": 0}),
    Case("MulFusion", [(2, 3), (1,)], lambda x, y: x * y, attributes={"activation_type": 0}),
    Case("DivFusion", [(2, 3), numbers(2, 3, low=1)], lambda x, y: x / y, dynamic=True),
    Case("DivFusion", [np.array([7, 9], np.int32), np.array([2, 4], np.int32)],
         lambda x, y: x // y),
    Case("Eltwise", [(2, 3), (2, 3), (2, 3)], lambda x, y, z: x * y * z, attributes={"mode": 0}),
    Case("Eltwise", [(2, 3), (2, 3), (2, 3)], lambda x, y, z: x + y + z, attributes={"mode": 1}),
    Case("Eltwise", [(2, 3), (2, 3)], np.maximum, attributes={"mode": 2}, dynamic=True),
]  # fmt: skip

OTHERS = [
    Case("PReLUFusion", [(2, 4, 4, 3), W(numbers(3))], lambda x, w: np.where(x > 0, x, w * x),
         attributes=NHWC),
    Case("PReLUFusion", [(2, 3, 4, 4), W(numbers(3))],
         lambda x, w: np.where(x > 0, x, w.reshape(3, 1, 1) * x), attributes=NCHW),
    Case("PReLUFusion", [(2, 3), W(numbers(1))], lambda x, w: np.where(x > 0, x, w * x),
         attributes={"channel_shared": True}),
    Case("Clip", [(2, 6)], lambda x: np.clip(x, -1, 0.5), attributes={"min": -1.0, "max": 0.5}),
    Case("Clip", [(2, 6), K(np.array(-1, np.float32)), K(np.array(1, np.float32))],
         lambda x: np.clip(x, -1, 1)),
    Case("Clip", [(2, 6), np.array(-1, np.float32), np.array(1, np.float32)],
         lambda x, low, high: np.clip(x, low, high)),
    Case("Clip", [(2, 6)], lambda x: np.maximum(x, 0), attributes={"min": 0.0}),
]  # fmt: skip

CASES = [*ACTIVATIONS, *BINARY, *OTHERS]
