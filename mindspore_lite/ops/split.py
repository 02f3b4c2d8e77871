"""Joining tensors and cutting them apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops.arguments import axis_of, elements, ints, number
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape, bounded


@op("Concat")
def concat(t: Tape, values: Val, *, axis: Val = 0) -> Val:
    """A tuple of tensors joined along an axis."""
    if len(values) == 1:
        return values[0]
    values = [t.cast(v, t.result_dtype(*values)) for v in values]
    return t.op("Concat", values, axis=axis_of(t, values[0], axis))


@op("Stack", "Pack", "StackExt")
def stack(t: Tape, values: Val, *, axis: Val = 0, dim: Val = None) -> Val:
    """A tuple of tensors joined along a new axis."""
    along = int(number(axis if dim is None else dim, "axis"))
    along %= t.rank(values[0]) + 1
    rows = [t.op("Unsqueeze", [v, np.asarray([along])]) for v in values]
    return t.op("Concat", rows, axis=along)


@op("Split", "SplitD")
def split(t: Tape, x: Val, *, axis: Val = 0, output_num: Val = 1) -> Val:
    """-> a tuple of equal parts."""
    return parts(t, x, axis, count=int(number(output_num, "output_num")))


def parts(
    t: Tape, x: Val, axis: Val, count: int, sizes: list[Val] | None = None
) -> tuple[Any, ...]:
    """The tensor cut along an axis, always as a tuple."""
    along = axis_of(t, x, axis)
    if count == 1:
        return (x,)
    if sizes is not None:
        return tuple(t.op("Split", [x, t.int64s(sizes)], outputs=count, axis=along))
    return tuple(t.op("Split", [x], outputs=count, axis=along, num_outputs=count))


@op("SplitWithSize")
def split_with_size(t: Tape, x: Val, sizes: Val, dim: Val = 0) -> Val:
    """-> a tuple of parts of the given sizes."""
    lengths = elements(t, sizes)
    return parts(t, x, dim, len(lengths), lengths)


op("SplitWithSizeView", is_view=True)(split_with_size)


@op("SplitV")
def split_v(t: Tape, x: Val, *, size_splits: Val, split_dim: Val, num_split: Val = None) -> Val:
    """-> a tuple of parts of the given sizes, one of which may be -1 for the rest."""
    sizes: list[Val] = list(ints(size_splits, "size_splits"))
    if -1 in sizes:
        axis = axis_of(t, x, split_dim)
        length, rest = t.op("Shape", [x], start=axis, end=axis + 1), sizes.index(-1)
        sizes[rest] = t.op("Sub", [length, np.asarray([sum(sizes) + 1])])
    return parts(t, x, split_dim, len(sizes), sizes)


@op("SplitTensor")
def split_tensor(t: Tape, x: Val, size: Val, dim: Val = 0) -> Val:
    """-> a tuple of parts of one size; the last may be smaller."""
    along, step = axis_of(t, x, dim), int(number(size, "split size"))
    return even_parts(t, x, along, step)


op("SplitTensorView", is_view=True)(split_tensor)


@op("Chunk")
def chunk(t: Tape, x: Val, chunks: Val, dim: Val = 0) -> Val:
    """-> a tuple of at most `chunks` parts of equal size; the last may be smaller."""
    along, count = axis_of(t, x, dim), int(number(chunks, "chunks"))
    length = t.shape(x)[along]
    if length is None:
        raise UnsupportedOpError("Chunk needs a fixed size on its axis")
    return even_parts(t, x, along, max(-(-length // count), 1))


op("ChunkView", is_view=True)(chunk)


def even_parts(t: Tape, x: Val, axis: int, step: int) -> tuple[Any, ...]:
    """Parts of `step` along an axis of known length."""
    length = t.shape(x)[axis]
    if length is None:
        raise UnsupportedOpError("splitting by size needs a fixed size on its axis")
    bounded(-(-length // step), "results of one operator")
    sizes = [min(step, length - at) for at in range(0, length, step)] or [0]
    return parts(t, x, axis, len(sizes), sizes)


@op("Unstack", "Unpack")
def unstack(t: Tape, x: Val, *, axis: Val = 0, num: Val = None) -> Val:
    """-> a tuple with one tensor per element of an axis, which vanishes."""
    along = axis_of(t, x, axis)
    count = t.shape(x)[along] if num is None else int(number(num, "num"))
    if count is None:
        raise UnsupportedOpError("Unstack needs a fixed size on its axis")
    pieces = parts(t, x, along, count)
    return tuple(t.op("Squeeze", [p, np.asarray([along])]) for p in pieces)


op("UnstackExtView", is_view=True)(unstack)


@op("Meshgrid")
def meshgrid(t: Tape, values: Val, *, indexing: Val = "xy") -> Val:
    """-> one grid per vector; 'xy' exchanges the first two axes of all of them."""
    if indexing not in ("xy", "ij", 0, 1):
        raise UnsupportedOpError(f"Meshgrid with indexing {indexing!r} is not supported")
    count = bounded(len(values), "axes of a grid", 16)  # guess
    order = list(range(count))
    if indexing in ("xy", 1) and count > 1:
        order[:2] = 1, 0
    lengths = [t.op("Shape", [t.op("Reshape", [v, np.asarray([-1])])]) for v in values]
    whole = t.op("Concat", [lengths[k] for k in order], axis=0) if count > 1 else lengths[0]
    grids = []
    for k, vector in enumerate(values):
        shape = np.asarray([-1 if order[axis] == k else 1 for axis in range(count)], np.int64)
        grids.append(t.op("Expand", [t.op("Reshape", [vector, shape]), whole]))
    return tuple(grids)
