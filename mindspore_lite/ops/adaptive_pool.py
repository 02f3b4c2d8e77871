"""Adaptive pooling: bin i of an axis covers [floor(i * n / size), ceil((i + 1) * n / size))."""

from __future__ import annotations

import numpy as np

from mindspore_lite.ops.arguments import ints, swapped
from mindspore_lite.ops.pool import I64, average_pool, index_type, with_index
from mindspore_lite.ops.spatial import batched
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import MAX_TABLE, Tape, bounded


def wanted(t: Tape, output_size: Val) -> list[int | None]:
    """The bins per axis, None where an axis is kept; a single number counts for all."""
    dims = next(int(c) for c in t.primitive if c.isdigit())
    if isinstance(output_size, tuple | list):
        sizes = [None if s in (None, -1) else int(s) for s in output_size]
    else:
        sizes = [None if s == -1 else s for s in ints(output_size, "output_size")]
    return sizes * dims if len(sizes) == 1 else sizes


def even_window(t: Tape, x: Val, sizes: list[int | None]) -> list[int] | None:
    """The size of the bins, when all are equal and do not overlap."""
    lengths = t.shape(x)[-len(sizes) :]
    if any(n is None or (s and n % s) for n, s in zip(lengths, sizes, strict=True)):
        return None
    return [1 if s is None else n // s for n, s in zip(lengths, sizes, strict=True) if n]


# --- means ----------------------------------------------------------------------------------------


@op("AdaptiveAvgPool1D", "AdaptiveAvgPool2D", "AdaptiveAvgPool2DExt")
@op("AdaptiveAvgPool3D", "AdaptiveAvgPool3DExt")
def adaptive_avg_pool(t: Tape, x: Val, *, output_size: Val) -> Val:
    """The mean over a grid of output_size bins; None keeps that side as it is."""
    sizes, rank = wanted(t, output_size), t.rank(x)
    if set(sizes) == {1}:
        axes = np.arange(rank - len(sizes), rank)
        return t.op("ReduceMean", [x, axes], keepdims=1)
    if (even := even_window(t, x, sizes)) is not None:
        how = {"kernel_shape": even, "strides": even}
        return batched(t, x, len(sizes), lambda x: average_pool(t, x, **how))
    for axis, size in enumerate(sizes, rank - len(sizes)):
        if size is not None:
            x = _bins(t, x, axis, size)
    return x


def _bins(t: Tape, x: Val, axis: int, size: int) -> Val:
    """The means of the bins of one axis, by a matrix product."""
    length, rank, dtype = t.shape(x)[axis], t.rank(x), t.dtype(x)
    if length is None:
        weights = _weights_at_run_time(t, x, axis, size)
    else:
        bounded(length * size, "weights of an adaptive pooling", MAX_TABLE)
        starts, ends = bounds(length, size)
        at = np.arange(length)
        inside = (at >= starts[:, None]) & (at < ends[:, None])
        weights = (inside / (ends - starts)[:, None]).T
    if axis == rank - 2 and length is not None:
        return t.op("MatMul", [t.cast(weights.T, dtype), x])
    turned = axis != rank - 1
    x = t.op("Transpose", [x], perm=swapped(rank, axis, rank - 1)) if turned else x
    y = t.op("MatMul", [x, t.cast(weights, dtype)])
    return t.op("Transpose", [y], perm=swapped(rank, axis, rank - 1)) if turned else y


def bounds(length: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """First place of each bin, and the one after its last."""
    at = np.arange(bounded(size, "bins of an adaptive pooling", MAX_TABLE))
    return at * length // size, -(-(at + 1) * length // size)


def bounds_at_run_time(t: Tape, x: Val, axis: int, size: int) -> tuple[Val, Val, Val]:
    """The same as columns [size, 1], and all places of the axis."""
    at = np.arange(bounded(size, "bins of an adaptive pooling", MAX_TABLE))[:, None]
    length = t.op("Shape", [x], start=axis, end=axis + 1)
    starts = t.op("Div", [t.op("Mul", [length, at]), np.asarray(size)])
    last = t.op("Add", [t.op("Mul", [length, at + 1]), np.asarray(size - 1)])
    ends = t.op("Div", [last, np.asarray(size)])
    places = t.op("Range", [np.asarray(0), t.op("Squeeze", [length]), np.asarray(1)])
    return starts, ends, places


def _weights_at_run_time(t: Tape, x: Val, axis: int, size: int) -> Val:
    starts, ends, places = bounds_at_run_time(t, x, axis, size)
    after = t.op("GreaterOrEqual", [places, starts])
    inside = t.op("And", [after, t.op("Less", [places, ends])])
    counts = t.cast(t.op("Sub", [ends, starts]), np.dtype(np.float32))
    shares = t.op("Div", [t.cast(inside, np.dtype(np.float32)), counts])
    return t.op("Transpose", [shares], perm=[1, 0])


# --- largest --------------------------------------------------------------------------------------


@op("AdaptiveMaxPool1D", "AdaptiveMaxPool2D", "AdaptiveMaxPool3D")
def adaptive_max_pool(t: Tape, x: Val, *, output_size: Val) -> Val:
    """-> (y, flat index inside its channel); None keeps that side as it is."""
    sizes, found = wanted(t, output_size), index_type(t)
    even = even_window(t, x, sizes)
    if even is not None:
        how = {"kernel_shape": even, "strides": even}
        return batched(t, x, len(sizes), lambda x: with_index(t, x, found, **how))
    return batched(t, x, len(sizes), lambda x: _largest(t, x, sizes, found))


def _largest(t: Tape, x: Val, sizes: list[int | None], index_dtype: np.dtype) -> tuple[Val, Val]:
    """Gathers the bins of all axes, [N, C, bins..., members...], and looks for the largest.

    Bins differ in length: short ones repeat their last member, which changes no maximum.
    """
    dims = len(sizes)
    flat: Val = np.zeros((1,) * 2 * dims, np.int64)
    bins = x
    for i, size in enumerate(sizes):
        members = _members(t, x, 2 + i, size)  # [bins, members]
        bins = t.op("Gather", [bins, members], axis=2 + i)
        to_the_end = [*range(3 + i), *range(4 + i, 3 + dims + i), 3 + i]
        bins = t.op("Transpose", [bins], perm=to_the_end)
        others = [a for a in range(2 * dims) if a not in (i, dims + i)]
        length = t.op("Shape", [x], start=2 + i, end=3 + i)
        columns = t.op("Unsqueeze", [members, np.asarray(others, I64)])
        flat = t.op("Add", [t.op("Mul", [flat, length]), columns])
    rows = t.op("Shape", [bins], end=2 + dims)
    row = np.asarray([-1])
    bins = t.op("Reshape", [bins, t.op("Concat", [rows, row], axis=0)])
    inner = t.op("Concat", [t.op("Shape", [flat], end=dims), row], axis=0)
    flat = t.op("Reshape", [flat, inner])
    best = t.op("ArgMax", [bins], axis=-1, keepdims=1)
    y = t.op("GatherElements", [bins, best], axis=-1)
    flat = t.op("Expand", [flat, t.op("Shape", [bins])])
    index = t.op("GatherElements", [flat, best], axis=-1)
    last = np.asarray([-1])
    return t.op("Squeeze", [y, last]), t.cast(t.op("Squeeze", [index, last]), index_dtype)


def _members(t: Tape, x: Val, axis: int, size: int | None) -> Val:
    """The places in each bin of one axis: [bins, longest]."""
    length = t.shape(x)[axis]
    if length is not None:
        starts, ends = bounds(length, length if size is None else size)
        longest = int((ends - starts).max())
        bounded(len(starts) * longest, "members of an adaptive pooling", MAX_TABLE)
        return np.minimum(starts[:, None] + np.arange(longest), ends[:, None] - 1)
    if size is None:
        whole = t.op("Squeeze", [t.op("Shape", [x], start=axis, end=axis + 1)])
        places = t.op("Range", [np.asarray(0), whole, np.asarray(1)])
        return t.op("Unsqueeze", [places, np.asarray([1])])
    starts, ends, _ = bounds_at_run_time(t, x, axis, size)
    longest = t.op("ReduceMax", [t.op("Sub", [ends, starts])], keepdims=0)
    steps = t.op("Range", [np.asarray(0), longest, np.asarray(1)])
    ends = t.op("Sub", [ends, np.asarray(1, I64)])
    return t.op("Min", [t.op("Add", [starts, steps]), ends])
