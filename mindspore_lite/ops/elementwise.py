"""Functions of one tensor, element by element: powers, angles, rounding, types."""

from __future__ import annotations

import math
from collections.abc import Callable

import ml_dtypes
import numpy as np

from mindspore_lite.ops.arguments import number
from mindspore_lite.ops.table import Meaning, Val, op
from mindspore_lite.ops.tape import Tape, dtype_argument, is_bfloat16

DOUBLE = np.dtype(np.float64)


def is_float(dtype: np.dtype) -> bool:
    """Whether a type is a floating one; bfloat16 is of kind V to NumPy."""
    return dtype.kind in "fV"


def as_float(t: Tape, x: Val) -> Val:
    """Functions of integers and booleans are computed in float32, as MindSpore does."""
    return x if is_float(t.dtype(x)) else t.cast(x, np.dtype(np.float32))


def in_double(t: Tape, x: Val, compute: Callable[[Val], Val]) -> Val:
    """A function computed in float64, for formulas that lose digits; the result has x's type."""
    x = as_float(t, x)
    return t.cast(compute(t.cast(x, DOUBLE)), t.dtype(x))


def same(onnx_name: str) -> Meaning:
    """A primitive of one tensor that ONNX has under another name."""

    def meaning(t: Tape, x: Val) -> Val:
        return t.op(onnx_name, [x])

    meaning.__doc__ = f"ONNX {onnx_name}."
    return meaning


def real_function(onnx_name: str) -> Meaning:
    """The same of floats; integers become float32 first."""

    def meaning(t: Tape, x: Val) -> Val:
        return t.op(onnx_name, [as_float(t, x)])

    meaning.__doc__ = f"ONNX {onnx_name}."
    return meaning


def whole(onnx_name: str) -> Meaning:
    """A rounding of floats, which leaves integers alone."""

    def meaning(t: Tape, x: Val) -> Val:
        return t.op(onnx_name, [x]) if is_float(t.dtype(x)) else x

    meaning.__doc__ = f"ONNX {onnx_name}."
    return meaning


for primitive, onnx_name in {
    "Neg": "Neg",
    "Abs": "Abs",
    "Sign": "Sign",
    "LogicalNot": "Not",
}.items():
    op(primitive)(same(onnx_name))
for primitive, onnx_name in {"Floor": "Floor", "Ceil": "Ceil", "Rint": "Round"}.items():
    op(primitive)(whole(onnx_name))
for primitive, onnx_name in {
    "Sqrt": "Sqrt", "Sin": "Sin", "Cos": "Cos", "Tan": "Tan",
    "Asin": "Asin", "AsinExt": "Asin", "ACos": "Acos", "AcosExt": "Acos", "Atan": "Atan",
    "AtanExt": "Atan", "Sinh": "Sinh", "Cosh": "Cosh", "Asinh": "Asinh", "AsinhExt": "Asinh",
    "Acosh": "Acosh", "AcoshExt": "Acosh", "Atanh": "Atanh", "Reciprocal": "Reciprocal",
    "Inv": "Reciprocal",
}.items():  # fmt: skip
    op(primitive)(real_function(onnx_name))


# --- powers, exponentials, logarithms -------------------------------------------------------------


@op("Square")
def square(t: Tape, x: Val) -> Val:
    """x * x."""
    return t.op("Mul", [x, x])


@op("Rsqrt")
def rsqrt(t: Tape, x: Val) -> Val:
    """1 / sqrt(x)."""
    return t.op("Reciprocal", [t.op("Sqrt", [x])])


def line(t: Tape, x: Val, scale: Val, shift: Val) -> Val:
    """scale * x + shift, as attributes of old files may ask for."""
    for name, value, none in (("Mul", scale, 1), ("Add", shift, 0)):
        if number(value, "scale or shift") != none:
            x = t.op(name, [x, np.asarray(value, t.dtype(x))])
    return x


@op("Exp")
def exp(t: Tape, x: Val, *, base: Val = -1.0, scale: Val = 1.0, shift: Val = 0.0) -> Val:
    """base ** (scale * x + shift); a base that is not positive stands for e."""
    x = line(t, as_float(t, x), scale, shift)
    return t.op("Exp", [x if base <= 0 else line(t, x, math.log(base), 0)])


@op("Log")
def log(t: Tape, x: Val, *, base: Val = -1.0, scale: Val = 1.0, shift: Val = 0.0) -> Val:
    """The logarithm of scale * x + shift; a base that is not positive stands for e."""
    found = t.op("Log", [line(t, as_float(t, x), scale, shift)])
    return found if base <= 0 else line(t, found, 1 / math.log(base), 0)


@op("Exp2")
def exp2(t: Tape, x: Val) -> Val:
    """2 to the power of x."""
    x = as_float(t, x)
    return t.op("Pow", [np.asarray(2, t.dtype(x)), x])


@op("Expm1")
def expm1(t: Tape, x: Val) -> Val:
    """exp(x) - 1; float32 would keep no digit of it near zero."""
    return in_double(t, x, lambda v: t.op("Sub", [t.op("Exp", [v]), np.asarray(1.0)]))


@op("Log1p")
def log1p(t: Tape, x: Val) -> Val:
    """log(1 + x); float32 would keep no digit of it near zero."""
    return in_double(t, x, lambda v: t.op("Log", [t.op("Add", [v, np.asarray(1.0)])]))


@op("Log2", "Log10")
def log_of_base(t: Tape, x: Val) -> Val:
    """The logarithm to base 2 or 10."""
    x = as_float(t, x)
    base = float(t.primitive.removeprefix("Log"))
    return t.op("Div", [t.op("Log", [x]), np.asarray(math.log(base), t.dtype(x))])


@op("Logit")
def logit(t: Tape, x: Val, *, eps: Val = -1.0) -> Val:
    """log(x / (1 - x)), x first bounded by eps and 1 - eps unless eps is negative."""
    x = as_float(t, x)
    dtype, bound = t.dtype(x), number(eps, "eps")
    if bound >= 0:
        x = t.op("Clip", [x, np.asarray(bound, dtype), np.asarray(1 - bound, dtype)])
    rest = t.op("Sub", [np.asarray(1, dtype), x])
    return t.op("Log", [t.op("Div", [x, rest])])


@op("Sinc")
def sinc(t: Tape, x: Val) -> Val:
    """sin(pi x) / (pi x), and 1 at zero."""
    x = as_float(t, x)
    dtype = t.dtype(x)
    angle = t.op("Mul", [x, np.asarray(np.pi, dtype)])
    is_zero = t.op("Equal", [x, np.asarray(0, dtype)])
    one = np.asarray(1, dtype)
    wave = t.op("Div", [t.op("Sin", [angle]), t.op("Where", [is_zero, one, angle])])
    return t.op("Where", [is_zero, one, wave])


# --- rounding -------------------------------------------------------------------------------------


@op("Trunc")
def trunc(t: Tape, x: Val) -> Val:
    """Towards zero."""
    if not is_float(t.dtype(x)):
        return x
    return t.op("Mul", [t.op("Sign", [x]), t.op("Floor", [t.op("Abs", [x])])])


@op("Frac")
def frac(t: Tape, x: Val) -> Val:
    """What truncation takes away."""
    return t.op("Sub", [x, trunc(t, x)])


@op("Round")
def round_(t: Tape, x: Val, decimals: Val = 0) -> Val:
    """Half to even, at a decimal place."""
    places = int(number(decimals, "decimals"))
    if not is_float(t.dtype(x)) and places >= 0:
        return x
    if places == 0:
        return t.op("Round", [x])
    factor = np.asarray(10.0**places, t.dtype(x))
    return t.op("Div", [t.op("Round", [t.op("Mul", [x, factor])]), factor])


# --- what is not a number -------------------------------------------------------------------------


def not_finite(t: Tape, x: Val) -> tuple[Val, Val]:
    """(is NaN, is infinite)."""
    return t.op("IsNaN", [x]), t.op("IsInf", [x])


@op("IsNan", "IsInf", "IsNegInf")
def is_special(t: Tape, x: Val) -> Val:
    """Which elements are NaN, infinite, or minus infinity."""
    x = as_float(t, x)
    if t.primitive == "IsNan":
        return t.op("IsNaN", [x])
    return t.op("IsInf", [x], detect_positive=int(t.primitive == "IsInf"))


@op("IsFinite")
def is_finite(t: Tape, x: Val) -> Val:
    """Neither NaN nor infinite."""
    return t.op("Not", [t.op("Or", list(not_finite(t, as_float(t, x))))])


@op("NanToNum")
def nan_to_num(t: Tape, x: Val, *, nan: Val = None, posinf: Val = None, neginf: Val = None) -> Val:
    """Numbers for NaN and infinities; by default zero and the type's largest and smallest."""
    dtype = t.dtype(x)
    if not is_float(dtype):
        return x
    largest = float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]
    for given, usual, found in (
        (nan, 0.0, t.op("IsNaN", [x])),
        (posinf, largest, t.op("IsInf", [x], detect_negative=0)),
        (neginf, -largest, t.op("IsInf", [x], detect_positive=0)),
    ):
        new = usual if given is None else number(given, "replacement")
        x = t.op("Where", [found, np.asarray(new, dtype), x])
    return x


# --- types ----------------------------------------------------------------------------------------


@op("Cast", "ToDtype")
def cast(t: Tape, x: Val, dtype: Val) -> Val:
    """To another element type; bfloat16 is rounded to here, and computed with in float32."""
    made = t.cast(x, dtype_argument(dtype).numpy)
    return t.rounded(made) if is_bfloat16(dtype) else made


@op("TypeAs")
def type_as(t: Tape, x: Val, like: Val) -> Val:
    """To the element type of another tensor."""
    return t.cast(x, t.dtype(like))


@op("ScalarToTensor")
def scalar_to_tensor(t: Tape, x: Val, dtype: Val = None) -> Val:
    """A number as a 0-d tensor."""
    return t.cast(x, t.dtype(x) if dtype is None else dtype_argument(dtype).numpy)
