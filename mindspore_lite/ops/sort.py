"""Sorting and searching: orders, medians, distinct values, positions in sorted rows, histograms."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mindspore_lite.ops.arguments import axis_of, number, same_type
from mindspore_lite.ops.elementwise import as_float, is_float
from mindspore_lite.ops.reduce import BOOL, INT32, INT64, flat
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import MAX_TABLE, Tape, bounded, constant_of, dtype_argument

ONE = np.asarray([1], np.int64)


# --- orders ---------------------------------------------------------------------------------------


def ordered(
    t: Tape, x: Val, axis: Val, descending: Val, k: Val = None, in_order: Val = True
) -> tuple[Val, Val]:
    """(values, int64 indices) of the first k in order, or of all; equal ones keep their order."""
    if t.rank(x) == 0:
        return x, t.constant(np.asarray(0, np.int64))
    along = axis_of(t, x, axis)
    if k is None:
        k = t.shape(x)[along]
    elif (known := constant_of(k)) is not None:
        k = int(known)
    count = t.int64s([k]) if k is not None else t.op("Shape", [x], start=along, end=along + 1)
    values, index = t.op(
        "TopK", [x, count], outputs=2, axis=along, largest=int(descending), sorted=int(in_order)
    )
    return values, index


@op("TopK")
def top_k(t: Tape, x: Val, k: Val, *, sorted: Val = True) -> Val:
    """-> (values, int32 indices) of the last axis."""
    values, index = ordered(t, x, -1, True, k, sorted)
    return values, t.cast(index, INT32)


@op("TopkExt")
def top_k_ext(
    t: Tape, x: Val, k: Val, dim: Val = -1, largest: Val = True, sorted: Val = True
) -> Val:
    """-> (values, int64 indices)."""
    return ordered(t, x, dim, largest, k, sorted)


@op("Sort")
def sort(t: Tape, x: Val, *, axis: Val = -1, descending: Val = False) -> Val:
    """-> (values, int32 indices)."""
    values, index = ordered(t, x, axis, descending)
    return values, t.cast(index, INT32)


@op("SortExt")
def sort_ext(t: Tape, x: Val, dim: Val = -1, descending: Val = False, stable: Val = False) -> Val:
    """-> (values, int64 indices); always stable."""
    return ordered(t, x, dim, descending)


@op("ArgSort")
def arg_sort(t: Tape, x: Val, dim: Val = -1, descending: Val = False, stable: Val = False) -> Val:
    """The int64 indices that sort; always stable."""
    return ordered(t, x, dim, descending)[1]


def element(t: Tape, pair: tuple[Val, Val], axis: int, place: Val, keep: Val) -> tuple[Val, Val]:
    """One element of an axis, of values and of indices; the axis goes unless it is kept."""
    found = tuple(
        t.op("Gather", [v, t.op("Reshape", [place, ONE]) if keep else place], axis=axis)
        for v in pair
    )
    return found[0], found[1]


@op("Kthvalue")
def kth_value(t: Tape, x: Val, k: Val, dim: Val = -1, keepdim: Val = False) -> Val:
    """-> (k-th smallest, index)."""
    if t.rank(x) == 0:
        return ordered(t, x, dim, False)
    along, place = axis_of(t, x, dim), int(number(k, "k"))
    return element(t, ordered(t, x, along, False, place), along, np.asarray(place - 1), keepdim)


@op("NthElement")
def nth_element(t: Tape, x: Val, n: Val, *, reverse: Val = False) -> Val:
    """The n-th smallest of the last axis, or the n-th largest."""
    place = int(number(n, "n"))
    pair = ordered(t, x, -1, reverse, place + 1)
    return element(t, pair, t.rank(x) - 1, np.asarray(place), False)[0]


def median_of(t: Tape, x: Val, axis: int, keep: Val, ignore_nan: Val) -> tuple[Val, Val]:
    """(lower median, its index); a NaN anywhere is the median unless ignored."""
    size, along = t.op("Shape", [x], start=axis, end=axis + 1), np.asarray([axis])
    if not is_float(t.dtype(x)):
        place = t.op("Gather", [ordered(t, x, axis, False)[1], middle(t, size)], axis=axis)
    else:
        is_nan = t.op("IsNaN", [x])
        nans = t.op("ReduceSum", [t.cast(is_nan, INT64), along], keepdims=1)
        last = t.op("Where", [is_nan, np.asarray(np.inf, t.dtype(x)), x])  # where NaN shall stand
        index = ordered(t, last, axis, False)[1]
        if ignore_nan:
            known = middle(t, t.op("Sub", [size, nans]))
            place = t.op("GatherElements", [index, known], axis=axis)
        else:
            first = t.op("ArgMax", [t.cast(is_nan, INT32)], axis=axis, keepdims=1)
            place = t.op("Gather", [index, middle(t, size)], axis=axis)
            place = t.op("Where", [t.cast(nans, BOOL), first, place])
    pair = t.op("GatherElements", [x, place], axis=axis), place
    return pair if keep else (t.op("Squeeze", [pair[0], along]), t.op("Squeeze", [place, along]))


def middle(t: Tape, size: Val) -> Val:
    """The place of the lower median among so many; 0 among none."""
    return t.op("Div", [t.op("Max", [t.op("Sub", [size, ONE]), np.asarray([0])]), np.asarray([2])])


@op("Median")
def median(
    t: Tape, x: Val, *, global_median: Val = False, axis: Val = 0, keep_dims: Val = False,
    ignore_nan: Val = False,
) -> Val:  # fmt: skip
    """-> (lower median along an axis or of all elements, its index)."""
    if global_median:
        return median_of(t, flat(t, x), 0, False, ignore_nan)
    return median_of(t, x, axis_of(t, x, axis), keep_dims, ignore_nan)


@op("MedianDim")
def median_dim(t: Tape, x: Val, dim: Val = -1, keepdim: Val = False) -> Val:
    """-> (lower median, its index)."""
    return median_of(t, x, axis_of(t, x, dim), keepdim, False)


@op("MedianExt")
def median_ext(t: Tape, x: Val) -> Val:
    """The lower median of all elements."""
    return median_of(t, flat(t, x), 0, False, False)[0]


# --- what is there, and where ---------------------------------------------------------------------


@op("NonZero")
def non_zero(t: Tape, x: Val) -> Val:
    """Coordinates of the elements that are not zero, one row each."""
    return t.op("Transpose", [t.op("NonZero", [x])], perm=[1, 0])


@op("NonZeroExt")
def non_zero_ext(t: Tape, x: Val) -> Val:
    """Coordinates of the elements that are not zero: one vector per axis."""
    rank = max(t.rank(x), 1)
    found = t.op("NonZero", [x])
    return tuple(t.op("Gather", [found, np.asarray(axis)], axis=0) for axis in range(rank))


@op("Unique")
def unique(t: Tape, x: Val) -> Val:
    """-> (distinct values in the order they come, the place of each element among them)."""
    values, _, inverse, _ = t.op("Unique", [x], outputs=4, sorted=0)
    return values, t.cast(inverse, t.result_dtype(x) if t.dtype(x) == INT64 else INT32)


@op("Unique2")
def unique2(
    t: Tape, x: Val, sorted: Val = True, return_inverse: Val = False, return_counts: Val = False
) -> Val:
    """-> (distinct values, the place of each element among them, how often each comes)."""
    values, _, inverse, counts = t.op("Unique", [x], outputs=4, sorted=1)
    return values, t.op("Reshape", [inverse, t.op("Shape", [x])]), counts


@op("UniqueDim")
def unique_dim(t: Tape, x: Val, sorted: Val, return_inverse: Val, dim: Val) -> Val:
    """The same of the slices along an axis."""
    values, _, inverse, counts = t.op("Unique", [x], outputs=4, sorted=1, axis=axis_of(t, x, dim))
    return values, inverse, counts


@op("UniqueConsecutive")
def unique_consecutive(
    t: Tape, x: Val, *, return_inverse: Val = False, return_counts: Val = False, dim: Val = None
) -> Val:
    """-> (x without repeats of the left neighbour, each one's place in that, lengths of runs)."""
    axis = 0 if dim is None else axis_of(t, x, dim)
    rows = flat(t, x) if dim is None else x
    start, end = np.asarray([0]), np.asarray([-1])
    left = t.op("Slice", [rows, start, end, np.asarray([axis])])
    right = t.op("Slice", [rows, ONE, np.asarray([np.iinfo(np.int64).max]), np.asarray([axis])])
    differs = t.cast(t.op("Not", [t.op("Equal", [left, right])]), INT32)
    others = [a for a in range(t.rank(rows)) if a != axis]
    if others:
        differs = t.op("ReduceMax", [differs, np.asarray(others)], keepdims=0)
    starts = t.op("Pad", [differs, np.asarray([1, 0]), np.asarray(1, np.int32)])
    inverse = t.cast(t.op("CumSum", [starts, np.asarray(0)]), INT64)
    inverse = t.op("Sub", [inverse, np.asarray(1)])
    places = flat(t, t.op("NonZero", [starts]))
    ends = t.op("Concat", [places, t.op("Shape", [starts])], axis=0)
    counts = t.op("Sub", [t.op("Slice", [ends, ONE, np.asarray([2**62])]),
                          t.op("Slice", [ends, start, end])])  # fmt: skip
    if dim is None:
        inverse = t.op("Reshape", [inverse, t.op("Shape", [x])])
    kept = t.op("Compress", [rows, t.cast(starts, BOOL)], axis=axis)
    index_type = t.result_dtype(np.empty(0, INT64)) if t.dtype(x) == INT64 else INT64
    return kept, t.cast(inverse, index_type), t.cast(counts, index_type)


# --- places in sorted rows ------------------------------------------------------------------------


def places_in(t: Tape, rows: Val, values: Val, right: Val) -> Val:
    """How many numbers of a sorted row are smaller than each value, or at most as large."""
    rows, values = same_type(t, t.promoted(rows, values), rows, values)
    if t.rank(rows) > 1:  # a row of its own for each row of values
        rows = t.op("Unsqueeze", [rows, np.asarray([-2])])
    values = t.op("Unsqueeze", [values, np.asarray([-1])])
    before = t.op("LessOrEqual" if right else "Less", [rows, values])
    return t.op("ReduceSum", [t.cast(before, INT64), np.asarray([-1])], keepdims=0)


@op("SearchSorted")
def search_sorted(
    t: Tape, sequence: Val, values: Val, sorter: Val = None, *, dtype: Val = 35, right: Val = False
) -> Val:
    """Where values would have to stand in sorted rows."""
    if sorter is not None:
        sequence = t.op("GatherElements", [sequence, t.cast(sorter, INT64)], axis=-1)
    return t.cast(places_in(t, sequence, values, right), dtype_argument(dtype).numpy)


@op("LowerBound", "UpperBound")
def bound(t: Tape, rows: Val, values: Val, *, out_type: Val = 34) -> Val:
    """The same row by row, before or after equal numbers."""
    found = places_in(t, rows, values, t.primitive == "UpperBound")
    return t.cast(found, dtype_argument(out_type).numpy)


@op("Bucketize")
def bucketize(t: Tape, x: Val, *, boundaries: Val) -> Val:
    """Between which boundaries each element lies, as int32."""
    edges = np.asarray(boundaries, np.float32)
    bounded(edges.size, "boundaries", MAX_TABLE)
    return t.cast(places_in(t, edges, as_float(t, x), True), INT32)


@op("InTopK")
def in_top_k(t: Tape, x: Val, target: Val, *, k: Val) -> Val:
    """Whether fewer than k elements of a row are larger than the target's."""
    index = t.op("Unsqueeze", [t.cast(target, INT64), ONE])
    own = t.op("GatherElements", [x, index], axis=1)
    larger = t.cast(t.op("Greater", [x, own]), INT64)
    rank = t.op("ReduceSum", [larger, ONE], keepdims=0)
    return t.op("Less", [rank, np.asarray(int(number(k, "k")))])


# --- counts ---------------------------------------------------------------------------------------


def counted(t: Tape, index: Val, size: Val, weights: Val, dtype: np.dtype) -> Val:
    """How often each number below `size` (in a 1-D tensor) occurs, or the sum of its weights."""
    zeros = t.op("ConstantOfShape", [size], value=ir.Tensor(np.zeros(1, dtype)))
    if weights is None:
        weights = t.op("Expand", [np.asarray(1, dtype), t.op("Shape", [index])])
    return t.op("ScatterElements", [zeros, index, t.cast(weights, dtype)], reduction="add")


@op("Bincount")
def bincount(t: Tape, x: Val, size: Val, weights: Val) -> Val:
    """Weights added up by number, for the numbers below size; larger ones do not count."""
    index, limit = t.cast(x, INT64), t.cast(size, INT64)
    dtype = t.dtype(weights)
    known = t.op("Less", [index, limit])
    index = t.op("Where", [known, index, np.asarray(0)])
    weights = t.op("Where", [known, weights, np.asarray(0, dtype)])
    return counted(t, index, t.op("Reshape", [limit, ONE]), weights, dtype)


@op("BincountExt")
def bincount_ext(t: Tape, x: Val, weights: Val = None, minlength: Val = 0) -> Val:
    """How often each number occurs, up to the largest one that does."""
    index = t.cast(x, INT64)
    least = np.asarray([int(number(minlength, "minlength"))])
    beyond = t.op("Add", [t.op("ReduceMax", [index], keepdims=1), ONE])
    dtype = INT64 if weights is None else t.result_dtype(weights)
    return counted(t, index, t.op("Max", [beyond, least]), weights, dtype)


@op("Histogram", "HistcExt")
def histogram(t: Tape, x: Val, bins: Val = 100, min: Val = 0.0, max: Val = 0.0) -> Val:
    """Counts in equal bins between two bounds, or the extremes of x where those are equal."""
    size = bounded(int(number(bins, "bins")), "bins", MAX_TABLE)
    low, high = (float(number(v, "bound")) for v in (min, max))
    values = as_float(t, flat(t, x))
    dtype = t.dtype(values)
    if low == high:
        least, most = (t.op(f"Reduce{name}", [values], keepdims=0) for name in ("Min", "Max"))
        flat_range = t.op("Equal", [least, most])  # all alike: a bin of width one on either side
        step = t.cast(flat_range, dtype)
        least, most = t.op("Sub", [least, step]), t.op("Add", [most, step])
    else:
        least, most = np.asarray(low, dtype), np.asarray(high, dtype)
    share = t.op("Div", [t.op("Sub", [values, least]), t.op("Sub", [most, least])])
    place = t.op("Floor", [t.op("Mul", [share, np.asarray(size, dtype)])])
    last = np.asarray(size - 1, dtype)
    inside = t.op(
        "And", [t.op("GreaterOrEqual", [values, least]), t.op("LessOrEqual", [values, most])]
    )
    index = t.cast(t.op("Clip", [place, np.asarray(0, dtype), last]), INT64)
    usual = INT32 if t.primitive == "Histogram" else dtype
    wanted = t.result_dtype(np.empty(0, usual))
    return counted(t, index, t.int64s([size]), t.cast(inside, wanted), wanted)
