"""Reshaping, reordering and repeating elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from mindspore_lite.ops.arguments import (
    MAX_FILL,
    MAX_SPREAD,
    axis_of,
    elements,
    ints,
    shape_argument,
    swapped,
)
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape, bounded, constant_of


@op("Reshape")
def reshape(t: Tape, x: Val, shape: Val, *, allowzero: Val = None) -> Val:
    """A 0 in the shape is a size of zero, not 'as before'.

    allowzero stands in files of our converter and means what it means in ONNX, also for sizes that
    are known at run time.
    """
    if isinstance(shape, tuple | list):
        dims = elements(t, shape)
        if allowzero or (allowzero is None and 0 in dims):
            return t.op("Reshape", [x, t.int64s(dims)], allowzero=1)
        copied = [0 if _is_dim(x, d, i) else d for i, d in enumerate(dims)]
        return t.op("Reshape", [x, t.int64s(copied)])
    return t.op("Reshape", [x, t.cast(shape, np.dtype(np.int64))], allowzero=1)


def _is_dim(x: Val, dim: Val, axis: int) -> bool:
    """Whether a number is the size of this axis of x, which ONNX calls 0."""
    gather = dim.producer() if isinstance(dim, ir.Value) else None
    if gather is None or gather.op_type != "Gather" or constant_of(gather.inputs[1]) != axis:
        return False
    source = gather.inputs[0]
    shape = None if source is None else source.producer()
    return shape is not None and shape.op_type == "Shape" and shape.inputs[0] is x


op("View", is_view=True)(reshape)


@op("ViewAs", is_view=True)
def view_as(t: Tape, x: Val, other: Val) -> Val:
    """In the shape of another tensor."""
    return t.op("Reshape", [x, t.op("Shape", [other])], allowzero=1)


@op("Flatten")
def flatten(t: Tape, x: Val) -> Val:
    """All axes but the first in one."""
    return t.op("Flatten", [x], axis=1)


@op("FlattenExt")
def flatten_ext(t: Tape, x: Val, start_dim: Val = 0, end_dim: Val = -1) -> Val:
    """A run of axes in one."""
    if t.rank(x) == 0:
        return t.op("Reshape", [x, np.asarray([1])])
    return merged(t, x, axis_of(t, x, start_dim), axis_of(t, x, end_dim))


def merged(t: Tape, x: Val, start: int, end: int) -> Val:
    """The axes from start to end, both included, in one."""
    if start >= end:
        return x
    dims = t.shape(x)
    run = dims[start : end + 1]
    size = -1 if None in run else math.prod(d or 0 for d in run)
    if None not in (*dims[:start], *dims[end + 1 :]):
        shape: Val = np.asarray([*dims[:start], size, *dims[end + 1 :]], np.int64)
    else:
        head, tail = t.op("Shape", [x], end=start), t.op("Shape", [x], start=end + 1)
        shape = t.op("Concat", [head, np.asarray([size]), tail], axis=0)
    return t.op("Reshape", [x, shape], allowzero=None if size == -1 else 1)


@op("Transpose")
def transpose(t: Tape, x: Val, perm: Val) -> Val:
    """Axes in a new order."""
    return t.op("Transpose", [x], perm=[axis_of(t, x, p) for p in ints(perm, "perm")])


op("TransposeView", is_view=True)(transpose)


@op("TransposeExtView", is_view=True)
def transpose_ext(t: Tape, x: Val, dim0: Val, dim1: Val) -> Val:
    """Two axes exchanged."""
    if t.rank(x) == 0:
        return x
    return t.op("Transpose", [x], perm=swapped(t.rank(x), axis_of(t, x, dim0), axis_of(t, x, dim1)))


@op("TExt")
def transpose_matrix(t: Tape, x: Val) -> Val:
    """A matrix transposed; less than a matrix stays as it is."""
    return t.op("Transpose", [x], perm=[1, 0]) if t.rank(x) == 2 else x


def moved(t: Tape, x: Val, source: int, target: int) -> Val:
    """One axis brought to another place, the others in order."""
    order = [axis for axis in range(t.rank(x)) if axis != source]
    order.insert(target, source)
    return x if source == target else t.op("Transpose", [x], perm=order)


@op("ExpandDims")
def expand_dims(t: Tape, x: Val, axis: Val) -> Val:
    """A new axis of size 1."""
    return t.op("Unsqueeze", [x, np.asarray(ints(axis, "axis"))])


op("ExpandDimsView", is_view=True)(expand_dims)


def squeezed(t: Tape, x: Val, axes: Sequence[int]) -> Val:
    """Without axes of one element; those that were just added are not there to begin with."""
    source = x.producer() if isinstance(x, ir.Value) else None
    if source is not None and source.op_type == "Unsqueeze":
        added = constant_of(source.inputs[1])
        if added is not None and np.array_equal(added, axes):
            return source.inputs[0]
    return t.op("Squeeze", [x, np.asarray(axes)])


@op("Squeeze")
def squeeze(t: Tape, x: Val, *, axis: Val = ()) -> Val:
    """Axes of size 1 removed; () means all of them."""
    axes = () if axis is None else ints(axis, "axis")
    return squeezed(t, x, axes) if axes else t.op("Squeeze", [x])


def spread_limit(x: Val) -> int:
    """How many elements x may become."""
    return MAX_SPREAD if constant_of(x) is None else MAX_FILL


@op("Tile", "Repeat")
def tile(t: Tape, x: Val, multiples: Val) -> Val:
    """Repeated along each axis; more repeats than axes add axes in front."""
    counts = elements(t, multiples)
    bounded(math.prod(c for c in counts if isinstance(c, int)), "repeats", spread_limit(x))
    missing = len(counts) - t.rank(x)
    if missing > 0:
        x = t.op("Unsqueeze", [x, np.asarray(range(missing))])
    return t.op("Tile", [x, t.int64s([1] * -missing + counts)])


@op("RepeatInterleaveInt")
def repeat_interleave(
    t: Tape, x: Val, repeats: Val, dim: Val = None, output_size: Val = None
) -> Val:
    """Each element several times in a row."""
    if dim is None:
        x, dim = t.op("Reshape", [x, np.asarray([-1])]), 0
    axis = axis_of(t, x, dim)
    counts: list[Val] = [1] * (t.rank(x) + 1)
    (count,) = elements(t, repeats)
    counts[axis + 1] = (
        bounded(count, "repeats", spread_limit(x)) if isinstance(count, int) else count
    )
    apart = t.op("Unsqueeze", [x, np.asarray([axis + 1])])
    return merged(t, t.op("Tile", [apart, t.int64s(counts)]), axis, axis + 1)


@op("RepeatInterleaveTensor")
def repeat_interleave_tensor(
    t: Tape, x: Val, repeats: Val, dim: Val = None, output_size: Val = None
) -> Val:
    """Each element as often in a row as its own count says."""
    if dim is None:
        x, dim = t.op("Reshape", [x, np.asarray([-1])]), 0
    axis = axis_of(t, x, dim)
    if (known := constant_of(repeats)) is not None:
        bounded(int(known.sum()), "repeats", spread_limit(x))
    length = t.op("Shape", [x], start=axis, end=axis + 1)
    counts = t.op("Expand", [t.cast(repeats, np.dtype(np.int64)), length])
    ends = t.op("CumSum", [counts, np.asarray(0)])
    total = t.op("Slice", [ends, np.asarray([-1]), np.asarray([2**62])])
    # a mark where each element has ended: the number of marks so far is the element's number
    blank = t.op("ConstantOfShape", [t.op("Add", [total, np.asarray([1])])],
                 value=ir.Tensor(np.zeros(1, np.int64)))  # fmt: skip
    ones = t.op("Expand", [np.asarray([1]), length])
    marks = t.op("ScatterElements", [blank, ends, ones], reduction="add")
    rows = t.op("Slice", [t.op("CumSum", [marks, np.asarray(0)]), np.asarray([0]), total])
    return t.op("Gather", [x, rows], axis=axis)


@op("BroadcastTo", "DynamicBroadcastTo", "Expand")
def broadcast_to(t: Tape, x: Val, shape: Val) -> Val:
    """-1 keeps a dim."""
    if isinstance(shape, ir.Value) and shape.const_value is None:
        dims = shape_argument(t, shape)
        is_open = t.op("Equal", [dims, np.asarray(-1)])
        return t.op("Expand", [x, t.op("Where", [is_open, np.asarray(1), dims])])
    numbers = [1 if isinstance(d, int) and d == -1 else d for d in elements(t, shape)]
    return t.op("Expand", [x, shape_argument(t, numbers, spread_limit(x))])


op("BroadcastToView", is_view=True)(broadcast_to)


@op("ExpandAs")
def expand_as(t: Tape, x: Val, other: Val) -> Val:
    """Repeated to the shape of another tensor."""
    return t.op("Expand", [x, t.op("Shape", [other])])


@op("Shape")
def shape_of(t: Tape, x: Val) -> Val:
    """-> a tuple of numbers, known now where the dim is fixed."""
    dims: list[Any] = list(t.shape(x))
    if None in dims:
        whole = t.op("Shape", [x])
        dims = [
            t.op("Gather", [whole, np.asarray(i)]) if d is None else d for i, d in enumerate(dims)
        ]
        for dim in dims:
            if isinstance(dim, ir.Value):
                dim.type, dim.shape = ir.TensorType(ir.DataType.INT64), ir.Shape([])
    return tuple(dims)


@op("TensorShape", "DynamicShape")
def tensor_shape(t: Tape, x: Val) -> Val:
    """The shape as a 1-D int64 tensor."""
    return t.op("Shape", [x])


@op("Rank")
def rank_of(t: Tape, x: Val) -> Val:
    """Number of axes."""
    return t.rank(x)


@op("Size")
def size_of(t: Tape, x: Val) -> Val:
    """Number of elements, known now where the shape is fixed."""
    dims = [d for d in t.shape(x) if d is not None]
    return math.prod(dims) if len(dims) == t.rank(x) else t.op("Size", [x])
