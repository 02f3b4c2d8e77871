"""Special functions that ONNX lacks, computed in float64 from published approximations.

Every formula is good to 2e-7 of its value or better, about what float32 can hold; float64 tensors
get no more than that. AS241: M. J. Wichura, Applied Statistics 37 (1988), routine PPND7. A&S:
Abramowitz and Stegun, Handbook of Mathematical Functions, by the number of the formula. NR: Press
et al., Numerical Recipes in C (1992), 6.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mindspore_lite.ops.arguments import number
from mindspore_lite.ops.elementwise import in_double
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape, bounded


def polynomial(t: Tape, x: Val, coefficients: Sequence[float]) -> Val:
    """c0 + c1 x + c2 x**2 + ..., by Horner's rule."""
    *rest, found = (np.asarray(c, np.float64) for c in coefficients)
    for c in reversed(rest):
        found = t.op("Add", [t.op("Mul", [x, found]), c])
    return found


def ratio(t: Tape, x: Val, above: Sequence[float], below: Sequence[float]) -> Val:
    """One polynomial divided by another."""
    return t.op("Div", [polynomial(t, x, above), polynomial(t, x, below)])


def choose(t: Tape, x: Val, bound: float, below: Val, above: Val) -> Val:
    """One formula up to a bound, another one beyond it."""
    return t.op("Where", [t.op("LessOrEqual", [x, np.asarray(bound)]), below, above])


def scale(t: Tape, x: Val, factor: float) -> Val:
    """factor * x."""
    return t.op("Mul", [x, np.asarray(factor)])


# --- the error function ---------------------------------------------------------------------------

# NR: 1.2e-7 of the value everywhere
_ERFC = (
    -1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398,
    1.48851587, -0.82215223, 0.17087277,
)  # fmt: skip


@op("Erfc")
def erfc(t: Tape, x: Val) -> Val:
    """1 - erf(x), without losing the digits where erf is nearly 1."""

    def compute(x: Val) -> Val:
        size = t.op("Abs", [x])
        u = t.op("Reciprocal", [t.op("Add", [scale(t, size, 0.5), np.asarray(1.0)])])
        power = t.op("Sub", [polynomial(t, u, _ERFC), t.op("Mul", [x, x])])
        tail = t.op("Mul", [u, t.op("Exp", [power])])
        mirrored = t.op("Sub", [np.asarray(2.0), tail])
        return t.op("Where", [t.op("Less", [x, np.asarray(0.0)]), mirrored, tail])

    return in_double(t, x, compute)


# AS241: the normal quantile near the middle, in the tails, in the far tails
_MIDDLE = (
    (3.3871327179, 50.434271938, 159.29113202, 59.109374720),
    (1.0, 17.895169469, 78.757757664, 67.187563600),
)
_TAIL = (
    (1.4234372777, 2.7568153900, 1.3067284816, 0.17023821103),
    (1.0, 0.73700164250, 0.12021132975),
)
_FAR = (
    (6.6579051150, 3.0812263860, 0.42868294337, 0.017337203997),
    (1.0, 0.24197894225, 0.012258202635),
)


@op("Erfinv")
def erfinv(t: Tape, x: Val) -> Val:
    """The x whose error function is given: the normal quantile of (1 + x) / 2, over sqrt(2)."""

    def compute(x: Val) -> Val:
        q = scale(t, x, 0.5)
        r = t.op("Sub", [np.asarray(0.180625), t.op("Mul", [q, q])])
        middle = t.op("Mul", [q, ratio(t, r, *_MIDDLE)])
        size = t.op("Abs", [x])
        beyond = scale(t, t.op("Sub", [np.asarray(1.0), size]), 0.5)
        r = t.op("Sqrt", [t.op("Neg", [t.op("Log", [beyond])])])
        near = ratio(t, t.op("Sub", [r, np.asarray(1.6)]), *_TAIL)
        far = ratio(t, t.op("Sub", [r, np.asarray(5.0)]), *_FAR)
        # the ends: log(0) has made the ratio inf / inf
        ends = t.op("Equal", [size, np.asarray(1.0)])
        tail = t.op("Where", [ends, np.asarray(np.inf), choose(t, r, 5.0, near, far)])
        signed = t.op("Mul", [t.op("Sign", [x]), tail])
        return scale(t, choose(t, size, 0.85, middle, signed), math.sqrt(0.5))

    return in_double(t, x, compute)


# --- the gamma function ---------------------------------------------------------------------------

_SHIFT = np.arange(6.0)  # the series in 1 / z want z > 6
# A&S 6.3.18 and 6.1.41: Bernoulli numbers over 2k, and over 2k (2k - 1)
_DIGAMMA = (-1 / 12, 1 / 120, -1 / 252, 1 / 240, -1 / 132)
_LGAMMA = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)


def reflected(t: Tape, x: Val) -> tuple[Val, Val]:
    """(whether x < 1/2, x or 1 - x so that it is not)."""
    low = t.op("Less", [x, np.asarray(0.5)])
    return low, t.op("Where", [low, t.op("Sub", [np.asarray(1.0), x]), x])


def shifted(t: Tape, x: Val) -> tuple[Val, Val]:
    """(x, x + 1, ... x + 5 along a new last axis, x + 6)."""
    steps = t.op("Add", [t.op("Unsqueeze", [x, np.asarray([-1])]), _SHIFT])
    return steps, t.op("Add", [x, np.asarray(6.0)])


def total(t: Tape, x: Val) -> Val:
    """The sum along the last axis."""
    return t.op("ReduceSum", [x, np.asarray([-1])], keepdims=0)


@op("Digamma")
def digamma(t: Tape, x: Val) -> Val:
    """The derivative of log(gamma(x)); NaN at the poles -1, -2, ..., -inf at 0."""

    def compute(x: Val) -> Val:
        low, y = reflected(t, x)
        steps, z = shifted(t, y)
        w = t.op("Reciprocal", [t.op("Mul", [z, z])])
        series = t.op("Mul", [w, polynomial(t, w, _DIGAMMA)])
        half = t.op("Div", [np.asarray(0.5), z])
        found = t.op("Add", [t.op("Sub", [t.op("Log", [z]), half]), series])
        found = t.op("Sub", [found, total(t, t.op("Reciprocal", [steps]))])
        # A&S 6.3.7; the angle is that of the fraction, whose tangent is exact at the poles
        angle = scale(t, t.op("Sub", [x, t.op("Floor", [x])]), math.pi)
        slope = scale(t, t.op("Div", [t.op("Cos", [angle]), t.op("Sin", [angle])]), math.pi)
        pole = t.op("Equal", [angle, np.asarray(0.0)])
        at_zero = t.op("Equal", [x, np.asarray(0.0)])
        at_pole = t.op("Where", [at_zero, np.asarray(-np.inf), np.asarray(np.nan)])
        mirrored = t.op("Where", [pole, at_pole, t.op("Sub", [found, slope])])
        return t.op("Where", [low, mirrored, found])

    return in_double(t, x, compute)


@op("Lgamma")
def lgamma(t: Tape, x: Val) -> Val:
    """log(|gamma(x)|); inf at the poles 0, -1, -2, ..."""
    return in_double(t, x, lambda v: log_gamma(t, v))


@op("Mvlgamma")
def mvlgamma(t: Tape, x: Val, *, p: Val) -> Val:
    """The logarithm of the multivariate gamma function: log-gammas of x, x - 1/2, ... added up."""
    order = bounded(int(number(p, "p")), "dimensions")

    def compute(x: Val) -> Val:
        row = t.op("Unsqueeze", [x, np.asarray([-1])])
        found = total(t, log_gamma(t, t.op("Sub", [row, np.arange(order) / 2])))
        return t.op("Add", [found, np.asarray(order * (order - 1) / 4 * math.log(math.pi))])

    return in_double(t, x, compute)


def log_gamma(t: Tape, x: Val) -> Val:
    """log(|gamma(x)|) in float64."""
    low, y = reflected(t, x)
    steps, z = shifted(t, y)
    inverse = t.op("Reciprocal", [z])
    w = t.op("Mul", [inverse, inverse])
    series = t.op("Mul", [inverse, polynomial(t, w, _LGAMMA)])
    main = t.op("Mul", [t.op("Sub", [z, np.asarray(0.5)]), t.op("Log", [z])])
    main = t.op("Sub", [main, z])
    main = t.op("Add", [main, np.asarray(0.5 * math.log(2 * math.pi))])
    found = t.op("Sub", [t.op("Add", [main, series]), total(t, t.op("Log", [steps]))])
    infinite = t.op("IsInf", [y])  # the parts of the sum are infinities of both signs
    found = t.op("Where", [infinite, np.asarray(np.inf), found])
    # A&S 6.1.17
    wave = t.op("Sin", [scale(t, t.op("Sub", [x, t.op("Floor", [x])]), math.pi)])
    log_wave = t.op("Sub", [np.asarray(math.log(math.pi)), t.op("Log", [wave])])
    return t.op("Where", [low, t.op("Sub", [log_wave, found]), found])


# --- sums of powers -------------------------------------------------------------------------------

_ADDED = np.arange(20.0)  # terms added up before the rest is estimated
# A&S 23.1.30, the Euler-Maclaurin formula: Bernoulli numbers over (2k)!
_EULER = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160)


def hurwitz(t: Tape, s: Val, q: Val) -> Val:
    """The sum of (q + k) ** -s over k = 0, 1, ... in float64; NaN below -16, too far from 0."""
    last = np.asarray([-1])
    terms = t.op("Add", [t.op("Unsqueeze", [q, last]), _ADDED])
    found = total(t, t.op("Pow", [terms, t.op("Neg", [t.op("Unsqueeze", [s, last])])]))
    w = t.op("Add", [q, np.asarray(20.0)])
    rest = t.op("Div", [w, t.op("Sub", [s, np.asarray(1.0)])])
    rest = t.op("Add", [rest, np.asarray(0.5)])
    factor = t.op("Div", [s, w])  # s (s + 1) ... (s + 2k) / w ** (2k + 1)
    for k, number_ in enumerate(_EULER):
        rest = t.op("Add", [rest, scale(t, factor, number_)])
        for step in (2 * k + 1, 2 * k + 2):
            rising = t.op("Div", [t.op("Add", [s, np.asarray(float(step))]), w])
            factor = t.op("Mul", [factor, rising])
    tail = t.op("Mul", [t.op("Pow", [w, t.op("Neg", [s])]), rest])
    return choose(t, w, 4.0, np.asarray(np.nan), t.op("Add", [found, tail]))


@op("Zeta")
def zeta(t: Tape, x: Val, q: Val) -> Val:
    """The Hurwitz zeta function: inf at x = 1 and at q = 0, -1, ...; NaN for x below 1."""

    def compute(x: Val) -> Val:
        wide = t.cast(q, np.dtype(np.float64))
        found = hurwitz(t, x, wide)
        pole = t.op("Equal", [x, np.asarray(1.0)])
        found = t.op("Where", [pole, np.asarray(np.inf), found])
        return t.op("Where", [t.op("Less", [x, np.asarray(1.0)]), np.asarray(np.nan), found])

    return in_double(t, x, compute)


@op("Polygamma")
def polygamma(t: Tape, a: Val, x: Val) -> Val:
    """The a-th derivative of digamma, a being constant."""
    order = int(number(a, "a"))
    if order == 0:
        return digamma(t, x)
    bounded(order, "derivatives", 30)  # the estimate of the rest is good for so many
    sign = (-1.0) ** (order + 1) * math.factorial(order)
    return in_double(t, x, lambda v: scale(t, hurwitz(t, np.asarray(order + 1.0), v), sign))
