"""Diagonals, triangles and bands of matrices."""

from __future__ import annotations

import math

import numpy as np

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops.arguments import axis_of, ints, number
from mindspore_lite.ops.create import asked_type
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import MAX_TABLE, Tape, bounded, constant_of

_I64 = np.dtype(np.int64)


def fixed(value: int | None) -> int:
    """A dim that a table is made for."""
    if value is None:
        raise UnsupportedOpError("the matrices need a fixed size")
    return value


# --- triangles and bands ------------------------------------------------------------------------


@op("Triu", "Tril", "TrilExt")
def triangle(t: Tape, x: Val, *, diagonal: Val = 0) -> Val:
    """The upper or lower triangle of the last two axes."""
    return trilu(t, x, diagonal, upper=t.primitive == "Triu")


def trilu(t: Tape, x: Val, diagonal: Val, upper: bool) -> Val:
    """One triangle, zeros elsewhere."""
    k = t.cast(diagonal, _I64)
    return t.op("Trilu", [x, k], upper=int(upper))


@op("MatrixBandPart")
def matrix_band_part(t: Tape, x: Val, lower: Val, upper: Val) -> Val:
    """So many diagonals below and above the main one; a negative number keeps them all."""
    for count, is_upper in ((upper, False), (lower, True)):
        known = constant_of(count)
        if known is not None and int(known) < 0:
            continue
        k = t.cast(count, _I64)
        if known is None:  # as far away as no matrix reaches
            k = t.op("Where", [t.op("Less", [k, np.asarray(0)]), np.asarray(2**40), k])
        x = trilu(t, x, t.op("Neg", [k]) if is_upper else k, is_upper)
    return x


@op("TrilIndices", "TriuIndices")
def triangle_indices(t: Tape, *, row: Val, col: Val, offset: Val = 0, dtype: Val = None) -> Val:
    """-> [2, n]: rows and columns of the elements of a triangle."""
    rows, cols, k = (int(number(v, "size of a triangle")) for v in (row, col, offset))
    bounded(rows * cols, "elements of a table", MAX_TABLE)
    found = np.tril_indices if t.primitive == "TrilIndices" else np.triu_indices
    kind = asked_type(t, dtype, np.zeros(0, np.int32))
    return t.constant(np.stack(found(rows, k, cols)).astype(kind))


# --- one diagonal -------------------------------------------------------------------------------


@op("Diagonal")
def diagonal(t: Tape, x: Val, *, offset: Val = 0, dim1: Val = 0, dim2: Val = 1) -> Val:
    """A diagonal of two axes, which becomes the last axis."""
    return taken_diagonal(t, x, int(number(offset, "offset")), dim1, dim2)


op("DiagonalView", is_view=True)(diagonal)


def taken_diagonal(t: Tape, x: Val, offset: int, dim1: Val = -2, dim2: Val = -1) -> Val:
    """The axes go to the end, into one, and every (columns + 1)th element is taken."""
    first, second = axis_of(t, x, dim1), axis_of(t, x, dim2)
    others = [axis for axis in range(t.rank(x)) if axis not in (first, second)]
    order = [*others, first, second]
    if order != sorted(order):
        x = t.op("Transpose", [x], perm=order)
    down, right = max(-offset, 0), max(offset, 0)
    rows, cols = t.shape(x)[-2:]
    if rows is not None and cols is not None:
        count = bounded(max(min(rows - down, cols - right), 0), "elements of a table", MAX_TABLE)
        places: Val = np.arange(count) * (cols + 1) + down * cols + right
    else:
        places = diagonal_places(t, x, down, right)
    head = t.op("Shape", [x], end=t.rank(x) - 2)
    flat = t.op("Concat", [head, np.asarray([-1])], axis=0)
    return t.op("Gather", [t.op("Reshape", [x, flat]), places], axis=len(others))


def diagonal_places(t: Tape, x: Val, down: int, right: int) -> Val:
    """Where the diagonal lies in the flat matrix, when its size is known only at run time."""
    dims = t.op("Shape", [x], start=-2)
    size = t.op("ReduceMin", [t.op("Sub", [dims, np.asarray([down, right])])], keepdims=0)
    count = t.op("Max", [size, np.asarray(0)])
    cols = t.op("Gather", [dims, np.asarray(1)])
    steps = t.op("Range", [np.asarray(0), count, np.asarray(1)])
    along = t.op("Mul", [steps, t.op("Add", [cols, np.asarray(1)])])
    start = t.op("Add", [t.op("Mul", [cols, np.asarray(down)]), np.asarray(right)])
    return t.op("Add", [along, start])


def spread_diagonal(t: Tape, x: Val, offset: int) -> Val:
    """A vector as a diagonal of a square matrix of zeros."""
    down, right = max(-offset, 0), max(offset, 0)
    size = t.op("Add", [t.op("Size", [x]), np.asarray(abs(offset))])
    steps = t.op("Range", [np.asarray(0), size, np.asarray(1)])
    rows = t.op("Unsqueeze", [steps, np.asarray([1])])
    hit = t.op("Equal", [t.op("Add", [rows, np.asarray(offset)]), steps])
    pads = np.asarray([right, down])  # the vector lies along the columns
    wide = t.op("Pad", [x, pads]) if offset else x
    return t.op("Where", [hit, wide, np.zeros((), t.dtype(x))])


@op("Diag")
def diag(t: Tape, x: Val) -> Val:
    """All elements on the diagonal of a tensor of twice the rank."""
    if t.rank(x) == 1:
        return spread_diagonal(t, x, 0)
    square = spread_diagonal(t, t.op("Reshape", [x, np.asarray([-1])]), 0)
    dims = t.op("Shape", [x])
    return t.op("Reshape", [square, t.op("Concat", [dims, dims], axis=0)])


@op("DiagPart")
def diag_part(t: Tape, x: Val) -> Val:
    """The inverse of Diag."""
    half = t.op("Shape", [x], end=t.rank(x) // 2)
    size = t.op("Unsqueeze", [t.op("ReduceProd", [half], keepdims=0), np.asarray([0])])
    square = t.op("Reshape", [x, t.op("Concat", [size, np.asarray([-1])], axis=0)])
    return t.op("Reshape", [taken_diagonal(t, square, 0), half])


@op("DiagExt")
def diag_ext(t: Tape, x: Val, diagonal: Val = 0) -> Val:
    """A vector becomes a matrix, a matrix gives its diagonal."""
    offset = int(number(diagonal, "diagonal"))
    return spread_diagonal(t, x, offset) if t.rank(x) == 1 else taken_diagonal(t, x, offset)


@op("Trace", "TraceExt")
def trace(t: Tape, x: Val) -> Val:
    """The sum of the main diagonal."""
    return summed(t, taken_diagonal(t, x, 0), t.result_dtype(x))


@op("TraceV2")
def trace_v2(
    t: Tape, x: Val, offset: Val = 0, axis1: Val = 1, axis2: Val = 0, dtype: Val = None
) -> Val:
    """The sum of any diagonal."""
    found = taken_diagonal(t, x, int(number(offset, "offset")), axis1, axis2)
    return summed(t, found, asked_type(t, dtype, x))


def summed(t: Tape, x: Val, dtype: np.dtype) -> Val:
    """The last axis added up in a type of its own."""
    return t.op("ReduceSum", [t.cast(x, dtype), np.asarray([-1])], keepdims=0)


def filled_diagonal(t: Tape, x: Val, fill_value: Val, wrap: Val = False) -> Val:
    """The main diagonal replaced; `wrap` starts anew below a tall matrix."""
    dims = [fixed(d) for d in t.shape(x)]
    hit = np.zeros(bounded(math.prod(dims), "elements of a table", MAX_TABLE), np.bool_)
    if len(dims) == 2:
        hit[: hit.size if wrap else dims[1] ** 2 : dims[1] + 1] = True
    else:  # all dims are alike
        hit[:: sum(d**k for k, d in enumerate(dims))] = True
    return t.op("Where", [hit.reshape(dims), t.cast(fill_value, t.dtype(x)), x])


@op("FillDiagonal")
def fill_diagonal(t: Tape, x: Val, *, fill_value: Val, wrap: Val = False) -> Val:
    """The main diagonal replaced."""
    return filled_diagonal(t, x, fill_value, wrap)


op("InplaceFillDiagonal", writes=True)(filled_diagonal)


# --- several diagonals packed in rows -----------------------------------------------------------


class Band:
    """Diagonals k0 .. k1 of [rows, cols] matrices, packed as rows of one length, highest first."""

    def __init__(self, k: Val, rows: int, cols: int, align: str) -> None:
        found = ints(k, "k")
        self.low, self.high = found[0], found[-1]
        self.rows, self.cols = rows, cols
        self.align = align
        bounded(rows * cols, "elements of a table", MAX_TABLE // 4)  # several such on the way
        if not -rows < self.low <= self.high < cols:
            raise UnsupportedOpError(f"diagonals {found} of a {rows} x {cols} matrix")
        longest = min(max(self.low, 0), self.high)  # the diagonal nearest to the main one
        self.width = self.length(longest)

    def length(self, d: int) -> int:
        """Of diagonal d."""
        return min(self.rows + min(d, 0), self.cols - max(d, 0))

    def shift(self, d: int) -> int:
        """How far a diagonal stands from the left in its row."""
        above, _, below = self.align.upper().partition("_")
        left = (d >= 0 and above == "LEFT") or (d <= 0 and below == "LEFT")
        return 0 if left else self.width - self.length(d)

    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """For each element of the matrix its place in the pack, and whether it has one."""
        row, col = np.indices((self.rows, self.cols))
        offset = col - row
        inside = (self.low <= offset) & (offset <= self.high)
        shifts = np.array([self.shift(d) for d in range(self.low, self.high + 1)])
        shift = shifts[np.clip(offset - self.low, 0, self.high - self.low)]
        place = (self.high - offset) * self.width + np.minimum(row, col) + shift
        return np.where(inside, place, 0), inside

    def sources(self) -> tuple[np.ndarray, np.ndarray]:
        """For each place of the pack its element in the matrix, and whether it has one."""
        place, inside = self.places()
        count = (self.high - self.low + 1) * self.width
        source, used = np.zeros(count, np.int64), np.zeros(count, np.bool_)
        flat = np.arange(self.rows * self.cols).reshape(self.rows, self.cols)
        source[place[inside]], used[place[inside]] = flat[inside], True
        return source, used


def flat_tail(t: Tape, x: Val, axes: int) -> Val:
    """The last axes in one."""
    if axes == 1:
        return x
    head = t.op("Shape", [x], end=t.rank(x) - axes)
    return t.op("Reshape", [x, t.op("Concat", [head, np.asarray([-1])], axis=0)])


@op("MatrixDiagV3")
def matrix_diag_v3(
    t: Tape,
    x: Val,
    k: Val,
    num_rows: Val,
    num_cols: Val,
    padding: Val,
    *,
    align: str = "RIGHT_LEFT",
) -> Val:
    """Diagonals given as rows, set into matrices full of a padding value."""
    offsets = ints(k, "k")
    width = fixed(t.shape(x)[-1])
    rows, cols = (int(number(v, "size of a matrix")) for v in (num_rows, num_cols))
    least_rows, least_cols = width - min(offsets[-1], 0), width + max(offsets[0], 0)
    if rows < 0 and cols < 0:
        rows = cols = max(least_rows, least_cols)
    rows, cols = (least_rows if rows < 0 else rows), (least_cols if cols < 0 else cols)
    place, inside = Band(k, rows, cols, align).places()
    pack = flat_tail(t, x, 1 if offsets[0] == offsets[-1] else 2)
    spread = t.op("Gather", [pack, place], axis=t.rank(pack) - 1)
    return t.op("Where", [inside, spread, t.cast(padding, t.dtype(x))])


@op("MatrixDiagPartV3")
def matrix_diag_part_v3(t: Tape, x: Val, k: Val, padding: Val, *, align: str = "RIGHT_LEFT") -> Val:
    """Diagonals taken out as rows, filled up with a padding value."""
    rows, cols = (fixed(d) for d in t.shape(x)[-2:])
    band = Band(k, rows, cols, align)
    source, used = band.sources()
    if band.low != band.high:
        source, used = source.reshape(-1, band.width), used.reshape(-1, band.width)
    flat = flat_tail(t, x, 2)
    taken = t.op("Gather", [flat, source], axis=t.rank(flat) - 1)
    return taken if used.all() else t.op("Where", [used, taken, t.cast(padding, t.dtype(x))])


@op("MatrixSetDiagV3")
def matrix_set_diag_v3(t: Tape, x: Val, diagonal: Val, k: Val, *, align: str = "RIGHT_LEFT") -> Val:
    """Diagonals replaced by rows."""
    rows, cols = (fixed(d) for d in t.shape(x)[-2:])
    band = Band(k, rows, cols, align)
    place, inside = band.places()
    pack = flat_tail(t, diagonal, 1 if band.low == band.high else 2)
    spread = t.op("Gather", [pack, place], axis=t.rank(pack) - 1)
    return t.op("Where", [inside, spread, x])
