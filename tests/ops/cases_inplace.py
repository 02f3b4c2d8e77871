"""Rows for ops/inplace.py; tests/graph/test_storage.py says who sees what they write."""

from __future__ import annotations

import math

import numpy as np
from support.op_case import Case, K, W, numbers, truths

from mindspore_lite.mindir.records import Monad

FLOAT, I32 = np.float32, np.int32
U = K(Monad.MEMORY)
A = np.array([-7, -6, -1, 0, 1, 6, 7, 7], I32)
B = np.array([2, -3, 4, 5, -5, 3, -2, 7], I32)
POSITIVE = numbers(2, 3, low=0.5, high=2)
MASK = truths(2, 3)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return (1 / (1 + np.exp(-x))).astype(x.dtype)


CASES = [
    Case("InplaceAddExt", [(2, 3), (3,), K(2), U], lambda x, y: x + 2 * y),
    Case("InplaceAddsExt", [(2, 3), K(4), K(1), U], lambda x: x + FLOAT(4)),
    Case("InplaceSubExt", [(2, 3), (3,), K(1), U], np.subtract),
    Case("InplaceSubScalar", [(2, 3), K(4), K(2), U], lambda x: x - FLOAT(8)),
    Case("InplaceMul", [(2, 3), (3,), U], np.multiply),
    Case("InplaceMuls", [(2, 3), K(3), U], lambda x: x * FLOAT(3)),
    Case("InplaceDiv", [(2, 3), numbers(3, low=0.5, high=2), U], np.divide),
    Case("InplaceDivs", [(2, 3), K(4), U], lambda x: x / FLOAT(4)),
    Case("InplaceDivMod", [A, B, K(2), U], np.floor_divide),
    Case("InplaceDivMods", [A, K(2), K(1), U], lambda x: np.trunc(x / 2).astype(I32)),
    Case("InplaceFloorDivide", [A, B, U], np.floor_divide),
    Case("InplaceFloorDivides", [A, K(2), U], lambda x: x // I32(2)),
    Case("InplaceRemainderTensorTensor", [A, B, U], np.mod),
    Case("InplaceRemainderTensorScalar", [A, K(3), U], lambda x: x % I32(3)),
    Case("InplaceExp", [(2, 3), U], np.exp),
    Case("InplaceLog", [POSITIVE, U], np.log),
    Case("InplaceFloor", [(2, 3), U], np.floor),
    Case("InplaceSign", [A, U], np.sign),
    Case("InplaceErfinv", [np.array([math.erf(0.5), 0], FLOAT), U],
         lambda x: np.array([0.5, 0], FLOAT)),
    Case("InplaceReLU", [(2, 3), U], lambda x: np.maximum(x, 0)),
    Case("InplaceSiLU", [(2, 3), U], lambda x: x * sigmoid(x)),
    Case("InplaceSigmoid", [(2, 3), U], sigmoid),
    Case("InplaceTanh", [(2, 3), U], np.tanh),
    Case("InplaceElu", [(2, 3), K(2.0), U], lambda x: np.where(x > 0, x, 2 * np.expm1(x))),
    Case("InplaceThreshold", [(2, 3), K(0.5), K(2), U], lambda x: np.where(x > 0.5, x, FLOAT(2))),
    Case("InplaceHardtanh", [(2, 3), K(-0.5), K(1), U], lambda x: np.clip(x, FLOAT(-0.5), 1)),
    Case("InplaceClampScalar", [(2, 3), K(None), K(1), U], lambda x: np.minimum(x, 1)),
    Case("InplaceClampTensor", [(2, 3), POSITIVE - 2, K(None), U], np.maximum),
    Case("InplaceMaskedFillScalar", [(2, 3), MASK, K(3), U],
         lambda x, m: np.where(m, FLOAT(3), x)),
    Case("InplaceMaskedFillTensor", [(2, 3), MASK, (), U], lambda x, m, v: np.where(m, v, x)),
    Case("InplaceCopy", [(2, 3), A[:3], K(False), U],
         lambda x, y: np.broadcast_to(y.astype(FLOAT), (2, 3)), dynamic=True),
    Case("InplaceFillScalar", [(2, 3), K(2), U], lambda x: np.full_like(x, 2), dynamic=True),
    Case("InplaceFillTensor", [A, K(np.array(2, FLOAT)), U], lambda x: np.full_like(x, 2)),
    Case("InplaceZero", [(2, 3), U], np.zeros_like),
    Case("InplaceNormal", [(2, 3), K(2.0), K(0.0), K(1), K(1), U], lambda x: np.full_like(x, 2)),
    Case("InplaceUniform", [(2, 3), K(2.0), K(2.0), K(1), K(1), U], lambda x: np.full_like(x, 2)),
    Case("InplaceBernoulliScalar", [(2, 3), K(1.0), K(1), K(1), U], np.ones_like),
    Case("InplaceBernoulliTensor", [(2, 3), np.zeros((2, 3), FLOAT), K(1), K(1), U],
         lambda x, p: np.zeros_like(x)),
    Case("Assign", [W(np.zeros(3, FLOAT)), (3,), U], lambda w, x: x),
    # the sums are the state that a run must not read: see tests/graph/test_storage.py
    Case("AssignAdd", [(3,), (3,), U], np.add),
    Case("AssignSub", [(3,), (3,), U], np.subtract),
]  # fmt: skip
