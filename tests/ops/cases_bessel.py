"""Rows for ops/bessel.py, against their integrals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from support.op_case import Case, numbers

# the trapezoid rule is exact to rounding on a whole period, and on tails that fall this fast
CIRCLE = np.linspace(0, 2 * np.pi, 400, endpoint=False)
RAYS = np.linspace(0, 12, 4001)
trapezoid = getattr(np, "trapezoid", None) or np.trapz  # as NumPy 2 and NumPy 1 call it


def integral(fn: Callable[..., np.ndarray], steps: np.ndarray) -> Callable[..., np.ndarray]:
    """The mean over a circle, or the integral along a ray."""

    def compute(x: np.ndarray) -> np.ndarray:
        values = fn(x[..., None].astype(np.float64), steps)
        found = values.mean(-1) if steps is CIRCLE else trapezoid(values, steps, axis=-1)
        return np.asarray(found.astype(x.dtype))

    return compute


def second_kind(order: int) -> Callable[..., np.ndarray]:
    """Y by its integral: an oscillating part and a decaying one."""

    def compute(x: np.ndarray) -> np.ndarray:
        wide, angles = x[..., None].astype(np.float64), np.linspace(0, np.pi, 20001)
        wave = trapezoid(np.sin(wide * np.sin(angles) - order * angles), angles, axis=-1)
        rays = np.linspace(0, 20, 80001)
        grown = np.exp(order * rays) + (-1) ** order * np.exp(-order * rays)
        tail = trapezoid(grown * np.exp(-wide * np.sinh(rays)), rays, axis=-1)
        return np.asarray(((wave - tail) / np.pi).astype(x.dtype))

    return compute


FUNCTIONS = {
    "I0": integral(lambda x, a: np.exp(x * np.cos(a)), CIRCLE),
    "I1": integral(lambda x, a: np.exp(x * np.cos(a)) * np.cos(a), CIRCLE),
    "I0e": integral(lambda x, a: np.exp(x * np.cos(a) - abs(x)), CIRCLE),
    "I1e": integral(lambda x, a: np.exp(x * np.cos(a) - abs(x)) * np.cos(a), CIRCLE),
    "J0": integral(lambda x, a: np.cos(x * np.sin(a)), CIRCLE),
    "J1": integral(lambda x, a: np.cos(a - x * np.sin(a)), CIRCLE),
    "K0": integral(lambda x, a: np.exp(-x * np.cosh(a)), RAYS),
    "K1": integral(lambda x, a: np.exp(-x * np.cosh(a)) * np.cosh(a), RAYS),
    "K0e": integral(lambda x, a: np.exp(x - x * np.cosh(a)), RAYS),
    "K1e": integral(lambda x, a: np.exp(x - x * np.cosh(a)) * np.cosh(a), RAYS),
    "Y0": second_kind(0),
    "Y1": second_kind(1),
}
BOTH_SIDES = numbers(3, 4, low=-9, high=15)
POSITIVE = numbers(3, 4, low=0.1, high=15)

CASES = [
    *[Case(f"Bessel{name}", [POSITIVE if name[0] in "KY" else BOTH_SIDES], fn, dynamic=True,
           loose=0.02) for name, fn in FUNCTIONS.items()],
    *[Case(f"Bessel{name}", [np.array([v], np.float32)], fn, loose=0.02)
      for name, fn in FUNCTIONS.items() for v in (0.5, 2.0, 3.75, 8.0, 20.0)],
    Case("BesselI0", [np.array([0.0, 1.0])], FUNCTIONS["I0"], loose=0.02),
    Case("BesselK0", [np.array([0, -1], np.float32)], lambda x: np.array([np.inf] * 2, np.float32)),
    Case("BesselY1", [np.array([0, -1], np.float32)],
         lambda x: np.array([-np.inf] * 2, np.float32)),
]  # fmt: skip
