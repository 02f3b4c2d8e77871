"""Python numbers: computed now where they are constants, as 0-d tensors otherwise."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops.arguments import elements
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape, constant_of, dtype_argument

BOOL, INT, FLOAT = np.dtype(np.bool_), np.dtype(np.int64), np.dtype(np.float32)
MAX_POWER = 64  # of a constant power: 10 ** 10 ** 10 would take for ever

Emit = Callable[[Tape, list[ir.Value]], ir.Value]


def known_number(value: Val) -> Any:
    """A constant as a Python number, None where it is known only at run time."""
    array = constant_of(value)
    return array.item() if array is not None and array.size == 1 else None


def number_type(t: Tape, *values: Val) -> np.dtype:
    """Python's rule: float if one of them is, else int."""
    return FLOAT if any(t.dtype(v).kind == "f" for v in values) else INT


def result(value: Val, dtype: np.dtype) -> Val:
    """A number known only at run time; its type helps what follows."""
    value.type, value.shape = ir.TensorType(ir.DataType.from_numpy(dtype)), ir.Shape([])
    return value


def arithmetic(compute: Callable[..., Any], emit: Emit, kind: np.dtype | None = None) -> Any:
    """An operator on numbers; `kind` is the type of the result where it is not that of operands."""

    def meaning(t: Tape, x: Val, y: Val) -> Val:
        """Python's operator on two numbers."""
        a, b = known_number(x), known_number(y)
        if a is not None and b is not None:
            try:
                return compute(a, b)
            except (ArithmeticError, ValueError, TypeError) as exc:
                raise UnsupportedOpError(f"{t.primitive} of {a} and {b}: {exc}") from exc
        dtype = number_type(t, x, y)
        return result(emit(t, [t.cast(x, dtype), t.cast(y, dtype)]), kind or dtype)

    return meaning


def plain(op_type: str) -> Emit:
    """The ONNX operator of that name."""
    return lambda t, args: t.op(op_type, args)


def divided(t: Tape, args: list[ir.Value]) -> ir.Value:
    """True division: a float even of whole numbers."""
    made: ir.Value = t.op("Div", [t.cast(a, FLOAT) for a in args])
    return made


def floor_divided(t: Tape, args: list[ir.Value]) -> ir.Value:
    """Rounded down; ONNX would round whole numbers towards zero."""
    if t.dtype(args[0]).kind == "f":
        made: ir.Value = t.op("Floor", [t.op("Div", args)])
    else:
        made = t.op("Div", [t.op("Sub", [args[0], t.op("Mod", args)]), args[1]])
    return made


def remainder(t: Tape, args: list[ir.Value]) -> ir.Value:
    """With the sign of the divisor."""
    if t.dtype(args[0]).kind != "f":
        made: ir.Value = t.op("Mod", args)
    else:
        made = t.op("Sub", [args[0], t.op("Mul", [floor_divided(t, args), args[1]])])
    return made


def not_equal(t: Tape, args: list[ir.Value]) -> ir.Value:
    """Whether they differ."""
    made: ir.Value = t.op("Not", [t.op("Equal", args)])
    return made


def bounded_power(x: Any, y: Any) -> Any:
    """x ** y, refused where it would be absurdly large."""
    if isinstance(x, int) and isinstance(y, int) and abs(y) > MAX_POWER and abs(x) > 1:
        raise ValueError("too large")
    found = x**y
    return found if isinstance(found, int | float) else math.nan


for name, compute, emit in (
    ("ScalarAdd", operator.add, plain("Add")),
    ("ScalarSub", operator.sub, plain("Sub")),
    ("ScalarMul", operator.mul, plain("Mul")),
    ("ScalarFloorDiv", operator.floordiv, floor_divided),
    ("ScalarMod", operator.mod, remainder),
    ("ScalarPow", bounded_power, plain("Pow")),
    ("ScalarMax", max, plain("Max")),
    ("ScalarMin", min, plain("Min")),
):
    op(name)(arithmetic(compute, emit))

op("ScalarDiv")(arithmetic(operator.truediv, divided, FLOAT))

for name, compute, emit in (
    ("ScalarEq", operator.eq, plain("Equal")),
    ("ScalarNe", operator.ne, not_equal),
    ("ScalarGt", operator.gt, plain("Greater")),
    ("ScalarLt", operator.lt, plain("Less")),
    ("ScalarGe", operator.ge, plain("GreaterOrEqual")),
    ("ScalarLe", operator.le, plain("LessOrEqual")),
):
    op(name)(arithmetic(compute, emit, BOOL))


@op("bool_and", "bool_or", "bool_eq", "bit_and", "bit_or", "bit_xor")
def both(t: Tape, x: Val, y: Val) -> Val:
    """Logic of truth values, or bit by bit of whole numbers."""
    word = t.primitive.split("_")[1]
    a, b = known_number(x), known_number(y)
    if a is not None and b is not None:
        signs = {"and": operator.and_, "or": operator.or_, "xor": operator.xor, "eq": operator.eq}
        return signs[word](a, b)
    kind = BOOL if t.primitive.startswith("bool") else INT
    prefix = "" if kind == BOOL else "Bitwise"
    emitted = "Equal" if word == "eq" else prefix + word.capitalize()
    return result(t.op(emitted, [t.cast(x, kind), t.cast(y, kind)]), kind)


@op("BoolNot", "bool_not")
def bool_not(t: Tape, x: Val) -> Val:
    """The other truth value."""
    known = known_number(x)
    return not known if known is not None else result(t.op("Not", [t.cast(x, BOOL)]), BOOL)


@op("ScalarBool")
def scalar_bool(t: Tape, x: Val) -> Val:
    """Whether it is not zero."""
    known = known_number(x)
    return bool(known) if known is not None else t.cast(x, BOOL)


@op("ScalarUadd", "ScalarUsub", "ScalarLog")
def unary(t: Tape, x: Val) -> Val:
    """+x, -x, ln x."""
    known = known_number(x)
    if t.primitive == "ScalarUadd":
        return x
    if t.primitive == "ScalarUsub":
        return -known if known is not None else result(t.op("Neg", [x]), t.dtype(x))
    if known is not None and known > 0:
        return math.log(known)
    return result(t.op("Log", [t.cast(x, FLOAT)]), FLOAT)


@op("ScalarCast")
def scalar_cast(t: Tape, x: Val, dtype: Val) -> Val:
    """A number of another type."""
    kind, known = dtype_argument(dtype).numpy, known_number(x)
    if known is None:
        return t.cast(x, kind)
    return {"b": bool, "f": float}.get(kind.kind, int)(known)


@op("TensorToScalar")
def tensor_to_scalar(t: Tape, x: Val) -> Val:
    """The one element of a tensor."""
    known = known_number(x)
    if known is not None:
        return known
    return x if t.rank(x) == 0 else result(t.op("Reshape", [x, np.asarray([], INT)]), t.dtype(x))


@op("TupleToTensor", "ListToTensor")
def tuple_to_tensor(t: Tape, items: Val, dtype: Val = None) -> Val:
    """Numbers as a 1-D tensor."""
    kind = number_type(t, *items) if dtype is None else dtype_argument(dtype).numpy
    known = [known_number(v) for v in items]
    if None not in known:
        return t.constant(np.asarray(known, kind))
    one = np.asarray([1], np.int64)
    return t.op("Concat", [t.op("Reshape", [t.cast(v, kind), one]) for v in items], axis=0)


@op("TensorToTuple", "TensorToList")
def tensor_to_tuple(t: Tape, x: Val) -> Val:
    """The elements of a 1-D tensor as numbers."""
    known, kind = constant_of(x), t.dtype(x)
    if known is not None and known.size <= 64:
        return tuple(known.reshape(-1).tolist())
    return tuple(result(v, kind) if isinstance(v, ir.Value) else v for v in elements(t, x))
