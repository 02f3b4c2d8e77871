"""Slices in every notation, rolling, reversing."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mindspore_lite.ops.arguments import axis_of, elements, ints, number
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import MAX_TABLE, Tape, bounded

FIRST, LAST = np.iinfo(np.int64).min, np.iinfo(np.int64).max  # ONNX clamps them to the axis
Cut = tuple[Val, Val, Val]  # start, end, step


def sliced(t: Tape, x: Val, cuts: dict[int, Cut]) -> Val:
    """One ONNX Slice of {axis: (start, end, step)}; nothing at all where every cut is whole."""
    cuts = {a: c for a, c in cuts.items() if any(isinstance(v, ir.Value) for v in c) or c != _WHOLE}
    if not cuts:
        return x
    starts, ends, steps = (t.int64s(column) for column in zip(*cuts.values(), strict=True))
    return t.op("Slice", [x, starts, ends, t.int64s(list(cuts)), steps])


_WHOLE: Cut = (0, LAST, 1)


@op("StridedSlice")
def strided_slice(
    t: Tape,
    x: Val,
    begin: Val,
    end: Val,
    strides: Val,
    *,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> Val:
    """x[b0:e0:s0, ...]; bit k of a mask speaks of entry k, bits beyond the entries mean nothing."""
    starts, stops, steps = elements(t, begin), elements(t, end), elements(t, strides)
    count = len(starts)
    new = [k for k in range(count) if new_axis_mask >> k & 1]
    cuts: dict[int, Cut] = {}
    squeezed: list[int] = []
    added: list[int] = []
    axis = place = 0  # in x, and in the result before squeezing
    for k in range(count):
        if ellipsis_mask >> k & 1:
            skipped = t.rank(x) - (count - len(new) - 1)
            axis, place = axis + skipped, place + skipped
        elif k in new:
            added.append(place)
            place += 1
        else:
            if shrink_axis_mask >> k & 1:
                squeezed.append(place)
                cuts[axis] = one_element(t, starts[k])
            else:
                first = (begin_mask >> k & 1, end_mask >> k & 1)
                cuts[axis] = bounds(t, starts[k], stops[k], steps[k], *first)
            axis, place = axis + 1, place + 1
    y = sliced(t, x, cuts)
    if added:
        y = t.op("Unsqueeze", [y, np.asarray(added)])
    return t.op("Squeeze", [y, np.asarray(squeezed)]) if squeezed else y


def bounds(t: Tape, start: Val, stop: Val, step: Val, no_start: int, no_stop: int) -> Cut:
    """One entry of a strided slice; masked ends are open, which depends on the direction."""
    if isinstance(step, ir.Value):
        step = t.cast(step, np.dtype(np.int64))
        forward = t.op("Greater", [step, np.asarray(0)]) if no_start or no_stop else None
        if no_start:
            start = t.op("Where", [forward, np.asarray(0), np.asarray(LAST)])
        if no_stop:
            stop = t.op("Where", [forward, np.asarray(LAST), np.asarray(FIRST)])
        return start, stop, step
    if no_start:
        start = 0 if step > 0 else LAST
    if no_stop:
        stop = LAST if step > 0 else FIRST
    return start, stop, step


def one_element(t: Tape, start: Val) -> Cut:
    """The bounds that keep just element `start`; -1 has no end that could be named start + 1."""
    return stretch(t, start, 1)


def stretch(t: Tape, start: Val, length: Val) -> Cut:
    """`length` elements from `start` on; -1 goes to the end, a negative start counts from there."""
    if not isinstance(start, ir.Value) and not isinstance(length, ir.Value):
        to_end = length == -1 or (start < 0 and start + length >= 0)
        return start, (LAST if to_end else start + length), 1
    first, count = (t.cast(v, np.dtype(np.int64)) for v in (start, length))
    stop = t.op("Add", [first, count])
    wraps = t.op("And", [t.op("Less", [first, np.asarray(0)]),
                         t.op("GreaterOrEqual", [stop, np.asarray(0)])])  # fmt: skip
    if isinstance(length, ir.Value):
        wraps = t.op("Or", [wraps, t.op("Equal", [count, np.asarray(-1)])])
    elif length == -1:
        return start, LAST, 1
    return start, t.op("Where", [wraps, np.asarray(LAST), stop]), 1


@op("Slice")
def slice_(t: Tape, x: Val, begin: Val, size: Val) -> Val:
    """Size -1 goes to the end."""
    pairs = zip(elements(t, begin), elements(t, size), strict=True)
    return sliced(t, x, {axis: stretch(t, *pair) for axis, pair in enumerate(pairs)})


@op("SliceExt")
def slice_ext(t: Tape, x: Val, dim: Val, start: Val, end: Val, step: Val = 1) -> Val:
    """One axis."""
    cut = bounds(t, start, end, step, start is None, end is None)
    return sliced(t, x, {axis_of(t, x, dim): cut})


op("SliceExtView", is_view=True)(slice_ext)


@op("Narrow")
def narrow(t: Tape, x: Val, dim: Val, start: Val, length: Val) -> Val:
    """`length` elements of one axis from `start` on."""
    return sliced(t, x, {axis_of(t, x, dim): stretch(t, start, length)})


op("NarrowView", is_view=True)(narrow)


@op("SelectExt")
def select_ext(t: Tape, x: Val, dim: Val, index: Val) -> Val:
    """One element of an axis, which vanishes."""
    return t.op("Gather", [x, t.cast(index, np.dtype(np.int64))], axis=axis_of(t, x, dim))


op("SelectExtView", is_view=True)(select_ext)


@op("SelectView", is_view=True)
def select_view(t: Tape, x: Val, index: Val, axis: Val) -> Val:
    """One element of an axis, which vanishes; the axis comes last."""
    return select_ext(t, x, axis, index)


@op("ReverseV2")
def reverse(t: Tape, x: Val, *, axis: Val) -> Val:
    """Axes run backwards."""
    return sliced(t, x, {axis_of(t, x, a): (LAST, FIRST, -1) for a in elements(t, axis)})


@op("ReverseSequence")
def reverse_sequence(t: Tape, x: Val, seq_lengths: Val, *, seq_dim: Val, batch_dim: Val = 0) -> Val:
    """The first elements of an axis run backwards, as many as each batch entry says."""
    seq, batch = axis_of(t, x, seq_dim), axis_of(t, x, batch_dim)
    lengths = t.cast(seq_lengths, np.dtype(np.int64))
    if {seq, batch} == {0, 1}:
        return t.op("ReverseSequence", [x, lengths], time_axis=seq, batch_axis=batch)
    others = [axis for axis in range(t.rank(x)) if axis not in (seq, batch)]
    order = [batch, seq, *others]  # ONNX knows axes 0 and 1 alone
    y = t.op("Transpose", [x], perm=order)
    y = t.op("ReverseSequence", [y, lengths], time_axis=1, batch_axis=0)
    return t.op("Transpose", [y], perm=[int(i) for i in np.argsort(order)])


@op("Roll")
def roll(
    t: Tape, x: Val, *, shifts: Val = None, dims: Val = None, shift: Val = None, axis: Val = None
) -> Val:
    """Elements moved on, those beyond the end coming in at the front; old files say shift, axis."""
    moves = ints(shift if shifts is None else shifts, "shifts")
    along = axis if dims is None else dims
    if along is None or along in ((), []):
        flat = rolled(t, t.op("Reshape", [x, np.asarray([-1])]), 0, sum(moves))
        return t.op("Reshape", [flat, t.op("Shape", [x])])
    axes = ints(along, "dims")
    for by, one in zip(moves * (len(axes) if len(moves) == 1 else 1), axes, strict=True):
        x = rolled(t, x, axis_of(t, x, one), by)
    return x


def rolled(t: Tape, x: Val, axis: int, by: int) -> Val:
    """One axis."""
    length = t.shape(x)[axis]
    if length is not None:
        start: Val = -by % length if length else 0
        if start == 0:
            return x
    else:
        size = t.op("Gather", [t.op("Shape", [x]), np.asarray(axis)])
        start = t.op("Mod", [np.asarray(-by), size])
    tail, head = sliced(t, x, {axis: (start, LAST, 1)}), sliced(t, x, {axis: (0, start, 1)})
    return t.op("Concat", [tail, head], axis=axis)


@op("AsStrided", is_view=True)
def as_strided(t: Tape, x: Val, size: Val, stride: Val, storage_offset: Val = 0) -> Val:
    """Elements of the flat tensor by strides of their own."""
    sizes, steps = ints(size, "size"), ints(stride, "stride")
    places = np.asarray(number(storage_offset, "storage_offset"), np.int64)
    for length, step in zip(sizes, steps, strict=True):
        bounded(places.size * length, "elements of a strided view", MAX_TABLE)
        places = places[..., None] + np.arange(length) * step
    return t.op("Gather", [t.op("Reshape", [x, np.asarray([-1])]), places], axis=0)
