"""Bessel functions, computed in float64 from published approximations.

They are good to 6e-7 of the value (J and Y near their zeros: 1e-7 of the neighbouring crest), about
what float32 can hold; float64 tensors get no more. A&S: Abramowitz and Stegun, Handbook of
Mathematical Functions, by the number of the formula. Hart: J. F. Hart et al., Computer
Approximations (1968), as used in Numerical Recipes in C, 6.5.
"""

from __future__ import annotations

import math

import numpy as np

from mindspore_lite.ops.elementwise import in_double
from mindspore_lite.ops.special import choose, polynomial, ratio, scale
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape

# A&S 9.8.1 to 9.8.4: I0 and I1 / x in (x / 3.75)**2, then sqrt(x) exp(-x) I in 3.75 / x
_I = {
    0: ((1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.0360768, 0.0045813),
        (0.39894228, 0.01328592, 0.00225319, -0.00157565, 0.00916281, -0.02057706, 0.02635537,
         -0.01647633, 0.00392377)),
    1: ((0.5, 0.87890594, 0.51498869, 0.15084934, 0.02658733, 0.00301532, 0.00032411),
        (0.39894228, -0.03988024, -0.00362018, 0.00163801, -0.01031555, 0.02282967, -0.02895312,
         0.01787654, -0.00420059)),
}  # fmt: skip
# A&S 9.8.5 to 9.8.8: the rest of K0 and x K1 in (x / 2)**2, then sqrt(x) exp(x) K in 2 / x
_K = {
    0: ((-0.57721566, 0.42278420, 0.23069756, 0.03488590, 0.00262698, 0.00010750, 0.00000740),
        (1.25331414, -0.07832358, 0.02189568, -0.01062446, 0.00587872, -0.00251540, 0.00053208)),
    1: ((1.0, 0.15443144, -0.67278579, -0.18156897, -0.01919402, -0.00110404, -0.00004686),
        (1.25331414, 0.23498619, -0.03655620, 0.01504268, -0.00780353, 0.00325614, -0.00068245)),
}  # fmt: skip


def bessel_i(t: Tape, x: Val, order: int, scaled: bool) -> Val:
    """I0 or I1 of x, or that times exp(-|x|)."""
    size = t.op("Abs", [x])
    small, large = _I[order]
    u = scale(t, size, 1 / 3.75)
    near = polynomial(t, t.op("Mul", [u, u]), small)
    near = t.op("Mul", [near, x]) if order else near
    far = t.op("Div", [polynomial(t, t.op("Reciprocal", [u]), large), t.op("Sqrt", [size])])
    far = t.op("Mul", [far, t.op("Sign", [x])]) if order else far
    if scaled:
        near = t.op("Mul", [near, t.op("Exp", [t.op("Neg", [size])])])
    else:
        far = t.op("Mul", [far, t.op("Exp", [size])])
    return choose(t, size, 3.75, near, far)


def bessel_k(t: Tape, x: Val, order: int, scaled: bool) -> Val:
    """K0 or K1 of x, or that times exp(x); infinite at zero, as MindSpore has it also below."""
    small, large = _K[order]
    half = scale(t, x, 0.5)
    log_part = t.op("Mul", [t.op("Log", [half]), bessel_i(t, x, order, scaled=False)])
    rest = polynomial(t, t.op("Mul", [half, half]), small)
    if order:
        near = t.op("Add", [log_part, t.op("Div", [rest, x])])
    else:
        near = t.op("Sub", [rest, log_part])
    far = polynomial(t, t.op("Reciprocal", [half]), large)
    far = t.op("Div", [far, t.op("Sqrt", [x])])
    if scaled:
        near = t.op("Mul", [near, t.op("Exp", [x])])
    else:
        far = t.op("Mul", [far, t.op("Exp", [t.op("Neg", [x])])])
    found = choose(t, x, 2.0, near, far)
    return choose(t, x, 0.0, np.asarray(np.inf), found)


@op("BesselI0", "BesselI0e", "BesselI1", "BesselI1e", "BesselK0", "BesselK0e", "BesselK1",
    "BesselK1e")  # fmt: skip
def modified_bessel(t: Tape, x: Val) -> Val:
    """The modified Bessel function of this kind and order; e: without its exponential growth."""
    name = t.primitive.removeprefix("Bessel")
    formula = bessel_i if name[0] == "I" else bessel_k
    return in_double(t, x, lambda v: formula(t, v, int(name[1]), name.endswith("e")))


# Hart: J0 and J1 / x in x**2 up to 8; then the factors of the cosine and of the sine in (8 / x)**2
_J = {
    0: ((57568490574.0, -13362590354.0, 651619640.7, -11214424.18, 77392.33017, -184.9052456),
        (57568490411.0, 1029532985.0, 9494680.718, 59272.64853, 267.8532712, 1.0)),
    1: ((72362614232.0, -7895059235.0, 242396853.1, -2972611.439, 15704.48260, -30.16036606),
        (144725228442.0, 2300535178.0, 18583304.74, 99447.43394, 376.9991397, 1.0)),
}  # fmt: skip
_WAVES = {
    0: ((1.0, -0.1098628627e-2, 0.2734510407e-4, -0.2073370639e-5, 0.2093887211e-6),
        (-0.1562499995e-1, 0.1430488765e-3, -0.6911147651e-5, 0.7621095161e-6, -0.934945152e-7)),
    1: ((1.0, 0.183105e-2, -0.3516396496e-4, 0.2457520174e-5, -0.240337019e-6),
        (0.04687499995, -0.2002690873e-3, 0.8449199096e-5, -0.88228987e-6, 0.105787412e-6)),
}  # fmt: skip
# Hart: what Y has besides 2 / pi log(x) J
_Y = {
    0: ((-2957821389.0, 7062834065.0, -512359803.6, 10879881.29, -86327.92757, 228.4622733),
        (40076544269.0, 745249964.8, 7189466.438, 47447.26470, 226.1030244, 1.0)),
    1: ((-0.4900604943e13, 0.1275274390e13, -0.5153438139e11, 0.7349264551e9, -0.4237922726e7,
         0.8511937935e4),
        (0.2499580570e14, 0.4244419664e12, 0.3733650367e10, 0.2245904002e8, 0.1020426050e6,
         0.3549632885e3, 1.0)),
}  # fmt: skip


def small_j(t: Tape, x: Val, order: int) -> Val:
    """J0 or J1 of |x| < 8."""
    found = ratio(t, t.op("Mul", [x, x]), *_J[order])
    return t.op("Mul", [found, x]) if order else found


def wave(t: Tape, size: Val, order: int, second: bool) -> Val:
    """J, or Y when `second`, of x >= 8: a decaying wave."""
    z = t.op("Div", [np.asarray(8.0), size])
    y = t.op("Mul", [z, z])
    even, odd = (polynomial(t, y, c) for c in _WAVES[order])
    phase = t.op("Sub", [size, np.asarray((0.25 + 0.5 * order) * math.pi)])
    cos, sin = t.op("Cos", [phase]), t.op("Sin", [phase])
    odd = t.op("Mul", [z, odd])
    if second:
        found = t.op("Add", [t.op("Mul", [sin, even]), t.op("Mul", [cos, odd])])
    else:
        found = t.op("Sub", [t.op("Mul", [cos, even]), t.op("Mul", [sin, odd])])
    return t.op("Mul", [found, t.op("Sqrt", [t.op("Div", [np.asarray(2 / math.pi), size])])])


def bessel_j(t: Tape, x: Val, order: int) -> Val:
    """J0 or J1."""
    size = t.op("Abs", [x])
    far = wave(t, size, order, second=False)
    far = t.op("Mul", [far, t.op("Sign", [x])]) if order else far
    return choose(t, size, 8.0, small_j(t, x, order), far)


def bessel_y(t: Tape, x: Val, order: int) -> Val:
    """Y0 or Y1; minus infinity at zero and, as MindSpore has it, below."""
    near = t.op("Mul", [small_j(t, x, order), t.op("Log", [x])])
    rest = ratio(t, t.op("Mul", [x, x]), *_Y[order])
    if order:
        near = t.op("Sub", [near, t.op("Reciprocal", [x])])
        rest = t.op("Mul", [rest, x])
    near = t.op("Add", [scale(t, near, 2 / math.pi), rest])
    found = choose(t, x, 8.0, near, wave(t, x, order, second=True))
    return choose(t, x, 0.0, np.asarray(-np.inf), found)


@op("BesselJ0", "BesselJ1", "BesselY0", "BesselY1")
def bessel(t: Tape, x: Val) -> Val:
    """The Bessel function of this kind and order."""
    name = t.primitive.removeprefix("Bessel")
    formula = bessel_j if name[0] == "J" else bessel_y
    return in_double(t, x, lambda v: formula(t, v, int(name[1])))
