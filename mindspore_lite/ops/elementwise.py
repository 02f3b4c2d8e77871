"""Element by element: arithmetic, comparison, logic, rounding."""

from __future__ import annotations

import numpy as np

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops.arguments import number, same_type
from mindspore_lite.ops.table import Meaning, Val, op
from mindspore_lite.ops.tape import Tape, dtype_argument, is_bfloat16


def same(onnx_name: str) -> Meaning:
    """A primitive of one tensor that ONNX has under another name."""

    def meaning(t: Tape, x: Val) -> Val:
        return t.op(onnx_name, [x])

    meaning.__doc__ = f"ONNX {onnx_name}."
    return meaning


def binary(onnx_name: str) -> Meaning:
    """Two operands in the result's type: files mix int constants with float tensors."""

    def meaning(t: Tape, x: Val, y: Val) -> Val:
        return t.op(onnx_name, same_type(t, t.result_dtype(x, y), x, y))

    meaning.__doc__ = f"ONNX {onnx_name}, operands cast to the result's type."
    return meaning


def true_div(t: Tape, x: Val, y: Val) -> Val:
    """x / y; integers divide to float32."""
    dtype = t.result_dtype(x, y)
    if dtype.kind not in "fc":
        dtype = np.dtype(np.float32)
    return t.op("Div", same_type(t, dtype, x, y))


def compare(onnx_name: str, negate: bool = False) -> Meaning:
    """Two operands brought to their common type."""

    def meaning(t: Tape, x: Val, y: Val) -> Val:
        found = t.op(onnx_name, same_type(t, t.promoted(x, y), x, y))
        return t.op("Not", [found]) if negate else found

    meaning.__doc__ = f"{'not ' if negate else ''}ONNX {onnx_name}."
    return meaning


def logic(onnx_name: str) -> Meaning:
    """Two operands as booleans."""

    def meaning(t: Tape, x: Val, y: Val) -> Val:
        return t.op(onnx_name, same_type(t, np.dtype(np.bool_), x, y))

    meaning.__doc__ = f"ONNX {onnx_name}."
    return meaning


for primitive, onnx_name in {
    "Neg": "Neg", "Abs": "Abs", "Sign": "Sign", "Floor": "Floor", "Ceil": "Ceil", "Sqrt": "Sqrt",
    "Exp": "Exp", "Log": "Log", "Sin": "Sin", "Cos": "Cos", "Tan": "Tan", "Asin": "Asin",
    "ACos": "Acos", "Atan": "Atan", "Sinh": "Sinh", "Cosh": "Cosh", "Asinh": "Asinh",
    "Acosh": "Acosh", "Atanh": "Atanh", "Reciprocal": "Reciprocal", "Inv": "Reciprocal",
    "IsNan": "IsNaN", "IsInf": "IsInf", "LogicalNot": "Not", "Rint": "Round",
}.items():  # fmt: skip
    op(primitive)(same(onnx_name))

for primitive, onnx_name in {
    "Add": "Add", "Sub": "Sub", "Mul": "Mul", "Muls": "Mul", "Maximum": "Max", "Minimum": "Min",
    "TensorAdd": "Add",
}.items():  # fmt: skip
    op(primitive)(binary(onnx_name))
op("Div", "RealDiv", "Divs")(true_div)

for primitive, onnx_name in {
    "Equal": "Equal", "Greater": "Greater", "GreaterEqual": "GreaterOrEqual", "Less": "Less",
    "LessEqual": "LessOrEqual",
}.items():  # fmt: skip
    op(primitive)(compare(onnx_name))
for primitive, onnx_name in {
    "EqScalar": "Equal", "GreaterScalar": "Greater", "GreaterEqualScalar": "GreaterOrEqual",
    "LessScalar": "Less", "LessEqualScalar": "LessOrEqual",
}.items():  # fmt: skip
    op(primitive)(compare(onnx_name))
op("NotEqual", "NeScalar")(compare("Equal", negate=True))

for primitive, onnx_name in {"LogicalAnd": "And", "LogicalOr": "Or", "LogicalXor": "Xor"}.items():
    op(primitive)(logic(onnx_name))

for primitive, onnx_name in {
    "InplaceMul": "Mul",
    "InplaceMuls": "Mul",
    "InplaceDiv": "Div",
    "InplaceDivs": "Div",
}.items():
    op(primitive, writes=True)(binary(onnx_name))


@op("Pow", "PowTensorScalar", "PowScalarTensor")
def power(t: Tape, x: Val, y: Val) -> Val:
    """x to the power of y."""
    return t.op("Pow", same_type(t, t.result_dtype(x, y), x, y))


def scaled(t: Tape, onnx_name: str, x: Val, y: Val, alpha: Val) -> Val:
    """x +- alpha * y."""
    dtype = t.result_dtype(x, y)
    x, y = same_type(t, dtype, x, y)
    factor = number(alpha, "alpha")
    if factor != 1:
        y = t.op("Mul", [y, np.asarray(factor, dtype)])
    return t.op(onnx_name, [x, y])


def add_ext(t: Tape, x: Val, y: Val, alpha: Val = 1) -> Val:
    """x + alpha * y."""
    return scaled(t, "Add", x, y, alpha)


def sub_ext(t: Tape, x: Val, y: Val, alpha: Val = 1) -> Val:
    """x - alpha * y."""
    return scaled(t, "Sub", x, y, alpha)


op("AddExt", "AddScalar")(add_ext)
op("SubExt", "SubScalar")(sub_ext)
op("InplaceAddExt", "InplaceAddsExt", writes=True)(add_ext)
op("InplaceSubExt", "InplaceSubScalar", writes=True)(sub_ext)


@op("AddN", "AccumulateNV2")
def add_n(t: Tape, values: Val) -> Val:
    """Sum of a tuple of tensors."""
    return t.op("Sum", list(values))


@op("Square")
def square(t: Tape, x: Val) -> Val:
    """x * x."""
    return t.op("Mul", [x, x])


@op("SquaredDifference")
def squared_difference(t: Tape, x: Val, y: Val) -> Val:
    """(x - y) squared."""
    return square(t, t.op("Sub", same_type(t, t.result_dtype(x, y), x, y)))


@op("Rsqrt")
def rsqrt(t: Tape, x: Val) -> Val:
    """1 / sqrt(x)."""
    return t.op("Reciprocal", [t.op("Sqrt", [x])])


@op("Expm1")
def expm1(t: Tape, x: Val) -> Val:
    """exp(x) - 1."""
    return t.op("Sub", [t.op("Exp", [x]), np.asarray(1, t.dtype(x))])


@op("Log1p")
def log1p(t: Tape, x: Val) -> Val:
    """log(1 + x)."""
    return t.op("Log", [t.op("Add", [x, np.asarray(1, t.dtype(x))])])


@op("Trunc")
def trunc(t: Tape, x: Val) -> Val:
    """Towards zero."""
    if t.dtype(x).kind != "f":
        return x
    return t.op("Mul", [t.op("Sign", [x]), t.op("Floor", [t.op("Abs", [x])])])


@op("Round")
def round_(t: Tape, x: Val, decimals: Val = 0) -> Val:
    """Half to even, at a decimal place."""
    places = int(number(decimals, "decimals"))
    if places == 0:
        return x if t.dtype(x).kind != "f" else t.op("Round", [x])
    factor = np.asarray(10.0**places, t.dtype(x))
    return t.op("Div", [t.op("Round", [t.op("Mul", [x, factor])]), factor])


@op("FloorDiv", "FloorDivScalar")
def floor_div(t: Tape, x: Val, y: Val) -> Val:
    """Division rounded down; ONNX divides integers towards zero."""
    dtype = t.result_dtype(x, y)
    x, y = same_type(t, dtype, x, y)
    quotient = t.op("Div", [x, y])
    if dtype.kind == "f":
        return t.op("Floor", [quotient])
    rest = t.op("Sub", [x, t.op("Mul", [quotient, y])])
    zero = np.asarray(0, dtype)
    signs_differ = t.op("Xor", [t.op("Less", [rest, zero]), t.op("Less", [y, zero])])
    inexact = t.op("Not", [t.op("Equal", [rest, zero])])
    step = t.op("Cast", [t.op("And", [signs_differ, inexact])], to=t.onnx_type(dtype))
    return t.op("Sub", [quotient, step])


@op("FloorMod", "RemainderTensorTensor", "RemainderTensorScalar", "RemainderScalarTensor")
def floor_mod(t: Tape, x: Val, y: Val) -> Val:
    """The rest has the divisor's sign."""
    dtype = t.result_dtype(x, y)
    x, y = same_type(t, dtype, x, y)
    if dtype.kind != "f":
        return t.op("Mod", [x, y])
    whole = t.op("Floor", [t.op("Div", [x, y])])
    return t.op("Sub", [x, t.op("Mul", [whole, y])])


@op("Mod", "TruncateMod", "FmodTensor", "FmodScalar")
def truncate_mod(t: Tape, x: Val, y: Val) -> Val:
    """The rest has the dividend's sign."""
    return t.op("Mod", same_type(t, t.result_dtype(x, y), x, y), fmod=1)


@op("Select", "SelectV2")
def select(t: Tape, condition: Val, x: Val, y: Val) -> Val:
    """x where the condition holds, else y."""
    x, y = same_type(t, t.result_dtype(x, y), x, y)
    return t.op("Where", [t.cast(condition, np.dtype(np.bool_)), x, y])


@op("MaskedFill", "MaskedFillScalar")
def masked_fill(t: Tape, x: Val, mask: Val, value: Val) -> Val:
    """value where the mask holds, else x."""
    return t.op("Where", [mask, t.cast(value, t.dtype(x)), x])


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


@op("BitwiseAnd", "BitwiseOr", "BitwiseXor")
def bitwise(t: Tape, x: Val, y: Val) -> Val:
    """Bit by bit; on booleans the logical twin."""
    dtype = t.result_dtype(x, y)
    if dtype.kind == "f":
        raise UnsupportedOpError(f"{t.primitive} of {dtype} is not supported")
    name = t.primitive.removeprefix("Bitwise") if dtype.kind == "b" else t.primitive
    return t.op(name, same_type(t, dtype, x, y))


@op("Lerp", "LerpScalar")
def lerp(t: Tape, start: Val, end: Val, weight: Val) -> Val:
    """start + weight * (end - start)."""
    dtype = t.dtype(start)
    step = t.op("Mul", [t.op("Sub", [end, start]), t.cast(weight, dtype)])
    return t.op("Add", [start, step])
