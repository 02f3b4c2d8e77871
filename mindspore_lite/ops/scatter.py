"""Putting elements in: by coordinates, by number along an axis, by truth values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops.arguments import axis_of, elements, number, shape_argument
from mindspore_lite.ops.create import filled
from mindspore_lite.ops.index import axis_indices, indexed, integer
from mindspore_lite.ops.slice import bounds, sliced
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape, constant_of

_I64 = np.dtype(np.int64)
_REDUCTIONS = {0: "none", 1: "add", 2: "mul", "multiply": "mul", "none": "none", "add": "add"}
_HOWS = {"Update": "none", "Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div",
         "Max": "max", "Min": "min"}  # fmt: skip


def scattered(t: Tape, kind: str, x: Val, indices: Val, updates: Val, how: str, **more: int) -> Val:
    """ONNX's ScatterND or ScatterElements; subtraction and division by way of add and mul."""
    updates = t.cast(updates, t.dtype(x))
    if how == "none":
        return t.op(kind, [x, indices, updates], **more)
    if how == "sub":
        negative = t.op("Sub", [np.zeros((), t.dtype(x)), updates])
        return scattered(t, kind, x, indices, negative, "add", **more)
    if how == "div":
        ones = filled(t, t.op("Shape", [x]), 1, t.dtype(x))
        return t.op("Div", [x, scattered(t, kind, ones, indices, updates, "mul", **more)])
    # ONNX Runtime has kernels for these types, which then refuse to reduce
    wide = {"bool": np.int32, "float16": np.float32}.get(t.dtype(x).name, t.dtype(x))
    base, new = (t.cast(v, np.dtype(wide)) for v in (x, updates))
    return t.cast(t.op(kind, [base, indices, new], reduction=how, **more), t.dtype(x))


def reduction(value: Val) -> str:
    """How a value meets the old one, from a word or an enum."""
    found = _REDUCTIONS.get(value)
    if found is None:
        raise UnsupportedOpError(f"scatter with reduce {value!r} is not supported")
    return found


# --- by coordinates -----------------------------------------------------------------------------


@op(*[f"TensorScatter{how}" for how in _HOWS])
def tensor_scatter(t: Tape, x: Val, indices: Val, updates: Val) -> Val:
    """x with updates brought in at the named places; several for one place all count."""
    how = _HOWS[t.primitive.removeprefix("TensorScatter")]
    return scattered(t, "ScatterND", x, t.cast(indices, _I64), updates, how)


@op(*[f"ScatterNd{how}" for how in _HOWS], writes=True)
def scatter_nd_in_place(
    t: Tape, x: Val, indices: Val, updates: Val, *, use_locking: Val = False
) -> Val:
    """The same into a parameter."""
    how = _HOWS[t.primitive.removeprefix("ScatterNd")]
    return scattered(t, "ScatterND", x, t.cast(indices, _I64), updates, how)


@op(*[f"Scatter{how}" for how in _HOWS], writes=True)
def scatter_rows_in_place(
    t: Tape, x: Val, indices: Val, updates: Val, *, use_locking: Val = False
) -> Val:
    """Whole rows of a parameter, by number."""
    rows = t.op("Unsqueeze", [t.cast(indices, _I64), np.asarray([-1])])
    how = _HOWS[t.primitive.removeprefix("Scatter")]
    return scattered(t, "ScatterND", x, rows, updates, how)


@op("ScatterNd")
def scatter_nd(t: Tape, indices: Val, updates: Val, shape: Val) -> Val:
    """Updates in a tensor of zeros; several for one place are added."""
    zeros = filled(t, shape_argument(t, shape), 0, t.dtype(updates))
    return scattered(t, "ScatterND", zeros, t.cast(indices, _I64), updates, "add")


# --- along one axis -----------------------------------------------------------------------------


def along_axis(t: Tape, x: Val, dim: Val, index: Val, src: Val, how: str) -> Val:
    """x[..., index[p], ...] = src[p] for every place p of the index; src may be larger."""
    if t.rank(x) == 0:
        x = t.op("Reshape", [x, np.asarray([1])])
        index, src = (t.op("Reshape", [v, np.asarray([1])]) for v in (index, src))
        return t.op("Squeeze", [along_axis(t, x, dim, index, src, how)])
    axis, rank = axis_of(t, x, dim), t.rank(index)
    if None in t.shape(index) or t.shape(index) != t.shape(src):
        axes, ones = np.arange(rank), np.ones(rank, np.int64)
        src = t.op("Slice", [src, np.zeros(rank, np.int64), t.op("Shape", [index]), axes, ones])
    return scattered(t, "ScatterElements", x, integer(t, index), src, how, axis=axis)


@op("TensorScatterElements")
def tensor_scatter_elements(
    t: Tape, x: Val, indices: Val, updates: Val, *, axis: Val = 0, reduce: Val = "none"
) -> Val:
    """One element of an axis per place."""
    return along_axis(t, x, axis, indices, updates, reduction(reduce))


@op("Scatter")
def scatter(t: Tape, x: Val, dim: Val, index: Val, src: Val, reduce: Val = 0) -> Val:
    """One element of an axis per place."""
    return along_axis(t, x, dim, index, src, reduction(reduce))


op("InplaceScatterSrc", "InplaceScatterSrcReduce", writes=True)(scatter)


@op("ScatterValue")
def scatter_value(t: Tape, x: Val, dim: Val, index: Val, value: Val, reduce: Val = 0) -> Val:
    """One number at each place."""
    src = filled(t, t.op("Shape", [index]), value, t.dtype(x))
    return along_axis(t, x, dim, index, src, reduction(reduce))


op("InplaceScatterValue", "InplaceScatterValueReduce", writes=True)(scatter_value)


@op("ScatterAddExt")
def scatter_add_ext(t: Tape, x: Val, dim: Val, index: Val, src: Val) -> Val:
    """Added along an axis."""
    return along_axis(t, x, dim, index, src, "add")


op("InplaceScatterAdd", writes=True)(scatter_add_ext)


@op("ScatterAddWithAxis", writes=True)
def scatter_add_with_axis(t: Tape, x: Val, indices: Val, updates: Val, *, axis: Val = 0) -> Val:
    """Added along an axis of a parameter."""
    return along_axis(t, x, axis, indices, updates, "add")


def rows_scattered(t: Tape, x: Val, dim: Val, index: Val, source: Val, how: str) -> Val:
    """Whole slices of an axis, by number."""
    axis = axis_of(t, x, dim)
    shape = np.asarray([-1 if a == axis else 1 for a in range(t.rank(x))], np.int64)
    places = t.op("Reshape", [integer(t, index), shape])
    wide = t.op("Expand", [places, t.op("Shape", [source])])
    return scattered(t, "ScatterElements", x, wide, source, how, axis=axis)


@op("IndexAdd", "InplaceIndexAdd", writes=True)
def index_add(
    t: Tape,
    x: Val,
    indices: Val,
    y: Val,
    *,
    axis: Val,
    use_lock: Val = True,
    check_index_bound: Val = True,
) -> Val:
    """Slices added along an axis of a parameter."""
    return rows_scattered(t, x, axis, indices, y, "add")


@op("IndexAddExt")
def index_add_ext(t: Tape, x: Val, dim: Val, index: Val, source: Val, alpha: Val = 1) -> Val:
    """alpha times slices, added along an axis."""
    if constant_of(alpha) is None or number(alpha, "alpha") != 1:
        source = t.op("Mul", [source, t.cast(alpha, t.dtype(source))])
    return rows_scattered(t, x, dim, index, source, "add")


op("InplaceIndexAddExt", writes=True)(index_add_ext)


@op("InplaceIndexCopy", writes=True)
def index_copy(t: Tape, x: Val, dim: Val, index: Val, source: Val) -> Val:
    """Slices replaced along an axis."""
    return rows_scattered(t, x, dim, index, source, "none")


@op("InplaceUpdateV2")
def update_rows(t: Tape, x: Val, indices: Val, v: Val) -> Val:
    """Rows of the first axis replaced; x itself stays, for all its name."""
    return rows_scattered(t, x, 0, indices, v, "none")


@op("IndexFill", "IndexFillScalar", "IndexFillTensor")
def index_fill(t: Tape, x: Val, dim: Val, index: Val, value: Val) -> Val:
    """Slices of an axis filled with one value."""
    axis = axis_of(t, x, dim)
    length = t.op("Shape", [x], start=axis, end=axis + 1)
    rows = t.op("Reshape", [integer(t, index), np.asarray([-1])])
    marks = filled(t, t.op("Shape", [rows]), True, np.dtype(np.bool_))
    hit = t.op("ScatterElements", [filled(t, length, False, np.dtype(np.bool_)), rows, marks])
    shape = np.asarray([-1] + [1] * (t.rank(x) - 1 - axis), np.int64)
    return t.op("Where", [t.op("Reshape", [hit, shape]), t.cast(value, t.dtype(x)), x])


op("InplaceIndexFillScalar", "InplaceIndexFillTensor", writes=True)(index_fill)


# --- by index tensors and masks -----------------------------------------------------------------


def put_at_indices(t: Tape, x: Val, indices: Val, values: Val, accumulate: Val) -> Val:
    """x[i, j, ...] = values, or += when accumulating."""
    prepared = indexed(t, x, axis_indices(t, x, indices))
    places = t.op("Unsqueeze", [prepared.places, np.asarray([-1])])
    count, first = t.rank(prepared.places), prepared.first
    others = t.op("Shape", [prepared.flat], start=1)
    rank = t.rank(prepared.flat) - 1
    shape = t.op("Shape", [prepared.places])
    head, tail = (t.op("Slice", [others, np.asarray([a]), np.asarray([b])])
                  for a, b in ((0, first), (first, rank)))  # fmt: skip
    # values lie as x[...] would: the axes of the indices behind those in front of them
    wanted = t.op("Concat", [head, shape, tail], axis=0)
    updates = t.op("Expand", [t.cast(values, t.dtype(x)), wanted])
    if first:
        perm = [*range(first, first + count), *range(first), *range(first + count, rank + count)]
        updates = t.op("Transpose", [updates], perm=perm)
    how = "add" if accumulate else "none"
    y = scattered(t, "ScatterND", prepared.flat, places, updates, how)
    y = t.op("Reshape", [y, prepared.shape], allowzero=1)
    back = [int(a) for a in np.argsort(prepared.order)]
    return y if back == sorted(back) else t.op("Transpose", [y], perm=back)


@op("InplaceIndexPut", "InnerInplaceIndexPut", writes=True)
def inplace_index_put(t: Tape, x: Val, indices: Val, values: Val, accumulate: Val = False) -> Val:
    """x[i, j, ...] = values."""
    return put_at_indices(t, x, indices, values, accumulate)


@op("IndexPut")
def index_put(t: Tape, x: Val, values: Val, indices: Val, *, accumulate: Val = 0) -> Val:
    """The indices come last."""
    return put_at_indices(t, x, indices, values, accumulate)


@op("InplacePut", writes=True)
def inplace_put(t: Tape, x: Val, index: Val, source: Val, accumulate: Val = False) -> Val:
    """Elements of the flat tensor, by number."""
    flat, at, new = (t.op("Reshape", [v, np.asarray([-1])]) for v in (x, index, source))
    how = "add" if accumulate else "none"
    y = scattered(t, "ScatterElements", flat, integer(t, at), new, how)
    return t.op("Reshape", [y, t.op("Shape", [x])])


@op("MaskedScatter")
def masked_scatter(t: Tape, x: Val, mask: Val, source: Val) -> Val:
    """The elements of a source in order, wherever the mask holds."""
    wide = t.op("Expand", [mask, t.op("Shape", [x])])
    flat = t.op("Reshape", [t.cast(wide, _I64), np.asarray([-1])])
    order = t.op("Sub", [t.op("CumSum", [flat, np.asarray(0)]), np.asarray(1)])
    rank = t.op("Max", [order, np.asarray(0)])  # before the first hit; not looked at
    new = t.op("Gather", [t.op("Reshape", [source, np.asarray([-1])]), rank], axis=0)
    return t.op("Where", [wide, t.op("Reshape", [new, t.op("Shape", [x])]), x])


op("InplaceMaskedScatter", writes=True)(masked_scatter)


@op("TensorCopySlices")
def tensor_copy_slices(t: Tape, x: Val, value: Val, begin: Val, end: Val, strides: Val) -> Val:
    """x with a stretch of its first axes replaced."""
    return replaced(t, x, value, strided(t, begin, end, strides))


def strided(t: Tape, begin: Val, end: Val, strides: Val) -> Callable[[Val], Val]:
    """A slice as a function of what it is taken from."""
    rows = zip(*(elements(t, v) for v in (begin, end, strides)), strict=True)
    cuts = {axis: bounds(t, b, e, s, 0, 0) for axis, (b, e, s) in enumerate(rows)}
    return lambda x: sliced(t, x, cuts)


def replaced(t: Tape, x: Val, value: Val, cut: Callable[[Val], Val]) -> Val:
    """The elements that a slice takes out of x, replaced: the places are sliced just so."""
    numbers = t.op("Range", [np.asarray(0), t.op("Size", [x]), np.asarray(1)])
    places = cut(shaped_like(t, x, numbers, _I64))
    new = t.op("Expand", [t.cast(value, t.dtype(x)), t.op("Shape", [places])])
    flat, at, new = (t.op("Reshape", [v, np.asarray([-1])]) for v in (x, places, new))
    return shaped_like(t, x, t.op("ScatterElements", [flat, at, new]), t.dtype(x))


def shaped_like(t: Tape, x: Val, flat: Val, dtype: np.dtype) -> Val:
    """A flat tensor in the shape of x, noted on it: the cut may need the sizes."""
    y = t.op("Reshape", [flat, t.op("Shape", [x])])
    y.type, y.shape = ir.TensorType(ir.DataType.from_numpy(dtype)), x.shape
    return y
