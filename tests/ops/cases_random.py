"""Rows for ops/random.py, of draws that leave no choice; test_random.py looks at the others."""

from __future__ import annotations

import numpy as np
from support.op_case import Case, K, numbers

FLOAT, F16, I32, I64 = np.float32, np.float16, np.int32, np.int64
NONE = (2, 0)  # a shape without elements
X = numbers(2, 3)
SEEDS = [K(1), K(2)]


def empty(dtype: type = FLOAT) -> np.ndarray:
    return np.empty(NONE, dtype)


CASES = [
    Case("UniformReal", [K(NONE)], empty, attributes={"seed": 0, "seed2": 0}),
    Case("StandardNormal", [K(NONE)], empty, attributes={"seed": 0, "seed2": 0}),
    Case("UniformInt", [K((2, 3)), K(np.array(4, I32)), K(np.array(5, I32))],
         lambda: np.full((2, 3), 4, I32)),
    Case("RandExt", [K(NONE), *SEEDS, K(43), K(None)], empty),
    Case("Randn", [K(NONE), *SEEDS, K(42), K(None)], lambda: empty(F16)),
    Case("RandLikeExt", [empty(), *SEEDS, K(None), K(None)], lambda x: x),
    Case("RandnLike", [empty(), *SEEDS, K(42), K(None)], lambda x: empty(F16)),
    Case("RandInt", [K(4), K(5), K((2, 3)), *SEEDS, K(None), K(None)],
         lambda: np.full((2, 3), 4, I64)),
    Case("RandIntLike", [X, K(-1), K(0), *SEEDS, K(34), K(None)],
         lambda x: np.full((2, 3), -1, I32), dynamic=True),
    Case("UniformExt", [X, K(2.0), K(2.0), *SEEDS], lambda x: np.full_like(x, 2)),
    Case("NormalTensorTensor", [X, np.zeros((2, 3), FLOAT), *SEEDS], lambda m, s: m, dynamic=True),
    Case("NormalTensorFloat", [X, K(0.0), *SEEDS], lambda m: m),
    Case("NormalFloatTensor", [K(3.0), np.zeros((2, 3), FLOAT), *SEEDS],
         lambda s: np.full_like(s, 3)),
    Case("NormalFloatFloat", [K(3.0), K(0.0), K((2, 3)), *SEEDS],
         lambda: np.full((2, 3), 3, FLOAT)),
    Case("RandpermExt", [K(1), *SEEDS, K(35)], lambda: np.zeros(1, I64)),
    Case("RandpermV2", [K(1)], lambda: np.zeros(1, I32), {"seed": 1, "offset": 2, "dtype": 34}),
    Case("RandomShuffle", [np.full((3, 2), 5, FLOAT)], lambda x: x,
         attributes={"seed": 0, "seed2": 0}, dynamic=True),
    Case("UniformInt", [np.array([2, 3]), K(np.array(4, I32)), K(np.array(5, I32))],
         lambda shape: np.full((2, 3), 4, I32), dynamic=True),
    Case("RandInt", [K(4), K(5), K(()), *SEEDS, K(None), K(None)], lambda: np.array(4)),
    Case("RandomShuffle", [()], lambda x: x),
    Case("Bernoulli", [X, K(np.array(1, FLOAT))], np.ones_like, attributes={"seed": 1}),
    Case("BernoulliExt", [np.array([0, 1, 1, 0], F16), *SEEDS], lambda p: p),
    Case("Multinomial", [np.array([[0, 0, 2], [1, 0, 0]], FLOAT), K(4)],
         lambda x: np.array([[2] * 4, [0] * 4], I32), attributes={"seed": 0, "dtype": 34}),
    Case("Multinomial", [np.array([0, 3, 0], FLOAT), K(2)], lambda x: np.array([1, 1], I64),
         attributes={"dtype": 35}),
    Case("StandardLaplace", [K(NONE)], empty, attributes={"seed": 0, "seed2": 0}),
    Case("RandomCategorical", [np.array([[0, -200, -200]], FLOAT), K(2), K(0)],
         lambda x: np.array([[0, 0]], I32), attributes={"dtype": 34}),
    Case("MultinomialWithReplacement", [np.array([[0, 0, 2]], FLOAT), *SEEDS],
         lambda x: np.array([[2, 2]]), attributes={"numsamples": 2, "replacement": True}),
    Case("MultinomialExt", [np.array([[0, 0, 2]], FLOAT), K(1), K(False), *SEEDS],
         lambda x: np.array([[2]])),
    Case("MultinomialExt", [np.array([[0, 0, 2]], FLOAT), K(3), K(True), *SEEDS],
         lambda x: np.array([[2, 2, 2]]), dynamic=True),
    Case("Dropout", [X], lambda x: (x, np.ones_like(x)),
         {"keep_prob": 0.3, "Seed0": 1, "Seed1": 2}),
    Case("Dropout2D", [X], lambda x: (x, np.ones(x.shape, np.bool_)), {"keep_prob": 0.3}),
    Case("Dropout3D", [X], lambda x: x, {"keep_prob": 0.3}, pick=0),
    Case("DropoutExt", [X, K(0.3), *SEEDS], lambda x: x, pick=0),
    Case("DropoutDoMask", [X, np.zeros(3, np.uint8), K(0.5)], lambda x, mask: x),
    Case("DropoutDoMaskExt", [X, np.zeros(3, np.uint8), K(0.5)], lambda x, mask: x),
    Case("FuncDropoutExt", [X, K(0.3), K(True), K(False), *SEEDS], lambda x: x),
    Case("Dropout2dExt", [X, K(0.3), K(False), K(False), *SEEDS], lambda x: x),
]  # fmt: skip
