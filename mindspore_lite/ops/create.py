"""Tensors made from numbers: filled ones, ranges, windows, one-hot rows."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from mindspore_lite.ops.arguments import number, shape_argument
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import MAX_TABLE, Tape, bounded, constant_of, dtype_argument

_I64 = np.dtype(np.int64)
_ASCEND_TYPES = {0: 43, 1: 42, 11: 44}  # float32, float16, float64


# --- one value everywhere -----------------------------------------------------------------------


def filled(t: Tape, shape: Val, value: Val, dtype: np.dtype) -> Val:
    """A tensor of one value; `shape` as ONNX takes it."""
    known = constant_of(value)
    if known is None:
        return t.op("Expand", [as_scalar(t, value, dtype), shape])
    return t.op("ConstantOfShape", [shape], value=ir.Tensor(known.reshape(-1)[:1].astype(dtype)))


def asked_type(t: Tape, dtype: Val, *operands: Val) -> np.dtype:
    """The type that an argument names, else what the file says or the operands have."""
    return t.result_dtype(*operands) if dtype is None else dtype_argument(dtype).numpy


@op("Zeros", "Ones", "Empty")
def zeros(t: Tape, size: Val, dtype: Val = None, device: Val = None, pin_memory: Val = None) -> Val:
    """Zeros or ones; an empty tensor may hold anything, so it holds zeros."""
    kind = asked_type(t, dtype, 0.0)
    return filled(t, shape_argument(t, size), int(t.primitive == "Ones"), kind)


@op("NewZeros", "NewOnes", "NewEmpty")
def new_zeros(t: Tape, x: Val, size: Val, dtype: Val = None, device: Val = None) -> Val:
    """In the type of another tensor."""
    kind = asked_type(t, dtype, x)
    return filled(t, shape_argument(t, size), int(t.primitive == "NewOnes"), kind)


@op("NewFull")
def new_full(t: Tape, x: Val, size: Val, fill_value: Val, dtype: Val = None) -> Val:
    """In the type of another tensor."""
    return filled(t, shape_argument(t, size), fill_value, asked_type(t, dtype, x))


@op("ZerosLike", "ZerosLikeExt", "OnesLike", "OnesLikeExt", "EmptyLike")
def zeros_like(t: Tape, x: Val, dtype: Val = None, device: Val = None, pin: Val = None) -> Val:
    """Zeros or ones in the shape of x, in its type or another."""
    one = int(t.primitive.startswith("Ones"))
    return filled(t, t.op("Shape", [x]), one, asked_type(t, dtype, x))


@op("FullLike")
def full_like(t: Tape, x: Val, fill_value: Val, dtype: Val = None) -> Val:
    """In the shape of x."""
    return filled(t, t.op("Shape", [x]), fill_value, asked_type(t, dtype, x))


@op("Fills")
def fills(t: Tape, x: Val, value: Val) -> Val:
    """In the shape and type of x."""
    return filled(t, t.op("Shape", [x]), value, t.dtype(x))


@op("Fill")
def fill(t: Tape, dtype: Val, dims: Val, value: Val) -> Val:
    """The type comes first."""
    return filled(t, shape_argument(t, dims), value, dtype_argument(dtype).numpy)


@op("FillV2")
def fill_v2(t: Tape, shape: Val, value: Val) -> Val:
    """A 0-d tensor everywhere."""
    return filled(t, shape_argument(t, shape), value, t.dtype(value))


@op("FillD")
def fill_d(t: Tape, value: Val, *, dims: Val) -> Val:
    """The shape as an attribute."""
    return filled(t, shape_argument(t, dims), value, t.dtype(value))


@op("FillScalar", "FillTensor")
def fill_scalar(t: Tape, size: Val, fill_value: Val, dtype: Val = None) -> Val:
    """In the type of the value, unless another is named."""
    return filled(t, shape_argument(t, size), fill_value, asked_type(t, dtype, fill_value))


# --- ranges -------------------------------------------------------------------------------------


def ranged(t: Tape, start: Val, end: Val, step: Val, dtype: np.dtype) -> Val:
    """start, start + step, ... before end."""
    known = [constant_of(v) for v in (start, end, step)]
    if all(v is not None for v in known):
        first, last, by = (float(v) for v in known if v is not None)
        bounded(math.ceil((last - first) / by), "numbers of a range", MAX_TABLE)
    wide = dtype if dtype.name in ("int32", "int64", "float32", "float64") else None
    if wide is None:  # ONNX Runtime has kernels for those alone
        wide = np.dtype(np.float32 if dtype.kind == "f" else np.int64)
    return t.cast(t.op("Range", [as_scalar(t, v, wide) for v in (start, end, step)]), dtype)


def as_scalar(t: Tape, value: Val, dtype: np.dtype) -> Val:
    """A number of any form as a 0-d tensor."""
    known = constant_of(value)
    if known is not None:
        return known.reshape(()).astype(dtype)
    number_ = t.cast(value, dtype)
    return number_ if t.rank(value) == 0 else t.op("Reshape", [number_, np.zeros(0, np.int64)])


@op("Range", "RangeV2")
def range_(
    t: Tape,
    start: Val,
    end: Val = None,
    step: Val = None,
    *,
    maxlen: Val = 1_000_000,
    limit: Val = 0,
    delta: Val = 1,
) -> Val:
    """In the type of its numbers; old files have attributes start, limit, delta."""
    end, step = (limit if end is None else end), (delta if step is None else step)
    return ranged(t, start, end, step, t.result_dtype(start, end, step))


@op("Arange")
def arange(t: Tape, start: Val, end: Val, step: Val = 1, dtype: Val = None) -> Val:
    """A type may be asked for."""
    return ranged(t, start, end, step, asked_type(t, dtype, start, end, step))


def spaced(t: Tape, start: Val, stop: Val, count: Val, dtype: np.dtype) -> Val:
    """Evenly spaced numbers, both ends included, as many as `count` says."""
    if constant_of(count) is not None:
        bounded(int(number(count, "number of steps")), "numbers of a range", MAX_TABLE)
    steps = as_scalar(t, count, _I64)
    places = t.cast(t.op("Range", [np.asarray(0), steps, np.asarray(1)]), dtype)
    gaps = t.op("Max", [t.op("Sub", [steps, np.asarray(1)]), np.asarray(1)])
    first, last = as_scalar(t, start, dtype), as_scalar(t, stop, dtype)
    step = t.op("Div", [t.op("Sub", [last, first]), t.cast(gaps, dtype)])
    return t.op("Add", [first, t.op("Mul", [places, step])])


def spaced_in(t: Tape, start: Val, stop: Val, count: Val, dtype: np.dtype) -> Val:
    """The same in any type; whole numbers are rounded towards zero."""
    wide = dtype if dtype in (np.float32, np.float64) else np.dtype(np.float32)
    return t.cast(spaced(t, start, stop, count, wide), dtype)


@op("LinSpace")
def lin_space(t: Tape, start: Val, stop: Val, num: Val) -> Val:
    """In the type of its ends."""
    return spaced_in(t, start, stop, num, t.result_dtype(start, stop))


@op("LinSpaceExt")
def lin_space_ext(t: Tape, start: Val, end: Val, steps: Val, dtype: Val = None) -> Val:
    """float32 unless said otherwise."""
    return spaced_in(t, start, end, steps, asked_type(t, dtype, 0.0))


@op("LogSpace")
def log_space(
    t: Tape, start: Val, end: Val, *, steps: Val = 10, base: Val = 10, dtype: Val = None
) -> Val:
    """base to the power of evenly spaced numbers."""
    powers = spaced(t, start, end, steps, np.dtype(np.float64))
    root = np.asarray(number(base, "base"), np.float64)
    return t.cast(t.op("Pow", [root, powers]), asked_type(t, dtype, start))


@op("SequenceMask")
def sequence_mask(t: Tape, lengths: Val, maxlen: Val = None) -> Val:
    """True for the first places of a row, as many as its length says."""
    counts = t.cast(lengths, _I64)
    most = t.op("ReduceMax", [counts], keepdims=0) if maxlen is None else maxlen
    places = ranged(t, 0, most, 1, _I64)
    return t.op("Less", [places, t.op("Unsqueeze", [counts, np.asarray([-1])])])


# --- windows ------------------------------------------------------------------------------------


def window(t: Tape, length: Val, periodic: Val, dtype: Val, terms: list[float]) -> Val:
    """a0 + a1 cos(2 pi n / N) + a2 cos(4 pi n / N) ...; a single element is 1."""
    turns, count = window_places(t, length, periodic)
    y: Val = np.asarray(terms[0], np.float32)
    for k, term in enumerate(terms[1:], 1):
        angle = t.op("Mul", [turns, np.asarray(2 * math.pi * k, np.float32)])
        wave = t.op("Mul", [t.op("Cos", [angle]), np.asarray(term, np.float32)])
        y = t.op("Add", [wave, y])
    return window_result(t, y, count, dtype)


def window_places(t: Tape, length: Val, periodic: Val) -> tuple[Val, Val]:
    """n / N for each place, and the number of places."""
    if constant_of(length) is not None:
        bounded(int(number(length, "window length")), "places of a window", MAX_TABLE)
    count = as_scalar(t, length, _I64)
    places = t.op("Range", [np.asarray(0), count, np.asarray(1)])
    whole = count if periodic else t.op("Sub", [count, np.asarray(1)])
    whole = t.op("Max", [whole, np.asarray(1)])
    f32 = np.dtype(np.float32)
    return t.op("Div", [t.cast(places, f32), t.cast(whole, f32)]), count


def window_result(t: Tape, y: Val, count: Val, dtype: Val) -> Val:
    """In the asked type; a single element is 1."""
    alone = t.op("Equal", [count, np.asarray(1)])
    y = t.op("Where", [alone, np.asarray(1, np.float32), y])
    return t.cast(y, asked_type(t, dtype, np.zeros(0, np.float32)))


@op("BlackmanWindow")
def blackman(t: Tape, window_length: Val, *, periodic: Val = True, dtype: Val = None) -> Val:
    """0.42, -0.5, 0.08."""
    return window(t, window_length, periodic, dtype, [0.42, -0.5, 0.08])


@op("HammingWindow")
def hamming(
    t: Tape,
    length: Val,
    *,
    periodic: Val = True,
    alpha: Val = 0.54,
    beta: Val = 0.46,
    dtype: Val = None,
) -> Val:
    """alpha - beta cos(...); its type is numbered as Ascend does."""
    dtype = _ASCEND_TYPES.get(dtype, dtype)
    terms = [number(alpha, "alpha"), -number(beta, "beta")]
    return window(t, length, periodic, dtype, [float(v) for v in terms])


@op("HannWindow")
def hann(t: Tape, window_length: Val, *, periodic: Val = True, dtype: Val = None) -> Val:
    """A raised cosine."""
    return window(t, window_length, periodic, dtype, [0.5, -0.5])


@op("BartlettWindow")
def bartlett(t: Tape, window_length: Val, *, periodic: Val = True, dtype: Val = None) -> Val:
    """A triangle."""
    turns, count = window_places(t, window_length, periodic)
    away = t.op("Abs", [t.op("Sub", [t.op("Mul", [turns, np.float32(2)]), np.float32(1)])])
    return window_result(t, t.op("Sub", [np.float32(1), away]), count, dtype)


# --- one-hot rows -------------------------------------------------------------------------------


@op("OneHot", "OneHotExt")
def one_hot(
    t: Tape, indices: Val, depth: Val, on_value: Val, off_value: Val, *, axis: Val = -1
) -> Val:
    """An index outside, a negative one too, gives a row of off_value alone."""
    dtype, rank = t.result_dtype(on_value), t.rank(indices) + 1
    along = int(number(axis, "axis")) % rank
    numbers = t.cast(indices, _I64)
    wanted = t.op("Unsqueeze", [numbers, np.asarray([along])])
    shape = [-1 if i == along else 1 for i in range(rank)]
    size = constant_of(depth)
    if size is not None and int(size) >= 0:
        bounded(int(size), "classes", MAX_TABLE)
        classes: Val = np.arange(int(size)).reshape(shape)
    else:  # mint.one_hot counts the classes itself when they are -1
        counted = t.op("Add", [t.op("ReduceMax", [numbers], keepdims=0), np.asarray(1)])
        classes = ranged(t, 0, counted if size is not None else depth, 1, _I64)
        classes = t.op("Reshape", [classes, np.asarray(shape)])
    hit = t.op("Equal", [wanted, classes])
    return t.op("Where", [hit, t.cast(on_value, dtype), t.cast(off_value, dtype)])


@op("Eye")
def eye(t: Tape, n: Val, m: Val, dtype: Val) -> Val:
    """Ones on the diagonal."""
    kind = dtype_argument(dtype).numpy
    rows, columns = constant_of(n), constant_of(m)
    if rows is not None and columns is not None:
        size = bounded(int(rows) * int(columns), "elements of a table", MAX_TABLE)
        return t.constant(np.eye(int(rows), int(columns) if size else 0, dtype=kind))
    places = [ranged(t, 0, v, 1, _I64) for v in (n, m)]
    hit = t.op("Equal", [t.op("Unsqueeze", [places[0], np.asarray([1])]), places[1]])
    return t.cast(hit, kind)
