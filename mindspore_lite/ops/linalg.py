"""Small linear algebra: determinants, inverses, factors, and products of vectors.

ONNX has a determinant but neither an inverse nor a solver. Both are an ONNX Loop over the columns,
so the graph stays small however large the matrices are, and their size may be unknown. The work is
done in float64: float32 has no digits to spare for what elimination loses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops.arguments import axis_of, number, same_type
from mindspore_lite.ops.diag import trilu
from mindspore_lite.ops.matmul import turned
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape

_F64 = np.dtype(np.float64)
_NO_DIM = -65530  # Cross: the first axis of size 3
Body = Callable[[ir.Value, Sequence[ir.Value]], tuple[Sequence[Val], Sequence[Val]]]


def looped(t: Tape, trips: Val, states: Sequence[Val], ranks: Sequence[int], body: Body) -> Val:
    """An ONNX Loop in float64; body(step, states) -> (states, rows), the rows being stacked.

    `ranks` are those of the rows. Constants of the body belong to the main graph.
    """
    float64, flag = ir.TensorType(ir.DataType.DOUBLE), ir.TensorType(ir.DataType.BOOL)
    step = ir.Value(
        name=t.unique("step"), type=ir.TensorType(ir.DataType.INT64), shape=ir.Shape([])
    )
    going = ir.Value(name=t.unique("going"), type=flag, shape=ir.Shape([]))
    carried = [
        ir.Value(name=t.unique("state"), type=float64, shape=ir.Shape([None] * t.rank(s)))
        for s in states
    ]
    outside, t.nodes = t.nodes, []
    try:
        new, rows = body(step, carried)
        results = [t.op("Identity", [going]), *new, *rows]
    finally:
        inside, t.nodes = t.nodes, outside
    for value in results:
        value.type = float64
    results[0].type = flag
    graph = ir.Graph([step, going, *carried], results, nodes=inside, name=t.unique("body"))
    made = t.op("Loop", [trips, None, *states], outputs=len(new) + len(rows), body=graph)
    values = made if isinstance(made, tuple) else (made,)
    for value, rank in zip(values, [*map(t.rank, states), *(r + 1 for r in ranks)], strict=True):
        value.type, value.shape = float64, ir.Shape([None] * rank)
    return values


def batched(t: Tape, x: Val) -> Val:
    """Matrices as float64 [batch, rows, columns]."""
    wide = t.cast(x, _F64)
    if t.rank(x) == 3:
        return wide
    return t.op("Reshape", [wide, t.op("Concat", [np.asarray([-1]), last_two(t, x)], axis=0)])


def last_two(t: Tape, x: Val) -> Val:
    """The shape of a matrix."""
    return t.op("Shape", [x], start=-2)


def unbatched(t: Tape, y: Val, like: Val, tail: Val) -> Val:
    """Results in the batch axes and the type of the argument."""
    head = t.op("Shape", [like], end=t.rank(like) - 2)
    shape = t.op("Concat", [head, tail], axis=0) if tail is not None else head
    return t.op("Reshape", [t.cast(y, t.dtype(like)), shape])


def eliminated(t: Tape, system: Val, singular: bool) -> tuple[Val, Val]:
    """Gauss and Jordan with row exchanges on [batch, n, n + m].

    -> (the system with the identity in its first n columns, the pivots [n, batch] with the signs of
    the exchanges). `singular` goes on after a pivot of zero, for the sake of the determinant.
    """
    count = t.op("Gather", [t.op("Shape", [system]), np.asarray(1)])
    rows = t.op("Range", [np.asarray(0), count, np.asarray(1)])

    def body(k: ir.Value, states: Sequence[ir.Value]) -> tuple[Sequence[Val], Sequence[Val]]:
        (matrix,) = states
        column = t.op("Gather", [matrix, k], axis=2)
        size = t.op("Where", [t.op("Less", [rows, k]), np.asarray(-1.0), t.op("Abs", [column])])
        best = t.op("ArgMax", [size], axis=1, keepdims=1)
        found = t.op("GatherND", [matrix, best], batch_dims=1)
        pivot = t.op("Gather", [found, t.op("Unsqueeze", [k, np.asarray([0])])], axis=1)
        divisor = pivot
        if singular:
            is_zero = t.op("Equal", [pivot, np.asarray(0.0)])
            divisor = t.op("Where", [is_zero, np.asarray(1.0), pivot])
        scaled = t.op("Unsqueeze", [t.op("Div", [found, divisor]), np.asarray([1])])
        displaced = t.op("Unsqueeze", [t.op("Gather", [matrix, k], axis=1), np.asarray([1])])
        is_best = t.op("Unsqueeze", [t.op("Equal", [rows, best]), np.asarray([2])])
        matrix = t.op("Where", [is_best, displaced, matrix])
        factors = t.op("Unsqueeze", [t.op("Gather", [matrix, k], axis=2), np.asarray([2])])
        reduced = t.op("Sub", [matrix, t.op("Mul", [factors, scaled])])
        is_k = t.op("Unsqueeze", [t.op("Equal", [rows, k]), np.asarray([1])])
        stays = t.op("Equal", [best, k])
        signed = t.op("Where", [stays, pivot, t.op("Neg", [pivot])])
        pivots = t.op("Squeeze", [signed, np.asarray([1])])
        return [t.op("Where", [is_k, scaled, reduced])], [pivots]

    solution, pivots = looped(t, count, [system], [1], body)
    return solution, pivots


def solved(t: Tape, a: Val, b: Val) -> Val:
    """x of a @ x = b, float64 [batch, n, m]; one of the batches may be 1."""
    shape = t.op("Shape", [b])
    batch = t.op("Concat", [t.op("Shape", [b], end=1), np.asarray([1, 1])], axis=0)
    a = t.op("Expand", [a, batch])
    head = t.op("Concat", [t.op("Shape", [a], end=1), np.asarray([1, 1])], axis=0)
    both = t.op("Concat", [a, t.op("Expand", [b, head])], axis=2)
    whole, _ = eliminated(t, both, singular=False)
    size = t.op("Slice", [shape, np.asarray([1]), np.asarray([2])])
    return t.op("Slice", [whole, size, np.asarray([2**62]), np.asarray([2])])


def solve_like(t: Tape, a: Val, b: Val) -> Val:
    """x of a @ x = b in the shape and type of b."""
    return unbatched(t, solved(t, batched(t, a), batched(t, b)), b, last_two(t, b))


def identity(t: Tape, square: Val) -> Val:
    """The identity for float64 [batch, n, n]: [1, n, n]."""
    size = t.op("Gather", [t.op("Shape", [square]), np.asarray(1)])
    steps = t.op("Range", [np.asarray(0), size, np.asarray(1)])
    hit = t.op("Equal", [t.op("Unsqueeze", [steps, np.asarray([1])]), steps])
    return t.op("Unsqueeze", [t.cast(hit, _F64), np.asarray([0])])


def inverted(t: Tape, x: Val) -> Val:
    """The inverse of float64 [batch, n, n]."""
    return solved(t, x, identity(t, x))


@op("MatrixInverse")
def matrix_inverse(t: Tape, x: Val, *, adjoint: Val = False) -> Val:
    """A singular matrix gives infinities or NaN."""
    return unbatched(t, inverted(t, batched(t, turned(t, x, bool(adjoint)))), x, last_two(t, x))


@op("MatrixInverseExt")
def matrix_inverse_ext(t: Tape, x: Val) -> Val:
    """A singular matrix gives infinities or NaN."""
    return matrix_inverse(t, x)


@op("MatrixDeterminant")
def determinant(t: Tape, x: Val) -> Val:
    """ONNX Runtime's own kernel where it has one."""
    if t.dtype(x) == np.float32:
        return t.op("Det", [x])
    _, pivots = eliminated(t, batched(t, x), singular=True)
    return unbatched(t, t.op("ReduceProd", [pivots, np.asarray([0])], keepdims=0), x, None)


@op("LogMatrixDeterminant")
def log_determinant(t: Tape, x: Val) -> Val:
    """-> (sign, log of the absolute value), without the product that may overflow."""
    _, pivots = eliminated(t, batched(t, x), singular=True)
    sign = t.op("ReduceProd", [t.op("Sign", [pivots]), np.asarray([0])], keepdims=0)
    logs = t.op("Log", [t.op("Abs", [pivots])])
    size = t.op("ReduceSum", [logs, np.asarray([0])], keepdims=0)
    return unbatched(t, sign, x, None), unbatched(t, size, x, None)


@op("MatrixSolve")
def matrix_solve(t: Tape, a: Val, b: Val, *, adjoint: Val = False) -> Val:
    """x of a @ x = b."""
    return solve_like(t, turned(t, a, bool(adjoint)), b)


@op("MatrixTriangularSolve")
def matrix_triangular_solve(
    t: Tape, a: Val, b: Val, *, lower: Val = True, adjoint: Val = False
) -> Val:
    """Only one triangle of a counts."""
    return solve_like(t, turned(t, trilu(t, a, 0, not lower), bool(adjoint)), b)


def triangular(t: Tape, a: Val, upper: bool, unit: bool) -> Val:
    """One triangle; `unit` puts ones on its diagonal."""
    if not unit:
        return trilu(t, a, 0, upper)
    strict = batched(t, trilu(t, a, 1 if upper else -1, upper))
    return unbatched(t, t.op("Add", [strict, identity(t, strict)]), a, last_two(t, a))


@op("SolveTriangular")
def solve_triangular(
    t: Tape, a: Val, b: Val, trans: Val = 0, lower: Val = False, unit_diagonal: Val = False
) -> Val:
    """SciPy's: trans 1 and 2 turn a; b may be a vector."""
    a = turned(t, triangular(t, a, not lower, bool(unit_diagonal)), bool(number(trans, "trans")))
    if t.rank(b) == t.rank(a):
        return solve_like(t, a, b)
    column = t.op("Unsqueeze", [b, np.asarray([-1])])
    return t.op("Squeeze", [solve_like(t, a, column), np.asarray([-1])])


@op("TriangularSolve")
def triangular_solve(
    t: Tape, b: Val, a: Val, upper: Val = True, transpose: Val = False, unitriangular: Val = False
) -> Val:
    """-> (x, a)."""
    part = turned(t, triangular(t, a, bool(upper), bool(unitriangular)), bool(transpose))
    return solve_like(t, part, b), a


@op("Cholesky")
def cholesky(t: Tape, x: Val, *, upper: Val = False) -> Val:
    """L of L @ L.T; a matrix that is not positive definite gives NaN."""
    matrices = batched(t, x)
    count = t.op("Gather", [t.op("Shape", [matrices]), np.asarray(1)])
    rows = t.op("Range", [np.asarray(0), count, np.asarray(1)])

    def body(k: ir.Value, states: Sequence[ir.Value]) -> tuple[Sequence[Val], Sequence[Val]]:
        (left,) = states
        column = t.op("Gather", [left, k], axis=2)
        root = t.op(
            "Sqrt", [t.op("Gather", [column, t.op("Unsqueeze", [k, np.asarray([0])])], axis=1)]
        )
        below = t.op(
            "Where", [t.op("Less", [rows, k]), np.asarray(0.0), t.op("Div", [column, root])]
        )
        outer = t.op("Mul", [t.op("Unsqueeze", [below, np.asarray([2])]),
                             t.op("Unsqueeze", [below, np.asarray([1])])])  # fmt: skip
        return [t.op("Sub", [left, outer])], [below]

    _, columns = looped(t, count, [matrices], [2], body)
    factor = t.op("Transpose", [columns], perm=[1, 0, 2] if upper else [1, 2, 0])
    return unbatched(t, factor, x, last_two(t, x))


def from_factor(t: Tape, x: Val, upper: Val) -> Val:
    """The matrix of a Cholesky factor, float64 [batch, n, n]."""
    factor = batched(t, trilu(t, x, 0, bool(upper)))
    other = turned(t, factor, True)
    return t.op("MatMul", [other, factor] if upper else [factor, other])


@op("CholeskyInverse")
def cholesky_inverse(t: Tape, x: Val, *, upper: Val = False) -> Val:
    """The inverse of the matrix that has this factor."""
    return unbatched(t, inverted(t, from_factor(t, x, upper)), x, last_two(t, x))


@op("CholeskySolve")
def cholesky_solve(t: Tape, b: Val, factor: Val, *, upper: Val = False) -> Val:
    """x of a @ x = b, a being given by its factor."""
    matrices = from_factor(t, factor, upper)
    return unbatched(t, solved(t, matrices, batched(t, b)), b, last_two(t, b))


@op("MatrixPower")
def matrix_power(t: Tape, x: Val, *, n: Val) -> Val:
    """By squaring; a negative power is one of the inverse."""
    power = int(number(n, "n"))
    base = batched(t, x)
    if power < 0:
        base = inverted(t, base)
    y: Val = None
    left = abs(power)
    while left:
        if left & 1:
            y = base if y is None else t.op("MatMul", [y, base])
        left >>= 1
        base = t.op("MatMul", [base, base]) if left else base
    if y is None:
        y = t.op("Expand", [identity(t, base), t.op("Shape", [base])])
    return unbatched(t, y, x, last_two(t, x))


# --- vectors ------------------------------------------------------------------------------------


@op("Ger")
def ger(t: Tape, x: Val, y: Val) -> Val:
    """All products of two vectors' elements."""
    x, y = same_type(t, t.result_dtype(x, y), x, y)
    return t.op("Mul", [t.op("Unsqueeze", [x, np.asarray([-1])]),
                        t.op("Unsqueeze", [y, np.asarray([-2])])])  # fmt: skip


@op("Cross")
def cross(t: Tape, x: Val, y: Val, *, dim: Val = _NO_DIM) -> Val:
    """The vector product along an axis of size 3, the first one unless said otherwise."""
    axis = int(number(dim, "dim"))
    if axis == _NO_DIM:
        if 3 not in t.shape(x):
            raise UnsupportedOpError("Cross needs an axis of size 3")
        axis = t.shape(x).index(3)
    axis = axis_of(t, x, axis)
    on, off = np.asarray([1, 2, 0]), np.asarray([2, 0, 1])

    def product(first: np.ndarray, second: np.ndarray) -> Val:
        return t.op("Mul", [t.op("Gather", [x, first], axis=axis),
                            t.op("Gather", [y, second], axis=axis)])  # fmt: skip

    return t.op("Sub", [product(on, off), product(off, on)])


@op("Qr")
def qr(t: Tape, x: Val, *, full_matrices: Val = False) -> Val:
    """-> (Q, R) by Householder's reflections, with LAPACK's signs."""
    matrices = batched(t, x)
    shape = t.op("Shape", [matrices])
    rows, columns = (t.op("Gather", [shape, np.asarray(axis)]) for axis in (1, 2))
    count = t.op("Min", [rows, columns])
    places = t.op("Range", [np.asarray(0), rows, np.asarray(1)])
    same = t.op("Equal", [t.op("Unsqueeze", [places, np.asarray([1])]), places])
    square = t.op("Gather", [shape, np.asarray([0, 1, 1])])
    unit = t.op("Expand", [t.cast(same, _F64), square])

    def body(k: ir.Value, states: Sequence[ir.Value]) -> tuple[Sequence[Val], Sequence[Val]]:
        left, turns = states
        upright, flat = _mirror(t, t.op("Gather", [left, k], axis=2), places, k)
        down = t.op("MatMul", [upright, t.op("MatMul", [flat, left])])
        across = t.op("MatMul", [t.op("MatMul", [turns, upright]), flat])
        return [t.op("Sub", [left, down]), t.op("Sub", [turns, across])], []

    upper, whole = looped(t, count, [matrices, unit], [], body)
    upper = t.op("Trilu", [upper], upper=1)  # what rounding left below is none of it
    begin = np.asarray([0])
    size = t.op("Unsqueeze", [rows if full_matrices else count, begin])
    whole = t.op("Slice", [whole, begin, size, np.asarray([2])])
    upper = t.op("Slice", [upper, begin, size, np.asarray([1])])
    height, width = (t.op("Shape", [x], start=at, end=end) for at, end in ((-2, -1), (-1, None)))
    tall, wide = (t.op("Concat", pair, axis=0) for pair in ([height, size], [size, width]))
    return unbatched(t, whole, x, tall), unbatched(t, upper, x, wide)


def _mirror(t: Tape, column: Val, places: Val, k: Val) -> tuple[Val, Val]:
    """The reflection 1 - upright @ flat that clears a column below place k."""
    zero, one, first = np.asarray(0.0), np.asarray(1.0), np.asarray([1])
    column = t.op("Where", [t.op("Less", [places, k]), zero, column])
    at_k = t.op("Equal", [places, k])
    head = t.op("ReduceSum", [t.op("Where", [at_k, column, zero]), first], keepdims=1)
    tail = t.op("ReduceSumSquare", [t.op("Where", [at_k, zero, column]), first], keepdims=1)
    norm = t.op("Sqrt", [t.op("Add", [tail, t.op("Mul", [head, head])])])
    signed = t.op("Where", [t.op("Less", [head, zero]), t.op("Neg", [norm]), norm])
    mirror = t.op("Add", [column, t.op("Where", [at_k, signed, zero])])
    clear = t.op("Equal", [tail, zero])  # nothing is below: the column stays as it is
    size = t.op("ReduceSumSquare", [mirror, first], keepdims=1)
    share = t.op("Div", [np.asarray(2.0), t.op("Where", [clear, one, size])])
    scaled = t.op("Mul", [mirror, t.op("Where", [clear, zero, share])])
    return t.op("Unsqueeze", [mirror, np.asarray([2])]), t.op("Unsqueeze", [scaled, first])
