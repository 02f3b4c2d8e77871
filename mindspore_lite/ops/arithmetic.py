"""Arithmetic of two and more tensors: sums, products, quotients, remainders, powers."""

from __future__ import annotations

import math

import numpy as np

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops.arguments import same_type
from mindspore_lite.ops.elementwise import is_float, square, trunc
from mindspore_lite.ops.table import Meaning, Val, op
from mindspore_lite.ops.tape import Tape, constant_of

_ROUNDING = {None: None, 1: "trunc", 2: "floor"}


def floating(t: Tape, *operands: Val) -> list[Val]:
    """Operands in the type of the result, integers as float32."""
    dtype = t.result_dtype(*operands)
    return same_type(t, np.dtype(np.float32) if dtype.kind in "bui" else dtype, *operands)


def binary(onnx_name: str) -> Meaning:
    """Two operands in the result's type: files mix int constants with float tensors."""

    def meaning(t: Tape, x: Val, y: Val) -> Val:
        return t.op(onnx_name, same_type(t, t.result_dtype(x, y), x, y))

    meaning.__doc__ = f"ONNX {onnx_name}, operands cast to the result's type."
    return meaning


for primitive, onnx_name in {
    "Add": "Add", "AddV2": "Add", "TensorAdd": "Add", "Sub": "Sub", "Mul": "Mul", "Muls": "Mul",
    "Maximum": "Max", "Minimum": "Min", "Pow": "Pow", "PowTensorScalar": "Pow",
    "PowScalarTensor": "Pow",
}.items():  # fmt: skip
    op(primitive)(binary(onnx_name))


# --- sums and products ----------------------------------------------------------------------------


def scaled(t: Tape, onnx_name: str, x: Val, y: Val, alpha: Val) -> Val:
    """x +- alpha * y."""
    dtype = t.result_dtype(x, y)
    x, y = same_type(t, dtype, x, y)
    if constant_of(alpha) != 1:
        y = t.op("Mul", [y, t.cast(alpha, dtype)])
    return t.op(onnx_name, [x, y])


@op("AddExt", "AddScalar")
def add_ext(t: Tape, x: Val, y: Val, alpha: Val = 1) -> Val:
    """x + alpha * y."""
    return scaled(t, "Add", x, y, alpha)


@op("SubExt", "SubScalar")
def sub_ext(t: Tape, x: Val, y: Val, alpha: Val = 1) -> Val:
    """x - alpha * y."""
    return scaled(t, "Sub", x, y, alpha)


@op("AddN", "AccumulateNV2")
def add_n(t: Tape, values: Val) -> Val:
    """Sum of a tuple of tensors."""
    dtype = t.result_dtype(*values)
    values = same_type(t, dtype, *values)
    if is_float(dtype):
        return t.op("Sum", values)
    total, *rest = values  # ONNX sums floats only
    for value in rest:
        total = t.op("Add", [total, value])
    return total


@op("Addcmul", "AddcmulExt", "Addcdiv", "AddcdivExt")
def add_product(t: Tape, x: Val, a: Val, b: Val, value: Val = 1) -> Val:
    """x + value * (a * b), or value * (a / b)."""
    dtype = t.result_dtype(x, a, b)
    x, a, b, factor = same_type(t, dtype, x, a, b, value)
    term = t.op("Mul" if "mul" in t.primitive else "Div", [a, b])
    return t.op("Add", [x, t.op("Mul", [term, factor])])


@op("Lerp", "LerpScalar")
def lerp(t: Tape, start: Val, end: Val, weight: Val) -> Val:
    """start + weight * (end - start)."""
    dtype = t.dtype(start)
    step = t.op("Mul", [t.op("Sub", [end, start]), t.cast(weight, dtype)])
    return t.op("Add", [start, step])


@op("SquaredDifference")
def squared_difference(t: Tape, x: Val, y: Val) -> Val:
    """(x - y) squared."""
    return square(t, t.op("Sub", same_type(t, t.result_dtype(x, y), x, y)))


@op("SquareSumAll")
def square_sum_all(t: Tape, x: Val, y: Val) -> Val:
    """-> (sum of all squares of x, of y)."""
    return tuple(t.op("ReduceSumSquare", [v], keepdims=0) for v in (x, y))


@op("Hypot")
def hypot(t: Tape, x: Val, y: Val) -> Val:
    """The root of x squared plus y squared, without squares that over- or underflow."""
    x, y = (t.op("Abs", [v]) for v in same_type(t, t.result_dtype(x, y), x, y))
    large, small = t.op("Max", [x, y]), t.op("Min", [x, y])
    ratio = _where_zero(t, large, t.op("Div", [small, large]))
    one = np.asarray(1, t.dtype(x))
    return t.op("Mul", [large, t.op("Sqrt", [t.op("Add", [square(t, ratio), one])])])


@op("LogAddExp", "LogAddExp2")
def log_add_exp(t: Tape, x: Val, y: Val) -> Val:
    """log(exp(x) + exp(y)) as max + softplus(-|x - y|), which cannot overflow; or to base 2."""
    x, y = floating(t, x, y)
    base = np.asarray(math.log(2) if t.primitive.endswith("2") else 1, t.dtype(x))
    distance = t.op("Neg", [t.op("Abs", [t.op("Sub", [x, y])])])
    if base != 1:
        rest = t.op("Div", [t.op("Softplus", [t.op("Mul", [distance, base])]), base])
    else:
        rest = t.op("Softplus", [distance])
    # equal infinities have no distance
    sure = t.op("Where", [t.op("Equal", [x, y]), np.asarray(math.log(2), t.dtype(x)) / base, rest])
    return t.op("Add", [t.op("Max", [x, y]), sure])


@op("Fmax", "Fmin")
def ignoring_nan(t: Tape, x: Val, y: Val) -> Val:
    """The larger or smaller one, a NaN counting only next to another."""
    x, y = same_type(t, t.result_dtype(x, y), x, y)
    found = t.op(t.primitive.removeprefix("F").capitalize(), [x, y])
    if not is_float(t.dtype(x)):
        return found
    found = t.op("Where", [t.op("IsNaN", [x]), y, found])
    return t.op("Where", [t.op("IsNaN", [y]), x, found])


# --- quotients and remainders ---------------------------------------------------------------------


@op("Div", "RealDiv", "Divs")
def true_div(t: Tape, x: Val, y: Val) -> Val:
    """x / y; integers divide to float32."""
    return t.op("Div", floating(t, x, y))


@op("FloorDiv", "FloorDivScalar")
def floor_div(t: Tape, x: Val, y: Val) -> Val:
    """Division rounded down; ONNX divides integers towards zero."""
    dtype = t.result_dtype(x, y)
    x, y = same_type(t, dtype, x, y)
    quotient = t.op("Div", [x, y])
    if is_float(dtype):
        return t.op("Floor", [quotient])
    if dtype.kind == "u":
        return quotient
    rest = t.op("Sub", [x, t.op("Mul", [quotient, y])])
    zero = np.asarray(0, dtype)
    signs_differ = t.op("Xor", [t.op("Less", [rest, zero]), t.op("Less", [y, zero])])
    inexact = t.op("Not", [t.op("Equal", [rest, zero])])
    step = t.op("Cast", [t.op("And", [signs_differ, inexact])], to=t.onnx_type(dtype))
    return t.op("Sub", [quotient, step])


@op("TruncateDiv")
def truncate_div(t: Tape, x: Val, y: Val) -> Val:
    """Division rounded towards zero, as ONNX divides integers."""
    return trunc(t, t.op("Div", same_type(t, t.result_dtype(x, y), x, y)))


@op("DivMod", "DivMods")
def div_mod(t: Tape, x: Val, y: Val, rounding_mode: Val = None) -> Val:
    """x / y, rounded towards zero (1), down (2) or not at all."""
    mode = _ROUNDING.get(rounding_mode, rounding_mode)
    if mode not in (None, "trunc", "floor"):
        raise UnsupportedOpError(f"rounding_mode {rounding_mode!r} is not supported")
    return {None: true_div, "trunc": truncate_div, "floor": floor_div}[mode](t, x, y)


@op("FloorMod", "RemainderTensorTensor", "RemainderTensorScalar", "RemainderScalarTensor")
def floor_mod(t: Tape, x: Val, y: Val) -> Val:
    """The rest has the divisor's sign."""
    dtype = t.result_dtype(x, y)
    x, y = same_type(t, dtype, x, y)
    if not is_float(dtype):
        return t.op("Mod", [x, y])
    whole = t.op("Floor", [t.op("Div", [x, y])])
    return t.op("Sub", [x, t.op("Mul", [whole, y])])


@op("Mod", "TruncateMod", "FmodTensor", "FmodScalar")
def truncate_mod(t: Tape, x: Val, y: Val) -> Val:
    """The rest has the dividend's sign."""
    return t.op("Mod", same_type(t, t.result_dtype(x, y), x, y), fmod=1)


def _where_zero(t: Tape, x: Val, other: Val, found: Val = 0) -> Val:
    """`found` where x is zero, else the other."""
    zero = np.asarray(0, t.dtype(x))
    return t.op("Where", [t.op("Equal", [x, zero]), np.asarray(found, t.dtype(x)), other])


@op("DivNoNan", "MulNoNan")
def no_nan(t: Tape, x: Val, y: Val) -> Val:
    """x / y or x * y, but zero wherever y is zero."""
    x, y = same_type(t, t.result_dtype(x, y), x, y)
    if t.primitive == "MulNoNan":
        return _where_zero(t, y, t.op("Mul", [x, y]))
    divisor = _where_zero(t, y, y, found=1)  # integers must not be divided by zero at all
    return _where_zero(t, y, t.op("Div", [x, divisor]))


@op("Xdivy", "Xlogy", "XLogYScalarOther", "XLogYScalarSelf")
def zero_keeps(t: Tape, x: Val, y: Val) -> Val:
    """x / y or x * log(y), but zero wherever x is zero."""
    x, y = floating(t, x, y)
    if t.primitive == "Xdivy":
        return _where_zero(t, x, t.op("Div", [x, y]))
    return _where_zero(t, x, t.op("Mul", [x, t.op("Log", [y])]))


@op("Atan2", "Atan2Ext")
def atan2(t: Tape, y: Val, x: Val) -> Val:
    """The angle of the point (x, y), in all four quadrants."""
    y, x = floating(t, y, x)
    dtype = t.dtype(x)
    zero, pi = np.asarray(0, dtype), np.asarray(np.pi, dtype)
    # the smaller one divided by the larger one: no infinity, and exact at the axes
    steep = t.op("Less", [t.op("Abs", [x]), t.op("Abs", [y])])
    ratio = t.op("Div", [t.op("Where", [steep, x, y]), t.op("Where", [steep, y, x])])
    both_zero = t.op("And", [t.op("Equal", [x, zero]), t.op("Equal", [y, zero])])
    angle = t.op("Atan", [t.op("Where", [both_zero, zero, ratio])])
    signed = t.op("Where", [t.op("Less", [y, zero]), -pi, pi])
    level = t.op("Add", [angle, t.op("Where", [t.op("Less", [x, zero]), signed, zero])])
    half = np.asarray(0.5, dtype)
    return t.op("Where", [steep, t.op("Sub", [t.op("Mul", [signed, half]), angle]), level])
