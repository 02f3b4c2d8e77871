"""Rows for ops/activation.py."""

from __future__ import annotations

import math

import numpy as np
from support.op_case import Case, K, numbers

F16 = np.float16
FLOAT = np.float32
erf = np.vectorize(math.erf, otypes=[FLOAT])


def sigmoid(x: np.ndarray) -> np.ndarray:
    return (1 / (1 + np.exp(-x))).astype(x.dtype)


def softplus(x: np.ndarray) -> np.ndarray:
    return np.log1p(np.exp(x))


def mish(x: np.ndarray) -> np.ndarray:
    return x * np.tanh(softplus(x))


def selu(x: np.ndarray) -> np.ndarray:
    return FLOAT(1.05070098) * np.where(x > 0, x, FLOAT(1.67326324) * np.expm1(x))


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(FLOAT(math.sqrt(2 / math.pi)) * (x + FLOAT(0.044715) * x**3)))


def gelu_erf(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + erf(x / FLOAT(math.sqrt(2))))


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    found = np.exp(x - x.max(axis, keepdims=True))
    return found / found.sum(axis, keepdims=True)


def elu(x: np.ndarray, alpha: float = 1.0) -> np.ndarray:
    return np.where(x > 0, x, FLOAT(alpha) * np.expm1(x))


def celu(x: np.ndarray, alpha: float) -> np.ndarray:
    return np.where(x > 0, x, FLOAT(alpha) * np.expm1(x / FLOAT(alpha)))


def leaky(x: np.ndarray, slope: float) -> np.ndarray:
    return np.where(x > 0, x, FLOAT(slope) * x)


def hard_shrink(x: np.ndarray, bound: float) -> np.ndarray:
    return np.where(np.abs(x) > bound, x, FLOAT(0))


def soft_shrink(x: np.ndarray, bound: float) -> np.ndarray:
    return np.sign(x) * np.maximum(np.abs(x) - FLOAT(bound), FLOAT(0))


def glu(x: np.ndarray, axis: int) -> np.ndarray:
    first, second = np.split(x, 2, axis)
    return first * sigmoid(second)


WIDE = numbers(3, 40, low=-8, high=8)
NARROW = numbers(400, low=-4, high=4)
INTS = numbers(12, low=-9, high=9, dtype=np.int32)

PLAIN = [
    Case("ReLU", [WIDE], lambda x: np.maximum(x, 0), dynamic=True),
    Case("ReLU", [INTS], lambda x: np.maximum(x, 0)),
    Case("ReLU", [numbers(5, dtype=F16)], lambda x: np.maximum(x, 0)),
    Case("ReLUV3", [WIDE], lambda x: np.maximum(x, 0)),
    Case("ReLU6", [WIDE], lambda x: np.clip(x, 0, 6), dynamic=True),
    Case("ReLU6", [numbers(9, low=-9, high=9, dtype=F16)], lambda x: np.clip(x, 0, 6)),
    Case("Sigmoid", [WIDE], sigmoid),
    Case("Sigmoid", [numbers(9, dtype=F16)], sigmoid),
    Case("Tanh", [WIDE], np.tanh),
    Case("Erf", [WIDE], erf),
    Case("Softsign", [WIDE], lambda x: x / (1 + np.abs(x))),
    Case("SeLU", [WIDE], selu),
    Case("SeLUExt", [WIDE], selu),
    Case("Mish", [WIDE], mish),
    Case("MishExt", [WIDE], mish),
    Case("Softplus", [WIDE], softplus),
    Case("HSwish", [WIDE], lambda x: x * np.clip(x / 6 + FLOAT(0.5), 0, 1)),
    Case("HSigmoid", [WIDE], lambda x: np.clip(x / 6 + FLOAT(0.5), 0, 1)),
    Case("SiLU", [WIDE], lambda x: x * sigmoid(x)),
    # the two forms differ by 5e-4 at most
    Case("GeLU", [NARROW], gelu_tanh, loose=0.1),
    Case("GeluExt", [NARROW], gelu_erf, loose=0.1),
    Case("GeluExt", [NARROW, K(0)], gelu_erf, loose=0.1),
    Case("GeluExt", [NARROW, K(1)], gelu_tanh, loose=0.1),
    Case("GeluExt", [NARROW, K("tanh")], gelu_tanh, loose=0.1),
    Case("FastGeLU", [WIDE], lambda x: x * sigmoid(FLOAT(1.702) * x)),
    Case("FastGeLU", [numbers(9, dtype=F16)], lambda x: x * sigmoid(F16(1.702) * x)),
    Case("LogSigmoid", [WIDE], lambda x: -softplus(-x), pick=0),
]

WITH_OPTIONS = [
    Case("Elu", [WIDE], elu, {"alpha": 1.0}),
    Case("Elu", [WIDE], lambda x: elu(x, 0.5), {"alpha": 0.5}),
    Case("EluExt", [WIDE], lambda x: elu(x, 2), {"alpha": 2.0}),
    Case("CeLU", [WIDE], lambda x: celu(x, 2), {"alpha": 2.0}),
    Case("LeakyReLUExt", [WIDE], lambda x: leaky(x, 0.2), {"negative_slope": 0.2}),
    Case("LeakyRelu", [WIDE], lambda x: leaky(x, 0.01)),
    Case("LeakyRelu", [WIDE], lambda x: leaky(x, 0.3), {"negative_slope": 0.3}),
    Case("PReLU", [(2, 3, 4, 4), numbers(3)],
         lambda x, w: np.where(x > 0, x, x * w.reshape(3, 1, 1)), dynamic=False),
    Case("PReLU", [(2, 3), numbers(3)], lambda x, w: np.where(x > 0, x, x * w)),
    Case("PReLU", [(2, 3, 4), numbers(1)], lambda x, w: np.where(x > 0, x, x * w)),
    Case("PReLU", [(4,), numbers(1)], lambda x, w: np.where(x > 0, x, x * w)),
    Case("HShrink", [WIDE], lambda x: hard_shrink(x, 0.5), {"lambd": 0.5}),
    Case("HShrink", [WIDE], lambda x: hard_shrink(x, 2), {"lambd": 2.0}),
    Case("SoftShrink", [WIDE], lambda x: soft_shrink(x, 0.75), {"lambd": 0.75}),
    Case("ClampScalar", [WIDE, K(-1), K(1)], lambda x: np.clip(x, -1, 1)),
    Case("ClampScalar", [WIDE, K(None), K(0.5)], lambda x: np.minimum(x, FLOAT(0.5))),
    Case("ClampScalar", [WIDE, K(-0.5), K(None)], lambda x: np.maximum(x, FLOAT(-0.5))),
    Case("ClampScalar", [INTS, K(-2), K(3)], lambda x: np.clip(x, -2, 3)),
    Case("ClampTensor", [(2, 3), numbers(3, low=-1, high=0), numbers(3, low=0, high=1)], np.clip),
    Case("ClipByValue", [WIDE, K(np.array(-1, FLOAT)), K(np.array(2, np.int32))],
         lambda x: np.clip(x, -1, 2)),
    Case("Hardtanh", [WIDE, K(-1), K(1)], lambda x: np.clip(x, -1, 1)),
    Case("SoftplusExt", [WIDE, K(1), K(20)], softplus),
    Case("SoftplusExt", [WIDE, K(2), K(20)], lambda x: softplus(2 * x) / 2),
    Case("SoftplusExt", [numbers(9, low=50, high=90), K(2), K(20)], lambda x: x),
]  # fmt: skip

ALONG_AXES = [
    Case("Softmax", [(2, 3, 4)], softmax, {"axis": (-1,)}, dynamic=True),
    Case("Softmax", [(2, 3, 4)], lambda x: softmax(x, 1), {"axis": (1,)}),
    Case("Softmax", [(2, 3, 4)], lambda x: softmax(x, 0), {"axis": -3}),
    Case("Softmax", [(5,)], softmax),
    Case("Softmax", [numbers(2, 5, dtype=F16)], softmax),
    Case("SoftmaxExt", [(2, 3), K(0), K(None)], lambda x: softmax(x, 0)),
    Case("SoftmaxExt", [numbers(2, 3, dtype=F16), K(-1), K(43)],
         lambda x: softmax(x.astype(FLOAT))),
    Case("LogSoftmax", [(2, 3, 4)], lambda x: np.log(softmax(x)), {"axis": -1}),
    Case("LogSoftmax", [(2, 3, 4)], lambda x: np.log(softmax(x, 0)), {"axis": 0}),
    Case("LogSoftmaxExt", [(2, 3), K(1), K(None)], lambda x: np.log(softmax(x, 1))),
    Case("GLU", [(2, 6)], lambda x: glu(x, -1), {"axis": -1}),
    Case("GLU", [(4, 3)], lambda x: glu(x, 0), {"axis": 0}),
]  # fmt: skip


def softmax_over(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    found = np.exp(x - x.max(axes, keepdims=True))
    return found / found.sum(axes, keepdims=True)


def swiglu(x: np.ndarray, axis: int) -> np.ndarray:
    first, second = np.split(x, 2, axis)
    return first * sigmoid(first) * second


MORE = [
    Case("ClampMin", [WIDE, K(0)], lambda x: np.maximum(x, 0)),
    Case("ClampMax", [INTS, K(3)], lambda x: np.minimum(x, 3)),
    Case("Gelu", [NARROW], gelu_tanh, loose=0.1),
    Case("FastGelu", [WIDE], lambda x: x * sigmoid(FLOAT(1.702) * x)),
    Case("NpuGelu", [NARROW, K(0)], gelu_erf, loose=0.1),
    Case("Threshold", [WIDE, K(0.5), K(-1)], lambda x: np.where(x > 0.5, x, FLOAT(-1)),
         dynamic=True),
    Case("Threshold", [INTS, K(2), K(7)], lambda x: np.where(x > 2, x, np.int32(7))),
    Case("Swiglu", [(2, 6), K(-1)], lambda x: swiglu(x, -1)),
    Case("Swiglu", [(4, 3), K(0)], lambda x: swiglu(x, 0)),
    Case("Softmax", [(2, 3, 4)], lambda x: softmax_over(x, (1, 2)), {"axis": (1, -1)},
         dynamic=True),
    Case("Softmax", [100 * numbers(2, 3)], lambda x: softmax_over(x, (0, 1)), {"axis": (0, 1)}),
    Case("Softmax", [()], np.ones_like, {"axis": (-1,)}),
    Case("LogSoftmax", [()], np.zeros_like, {"axis": -1}),
    Case("LogSoftmaxExt", [(2, 3), K(None), K(None)], lambda x: np.log(softmax(x, 1))),
    Case("LogSoftmaxExt", [(2, 3, 4), K(None), K(None)], lambda x: np.log(softmax(x, 0))),
    Case("SoftplusExt", [WIDE, K(1), K(2)], lambda x: np.where(x > 2, x, softplus(x))),
    Case("SoftplusExt", [WIDE, K(2), K(3)], lambda x: np.where(2 * x > 3, x, softplus(2 * x) / 2)),
]  # fmt: skip

CASES = [*PLAIN, *WITH_OPTIONS, *ALONG_AXES, *MORE]
