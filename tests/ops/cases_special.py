"""Rows for ops/special.py."""

from __future__ import annotations

import math

import numpy as np
from support.op_case import Case, K, numbers

FLOAT = np.float32
STEP = 1e-4  # of the differences that stand for the derivative of lgamma

erfc = np.vectorize(math.erfc, otypes=[np.float64])
erf = np.vectorize(math.erf, otypes=[np.float64])
lgamma = np.vectorize(math.lgamma, otypes=[np.float64])


def slope(x: np.ndarray) -> np.ndarray:
    """The derivative of log(gamma), by differences of fourth order."""
    far, near = (lgamma(x + k * STEP) - lgamma(x - k * STEP) for k in (2, 1))
    return ((8 * near - far) / (12 * STEP)).astype(x.dtype)


def zeta(s: np.ndarray | float, q: np.ndarray) -> np.ndarray:
    """Many terms, and the integral of the others."""
    terms = np.arange(20_000).reshape(-1, *[1] * q.ndim) + q.astype(np.float64)
    end = terms[-1] + 1
    return np.asarray((terms**-s).sum(0) + end ** (1 - s) / (s - 1) + 0.5 * end**-s)


def polygamma(n: int, x: np.ndarray) -> np.ndarray:
    return ((-1) ** (n + 1) * math.factorial(n) * zeta(n + 1.0, x)).astype(x.dtype)


Y = np.linspace(-3.5, 3.5, 41)
TAIL = np.linspace(0, 9, 10)
POSITIVE = np.array([0.01, 0.3, 1.1, 2.5, 6, 30, 1e3], np.float64)
NEGATIVE = np.array([-0.5, -1.3, -2.7, -7.2], np.float64)

CASES = [
    Case("Erfc", [numbers(3, 4)], lambda x: erfc(x).astype(FLOAT), dynamic=True),
    *[Case("Erfc", [np.array([v], FLOAT)], lambda x: erfc(x).astype(FLOAT), loose=0.02)
      for v in TAIL],
    *[Case("Erfinv", [np.array([v])], lambda x, y=y: np.array([y]), loose=0.01)
      for y, v in zip(Y, erf(Y), strict=True)],
    Case("Erfinv", [numbers(3, 4, low=-0.5, high=0.5, dtype=np.float16)],
         lambda x: np.interp(x, erf(Y), Y).astype(np.float16), loose=5),
    Case("Erfinv", [np.array([-1, 1, 2, 0], FLOAT)],
         lambda x: np.array([-np.inf, np.inf, np.nan, 0], FLOAT), dynamic=True),
    Case("Lgamma", [numbers(3, 4, low=0.1, high=8)], lambda x: lgamma(x).astype(FLOAT)),
    *[Case("Lgamma", [np.array([v])], lgamma, loose=0.001) for v in (*POSITIVE, *NEGATIVE)],
    Case("Lgamma", [np.array([0, -1, -2, np.inf, 1, 2, 3], FLOAT)],
         lambda x: np.array([np.inf] * 4 + [0, 0, math.log(2)], FLOAT), dynamic=True),
    Case("Zeta", [numbers(3, 4, low=1.2, high=6), numbers(4, low=0.2, high=9)],
         lambda s, q: zeta(s, np.broadcast_to(q, s.shape)).astype(FLOAT), dynamic=True),
    Case("Zeta", [np.array([1, 0.5, 2], FLOAT), np.array([2, 2, 0], FLOAT)],
         lambda s, q: np.array([np.inf, np.nan, np.inf], FLOAT)),
    *[Case("Polygamma", [K(np.array(n)), np.array([v])], lambda x, n=n: polygamma(n, x), loose=0.01)
      for n in (1, 2, 5) for v in (0.1, 1.0, 3.5, 40.0, -0.5, -6.1)],
    Case("Polygamma", [K(0), numbers(5, low=0.5, high=4)],
         lambda x: slope(x.astype(np.float64)).astype(FLOAT), dynamic=True),
    Case("Mvlgamma", [numbers(3, 4, low=2, high=8)],
         lambda x: (sum(lgamma(x - j / 2) for j in range(3)) + 1.5 * math.log(math.pi))
         .astype(FLOAT), attributes={"p": 3}, dynamic=True),
    Case("Digamma", [numbers(3, 4, low=0.1, high=8)],
         lambda x: slope(x.astype(np.float64)).astype(FLOAT)),
    *[Case("Digamma", [np.array([v])], slope, loose=0.01) for v in (*POSITIVE, *NEGATIVE)],
    Case("Digamma", [np.array([0, -1, 1], FLOAT)],
         lambda x: np.array([-np.inf, np.nan, -0.57721566], FLOAT), dynamic=True),
]  # fmt: skip
