"""Comparison, logic, bits, and choosing by a condition."""

from __future__ import annotations

import numpy as np

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops.arguments import number, same_type
from mindspore_lite.ops.elementwise import is_float
from mindspore_lite.ops.table import OPS, Meaning, Val, op
from mindspore_lite.ops.tape import Tape

BOOL = np.dtype(np.bool_)


def compare(onnx_name: str, negate: bool = False) -> Meaning:
    """Two operands brought to their common type."""

    def meaning(t: Tape, x: Val, y: Val) -> Val:
        dtype = t.promoted(x, y)
        if dtype == BOOL and onnx_name != "Equal":  # ONNX does not order booleans
            dtype = np.dtype(np.int32)
        found = t.op(onnx_name, same_type(t, dtype, x, y))
        return t.op("Not", [found]) if negate else found

    meaning.__doc__ = f"{'not ' if negate else ''}ONNX {onnx_name}."
    return meaning


def logic(onnx_name: str) -> Meaning:
    """Two operands as booleans."""

    def meaning(t: Tape, x: Val, y: Val) -> Val:
        return t.op(onnx_name, same_type(t, BOOL, x, y))

    meaning.__doc__ = f"ONNX {onnx_name}."
    return meaning


for stem, onnx_name in {
    "Greater": "Greater", "GreaterEqual": "GreaterOrEqual", "Less": "Less",
    "LessEqual": "LessOrEqual",
}.items():  # fmt: skip
    op(stem, f"{stem}Scalar")(compare(onnx_name))
op("Equal", "EqScalar")(compare("Equal"))
op("NotEqual", "NeScalar")(compare("Equal", negate=True))

for primitive, onnx_name in {"LogicalAnd": "And", "LogicalOr": "Or", "LogicalXor": "Xor"}.items():
    op(primitive)(logic(onnx_name))


@op("EqualExt")
def equal_everywhere(t: Tape, x: Val, y: Val) -> Val:
    """Whether two tensors have one shape and are equal in all elements, as a tensor of one."""
    if t.rank(x) != t.rank(y) or any(
        None not in pair and pair[0] != pair[1] for pair in zip(t.shape(x), t.shape(y), strict=True)
    ):
        return t.constant(np.asarray([False]))
    same = t.cast(OPS["Equal"].meaning(t, x, y), np.dtype(np.int32))
    return t.cast(t.op("Reshape", [t.op("ReduceMin", [same], keepdims=0), np.asarray([1])]), BOOL)


@op("ApproximateEqual")
def approximate_equal(t: Tape, x: Val, y: Val, *, tolerance: Val = 1e-5) -> Val:
    """|x - y| below the tolerance."""
    x, y = same_type(t, t.promoted(x, y), x, y)
    distance = t.op("Abs", [t.op("Sub", [x, y])])
    return t.op("Less", [distance, np.asarray(number(tolerance, "tolerance"), t.dtype(x))])


@op("IsClose")
def is_close(
    t: Tape, x: Val, y: Val, *, rtol: Val = 1e-5, atol: Val = 1e-8, equal_nan: Val = False
) -> Val:
    """|x - y| <= atol + rtol * |y|; infinities are close to themselves alone."""
    dtype = t.promoted(x, y)
    x, y = same_type(t, dtype if is_float(dtype) else np.dtype(np.float32), x, y)
    relative, absolute = (np.asarray(number(v, "tolerance"), t.dtype(x)) for v in (rtol, atol))
    limit = t.op("Add", [t.op("Mul", [t.op("Abs", [y]), relative]), absolute])
    near = t.op("LessOrEqual", [t.op("Abs", [t.op("Sub", [x, y])]), limit])
    near = t.op("And", [near, t.op("Not", [t.op("IsInf", [y])])])
    near = t.op("Or", [near, t.op("Equal", [x, y])])
    if equal_nan:
        near = t.op("Or", [near, t.op("And", [t.op("IsNaN", [x]), t.op("IsNaN", [y])])])
    return near


# --- choosing -------------------------------------------------------------------------------------


@op("Select", "SelectV2")
def select(t: Tape, condition: Val, x: Val, y: Val) -> Val:
    """x where the condition holds, else y."""
    x, y = same_type(t, t.result_dtype(x, y), x, y)
    return t.op("Where", [t.cast(condition, BOOL), x, y])


@op("MaskedFill", "MaskedFillScalar")
def masked_fill(t: Tape, x: Val, mask: Val, value: Val) -> Val:
    """value where the mask holds, else x."""
    return t.op("Where", [t.cast(mask, BOOL), t.cast(value, t.dtype(x)), x])


@op("Heaviside")
def heaviside(t: Tape, x: Val, values: Val) -> Val:
    """0 below zero, 1 above, and the second operand at zero."""
    x, values = same_type(t, t.result_dtype(x, values), x, values)
    zero = np.asarray(0, t.dtype(x))
    above = t.cast(t.op("Greater", [x, zero]), t.dtype(x))
    return t.op("Where", [t.op("Equal", [x, zero]), values, above])


# --- bits -----------------------------------------------------------------------------------------


@op(
    "BitwiseAnd", "BitwiseAndTensor", "BitwiseAndScalar", "BitwiseOr", "BitwiseOrTensor",
    "BitwiseOrScalar", "BitwiseXor", "BitwiseXorTensor", "BitwiseXorScalar",
)  # fmt: skip
def bitwise(t: Tape, x: Val, y: Val) -> Val:
    """Bit by bit; on booleans the logical twin."""
    dtype = t.result_dtype(x, y)
    if is_float(dtype):
        raise UnsupportedOpError(f"{t.primitive} of {dtype} is not supported")
    name = t.primitive.removesuffix("Tensor").removesuffix("Scalar")
    name = name.removeprefix("Bitwise") if dtype == BOOL else name
    return t.op(name, same_type(t, dtype, x, y))


@op("BitwiseNot", "Invert")
def bitwise_not(t: Tape, x: Val) -> Val:
    """All bits the other way; on booleans the logical twin."""
    return t.op("Not" if t.dtype(x) == BOOL else "BitwiseNot", [x])


@op("LeftShift", "RightShift")
def shift(t: Tape, x: Val, y: Val) -> Val:
    """x * 2**y, or that division rounded down, by way of ONNX's shifts of unsigned numbers."""
    dtype, wide, unsigned = t.result_dtype(x, y), np.dtype(np.int64), np.dtype(np.uint64)
    if dtype.kind == "u":
        kept = np.dtype(np.uint32) if dtype == np.uint16 else dtype  # ONNX Runtime lacks uint16
        direction = t.primitive.removesuffix("Shift").upper()
        shifted = t.op("BitShift", same_type(t, kept, x, y), direction=direction)
        return t.cast(shifted, dtype)
    x, y = t.cast(x, wide), t.cast(t.cast(y, wide), unsigned)
    if t.primitive == "LeftShift":
        found = t.op("BitShift", [t.cast(x, unsigned), y], direction="LEFT")
        return t.cast(t.cast(found, wide), dtype)
    # a negative number's bits are turned over before and after, which shifts ones in
    sign = t.cast(t.op("Less", [x, np.asarray(0, wide)]), wide)
    sign = t.op("Neg", [sign])
    bits = t.cast(t.op("BitwiseXor", [x, sign]), unsigned)
    found = t.cast(t.op("BitShift", [bits, y], direction="RIGHT"), wide)
    return t.cast(t.op("BitwiseXor", [found, sign]), dtype)
