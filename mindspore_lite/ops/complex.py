"""Complex numbers. ONNX Runtime has no kernels for them, so a value is a pair of real tensors.

There are two tables next to the main one: ops that treat both parts alike (PARTWISE: whatever moves
elements about, or is linear with real factors), and ops that mean something of their own (COMPLEX).
Any other op refuses a complex operand. At the border of the model a complex tensor is a real one
with a last axis of 2, which is how the numbers lie in memory anyway.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from mindspore_lite.core import dtypes
from mindspore_lite.mindir.records import SequenceType, TensorType, Type
from mindspore_lite.ops.arguments import number, same_type
from mindspore_lite.ops.matmul import turned
from mindspore_lite.ops.table import OPS, Meaning, Op, Val, op
from mindspore_lite.ops.tape import PART_OF, Complex, Tape

PARTWISE = frozenset({
    "BroadcastTo", "BroadcastToView", "Chunk", "ChunkView", "Concat", "Diag",
    "Diagonal", "Expand", "ExpandDims", "ExpandDimsView", "FFTShift", "Flatten", "FlattenExt",
    "Gather", "GatherD", "GatherNd", "GatherV2", "IFFTShift", "IndexSelect", "MeanExt",
    "Narrow", "NarrowView", "Neg", "Pack", "ReduceMean", "ReduceSum", "Reshape", "ReverseV2",
    "Roll", "Select", "SelectExt", "SelectExtView", "SelectV2", "Slice", "SliceExt",
    "SliceExtView", "Split", "SplitTensor", "SplitTensorView", "SplitWithSize",
    "SplitWithSizeView", "Squeeze", "Stack", "StackExt", "StridedSlice", "SumExt",
    "TensorScatterUpdate", "Tile", "Trace", "Transpose", "TransposeExtView", "TransposeView",
    "Tril", "TrilExt", "Triu", "Unstack", "UnstackExtView", "View",
})  # fmt: skip
COMPLEX: dict[str, Op] = {}


def complex_op(*primitives: str) -> Callable[[Meaning], Meaning]:
    """Register a function as what the primitives mean when an operand is complex."""

    def add(meaning: Meaning) -> Meaning:
        _, *params = inspect.signature(meaning).parameters.values()
        for name in primitives:
            COMPLEX[name] = Op(name, meaning, tuple(params), ())
        return meaning

    return add


def row_for(primitive: str, values: Sequence[Val]) -> Op:
    """The row of a primitive for these operands."""
    row = OPS[primitive]
    if not _any_complex(values):
        return row
    if primitive in PARTWISE:
        return replace(row, meaning=_on_parts(row.meaning))
    return COMPLEX.get(primitive, row)  # the usual meaning refuses what it cannot take


def _any_complex(value: Val) -> bool:
    if isinstance(value, tuple | list):
        return any(_any_complex(v) for v in value)
    return isinstance(value, Complex)


def _on_parts(meaning: Meaning) -> Meaning:
    def both(t: Tape, **arguments: Val) -> Val:
        t.result = _real_type(t.result)
        real, imag = (
            meaning(t, **{name: _part(v, which) for name, v in arguments.items()})
            for which in ("real", "imag")
        )
        if isinstance(real, tuple):
            return tuple(Complex(r, i) for r, i in zip(real, imag, strict=True))
        return Complex(real, imag)

    return both


def _part(value: Val, which: str) -> Val:
    if isinstance(value, tuple | list):
        return type(value)(_part(v, which) for v in value)
    return getattr(value, which) if isinstance(value, Complex) else value


def _real_type(declared: Type | None) -> Type | None:
    """What the file would say of one part."""
    if isinstance(declared, SequenceType):
        items = tuple(found for i in declared.items if (found := _real_type(i)) is not None)
        return replace(declared, items=items)
    if isinstance(declared, TensorType) and declared.dtype.numpy in PART_OF:
        return replace(declared, dtype=dtypes.BY_NAME[PART_OF[declared.dtype.numpy].name])
    return declared


# --- the border of the model ----------------------------------------------------------------------


def from_border(
    t: Tape, name: str, shape: ir.Shape | None, dtype: np.dtype
) -> tuple[ir.Value, Complex]:
    """A graph input with a last axis of 2, and the complex tensor that it holds."""
    dims = None if shape is None else ir.Shape([*shape, 2])
    kind = ir.TensorType(ir.DataType.from_numpy(PART_OF[dtype]))
    value = ir.Value(name=name, type=kind, shape=dims)
    return value, unstacked(t, value)


def to_border(t: Tape, x: Complex) -> ir.Value:
    """One real tensor with a last axis of 2."""
    parts = [t.op("Unsqueeze", [part, np.asarray([-1])]) for part in (x.real, x.imag)]
    made: ir.Value = t.op("Concat", parts, axis=-1)
    t.rank(made)  # an output has a type and a shape
    return made


def unstacked(t: Tape, x: Val) -> Complex:
    """A real tensor with a last axis of 2 as a complex one."""
    return Complex(*[t.op("Gather", [x, np.asarray(i)], axis=-1) for i in (0, 1)])


# --- making and taking apart ----------------------------------------------------------------------


@op("Complex")
def make_complex(t: Tape, real: Val, imag: Val) -> Val:
    """real + i * imag."""
    return Complex(*same_type(t, t.promoted(real, imag), real, imag))


def real_part(t: Tape, x: Val) -> Val:
    """The real part; of a real tensor the tensor itself."""
    return x.real if isinstance(x, Complex) else x


def imaginary_part(t: Tape, x: Val) -> Val:
    """The imaginary part; of a real tensor zeros."""
    if isinstance(x, Complex):
        return x.imag
    zero = ir.Tensor(np.zeros(1, t.dtype(x)))
    return t.op("ConstantOfShape", [t.op("Shape", [x])], value=zero)


op("Real")(real_part)
op("Imag")(imaginary_part)
op("RealView", is_view=True)(real_part)
op("ImagView", is_view=True)(imaginary_part)


@op("Conj")
def conjugate(t: Tape, x: Val) -> Val:
    """The imaginary part negated."""
    return Complex(x.real, t.op("Neg", [x.imag])) if isinstance(x, Complex) else x


@op("ComplexAbs")
def magnitude(t: Tape, x: Val) -> Val:
    """The distance from 0."""
    if not isinstance(x, Complex):
        return t.op("Abs", [x])
    return t.op("Sqrt", [_squared(t, x)])


@complex_op("Abs")
def absolute(t: Tape, x: Val) -> Val:
    """The distance from 0, which MindSpore keeps in the complex type."""
    return t.cast(magnitude(t, x), t.result_dtype(x))


@op("Angle")
def angle(t: Tape, x: Val) -> Val:
    """The angle to the positive real axis."""
    if not isinstance(x, Complex):
        dtype = t.result_dtype(x)
        negative = t.op("Less", [x, np.asarray(0, t.dtype(x))])
        pi, zero = np.asarray(np.pi, dtype), np.asarray(0, dtype)
        angles = t.op("Where", [negative, pi, zero])
        return angles if t.dtype(x).kind != "f" else t.op("Where", [t.op("IsNaN", [x]), x, angles])
    return _arc_tangent(t, x.imag, x.real)


def _squared(t: Tape, x: Complex) -> Val:
    return t.op("Add", [t.op("Mul", [part, part]) for part in (x.real, x.imag)])


def _arc_tangent(t: Tape, y: Val, x: Val) -> Val:
    """The angle of (x, y), by half of it: 2 atan(y / (r + x)) has no jump but at -pi."""
    dtype = t.dtype(x)
    zero, pi = np.asarray(0, dtype), np.asarray(np.pi, dtype)
    radius = t.op("Sqrt", [t.op("Add", [t.op("Mul", [x, x]), t.op("Mul", [y, y])])])
    left = t.op("Less", [x, zero])
    # left of 0, r + x loses all digits: there the same half angle is (r - x) / y
    below = t.op("Where", [left, y, t.op("Add", [radius, x])])
    above = t.op("Where", [left, t.op("Sub", [radius, x]), y])
    none = t.op("Equal", [below, zero])
    safe = t.op("Where", [none, np.asarray(1, dtype), below])
    half = t.op("Atan", [t.op("Div", [above, safe])])
    at_edge = t.op("Where", [left, pi, zero])
    return t.op("Where", [none, at_edge, t.op("Add", [half, half])])


# --- arithmetic -----------------------------------------------------------------------------------


def _operands(t: Tape, *operands: Val) -> list[Val]:
    """Complex operands in the result's type, real ones in the type of its parts."""
    dtype = t.result_dtype(*operands)
    if dtype not in PART_OF:
        dtype = t.promoted(*operands)
    return [t.cast(v, dtype if isinstance(v, Complex) else PART_OF[dtype]) for v in operands]


def _both_complex(t: Tape, x: Val, y: Val) -> list[Complex]:
    found = _operands(t, x, y)
    whole = t.dtype(next(v for v in found if isinstance(v, Complex)))
    return [t.cast(v, whole) for v in found]


@complex_op("Add", "TensorAdd")
def add(t: Tape, x: Val, y: Val) -> Val:
    """Part by part."""
    a, b = _both_complex(t, x, y)
    return Complex(t.op("Add", [a.real, b.real]), t.op("Add", [a.imag, b.imag]))


@complex_op("Sub")
def sub(t: Tape, x: Val, y: Val) -> Val:
    """Part by part."""
    a, b = _both_complex(t, x, y)
    return Complex(t.op("Sub", [a.real, b.real]), t.op("Sub", [a.imag, b.imag]))


@complex_op("AddExt", "AddScalar")
def add_scaled(t: Tape, x: Val, y: Val, alpha: Val = 1) -> Val:
    """x + alpha * y."""
    a, b = _both_complex(t, x, y)
    return add(t, a, b if number(alpha, "alpha") == 1 else mul(t, b, alpha))


@complex_op("SubExt", "SubScalar")
def sub_scaled(t: Tape, x: Val, y: Val, alpha: Val = 1) -> Val:
    """x - alpha * y."""
    a, b = _both_complex(t, x, y)
    return sub(t, a, b if number(alpha, "alpha") == 1 else mul(t, b, alpha))


@complex_op("Mul", "Muls")
def mul(t: Tape, x: Val, y: Val) -> Val:
    """(a + bi)(c + di) = (ac - bd) + (ad + bc)i; a real factor scales both parts."""
    return _product(t, "Mul", *_operands(t, x, y))


@complex_op("MatMul", "BatchMatMul")
def mat_mul(t: Tape, x: Val, y: Val, transpose_a: bool = False, transpose_b: bool = False) -> Val:
    """The real products of the parts; transposing does not conjugate."""
    x, y = _operands(t, x, y)
    return _product(t, "MatMul", _turned(t, x, transpose_a), _turned(t, y, transpose_b))


@complex_op("MatMulExt", "BatchMatMulExt", "Mm", "Mv", "Dot")
def mat_mul_ext(t: Tape, x: Val, y: Val) -> Val:
    """NumPy's rules."""
    return _product(t, "MatMul", *_operands(t, x, y))


def _turned(t: Tape, x: Val, turn: bool) -> Val:
    if isinstance(x, Complex):
        return Complex(turned(t, x.real, turn), turned(t, x.imag, turn))
    return turned(t, x, turn)


def _product(t: Tape, onnx_name: str, x: Val, y: Val) -> Val:
    if not isinstance(y, Complex):
        return Complex(t.op(onnx_name, [x.real, y]), t.op(onnx_name, [x.imag, y]))
    if not isinstance(x, Complex):
        return Complex(t.op(onnx_name, [x, y.real]), t.op(onnx_name, [x, y.imag]))
    ac, bd = t.op(onnx_name, [x.real, y.real]), t.op(onnx_name, [x.imag, y.imag])
    ad, bc = t.op(onnx_name, [x.real, y.imag]), t.op(onnx_name, [x.imag, y.real])
    return Complex(t.op("Sub", [ac, bd]), t.op("Add", [ad, bc]))


@complex_op("Div", "RealDiv", "Divs")
def div(t: Tape, x: Val, y: Val) -> Val:
    """x * conj(y) / |y|**2; a real divisor divides both parts."""
    x, y = _operands(t, x, y)
    if not isinstance(y, Complex):
        return Complex(t.op("Div", [x.real, y]), t.op("Div", [x.imag, y]))
    above, below = _product(t, "Mul", x, conjugate(t, y)), _squared(t, y)
    return Complex(t.op("Div", [above.real, below]), t.op("Div", [above.imag, below]))


@complex_op("Reciprocal", "Inv")
def reciprocal(t: Tape, x: Complex) -> Val:
    """1 / x."""
    return div(t, np.asarray(1, PART_OF[t.dtype(x)]), x)


@complex_op("Square")
def square(t: Tape, x: Complex) -> Val:
    """x * x."""
    return _product(t, "Mul", x, x)


@complex_op("Equal")
def equal(t: Tape, x: Val, y: Val) -> Val:
    """Both parts are equal."""
    a, b = _both_complex(t, x, y)
    return t.op("And", [t.op("Equal", [a.real, b.real]), t.op("Equal", [a.imag, b.imag])])


@complex_op("NotEqual")
def not_equal(t: Tape, x: Val, y: Val) -> Val:
    """A part differs."""
    return t.op("Not", [equal(t, x, y)])


# --- functions ------------------------------------------------------------------------------------


def _polar(t: Tape, radius: Val, angle: Val) -> Complex:
    return Complex(*[t.op("Mul", [radius, t.op(fn, [angle])]) for fn in ("Cos", "Sin")])


@op("Polar")
def polar(t: Tape, abs: Val, angle: Val) -> Val:
    """From the distance to 0 and the angle."""
    return _polar(t, abs, angle)


@complex_op("Exp")
def exp(t: Tape, x: Complex) -> Val:
    """exp(a) (cos b + i sin b)."""
    return _polar(t, t.op("Exp", [x.real]), x.imag)


@complex_op("Log")
def log(t: Tape, x: Complex) -> Val:
    """log |x| + i angle."""
    return Complex(t.op("Log", [magnitude(t, x)]), angle(t, x))


@complex_op("Sqrt")
def sqrt(t: Tape, x: Complex) -> Val:
    """Half of the angle, the root of the distance."""
    half = t.op("Mul", [angle(t, x), np.asarray(0.5, t.dtype(x.real))])
    return _polar(t, t.op("Sqrt", [magnitude(t, x)]), half)


@complex_op("Sin", "Cos", "Sinh", "Cosh")
def by_sum(t: Tape, x: Complex) -> Val:
    """f(a + bi) as products of functions of a and of b, as the sum formulas say."""
    (re_a, re_b), (im_a, im_b), minus = _SUMS[t.primitive]
    imag = t.op("Mul", [t.op(im_a, [x.real]), t.op(im_b, [x.imag])])
    return Complex(
        t.op("Mul", [t.op(re_a, [x.real]), t.op(re_b, [x.imag])]),
        t.op("Neg", [imag]) if minus else imag,
    )


_SUMS = {  # functions of a and b in the real part, in the imaginary part, whether that is negative
    "Sin": (("Sin", "Cosh"), ("Cos", "Sinh"), False),
    "Cos": (("Cos", "Cosh"), ("Sin", "Sinh"), True),
    "Sinh": (("Sinh", "Cos"), ("Cosh", "Sin"), False),
    "Cosh": (("Cosh", "Cos"), ("Sinh", "Sin"), False),
}
