"""Taking elements out and putting them in: slices, gathers, scatters."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops.arguments import axis_of, elements, number
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import MAX_TABLE, Tape, bounded

_FIRST, _LAST = np.iinfo(np.int64).min, np.iinfo(np.int64).max  # ONNX clamps them to the axis


def sliced(t: Tape, x: Val, cuts: dict[int, tuple[Val, Val, int]]) -> Val:
    """One ONNX Slice of {axis: (start, end, step)}; nothing at all where every cut is whole."""
    cuts = {a: c for a, c in cuts.items() if c != (0, _LAST, 1)}
    if not cuts:
        return x
    starts, ends, steps = (t.int64s(column) for column in zip(*cuts.values(), strict=True))
    return t.op("Slice", [x, starts, ends, t.int64s(list(cuts)), steps])


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
    cuts: dict[int, tuple[Val, Val, int]] = {}
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
                cuts[axis] = bounds(starts[k], stops[k], steps[k], *first)
            axis, place = axis + 1, place + 1
    y = sliced(t, x, cuts)
    if added:
        y = t.op("Unsqueeze", [y, np.asarray(added)])
    return t.op("Squeeze", [y, np.asarray(squeezed)]) if squeezed else y


def bounds(start: Val, stop: Val, step: Val, no_start: int, no_stop: int) -> tuple[Val, Val, int]:
    """One entry of a strided slice; masked ends are open, which depends on the direction."""
    if isinstance(step, ir.Value):
        raise UnsupportedOpError("StridedSlice with a step computed at run time is not supported")
    if no_start:
        start = 0 if step > 0 else _LAST
    if no_stop:
        stop = _LAST if step > 0 else _FIRST
    return start, stop, step


def one_element(t: Tape, start: Val) -> tuple[Val, Val, int]:
    """The bounds that keep just element `start`; -1 has no end that could be named start + 1."""
    if isinstance(start, ir.Value):
        after = t.op("Add", [t.cast(start, np.dtype(np.int64)), np.asarray(1)])
        is_last = t.op("Equal", [after, np.asarray(0)])
        return start, t.op("Where", [is_last, np.asarray(_LAST), after]), 1
    return start, (_LAST if start == -1 else start + 1), 1


@op("Slice")
def slice_(t: Tape, x: Val, begin: Val, size: Val) -> Val:
    """Size -1 goes to the end."""
    cuts: dict[int, tuple[Val, Val, int]] = {}
    for axis, (start, length) in enumerate(zip(elements(t, begin), elements(t, size), strict=True)):
        if isinstance(start, ir.Value) or isinstance(length, ir.Value):
            raise UnsupportedOpError("Slice with bounds computed at run time is not supported")
        cuts[axis] = (start, _LAST if length == -1 else start + length, 1)
    return sliced(t, x, cuts)


@op("SliceExt")
def slice_ext(t: Tape, x: Val, dim: Val, start: Val, end: Val, step: Val = 1) -> Val:
    """One axis."""
    return sliced(t, x, {axis_of(t, x, dim): (start, end, int(number(step, "step")))})


op("SliceExtView", is_view=True)(slice_ext)


@op("Narrow", is_view=False)
def narrow(t: Tape, x: Val, dim: Val, start: Val, length: Val) -> Val:
    """`length` elements of one axis from `start` on."""
    first, count = int(number(start, "start")), int(number(length, "length"))
    last = first + count
    return sliced(
        t, x, {axis_of(t, x, dim): (first, _LAST if first < 0 and last == 0 else last, 1)}
    )


op("NarrowView", is_view=True)(narrow)


@op("SelectExt")
def select_ext(t: Tape, x: Val, dim: Val, index: Val) -> Val:
    """One element of an axis, which vanishes."""
    return t.op("Gather", [x, t.cast(index, np.dtype(np.int64))], axis=axis_of(t, x, dim))


op("SelectExtView", is_view=True)(select_ext)


@op("ReverseV2")
def reverse(t: Tape, x: Val, *, axis: Val) -> Val:
    """Axes run backwards."""
    return sliced(t, x, {axis_of(t, x, a): (_LAST, _FIRST, -1) for a in elements(t, axis)})


@op("Gather", "GatherV2")
def gather(t: Tape, x: Val, indices: Val, axis: Val, *, batch_dims: Val = 0) -> Val:
    """Rows of an axis by number."""
    if number(batch_dims, "batch_dims"):
        raise UnsupportedOpError("Gather with batch_dims is not supported")
    return t.op("Gather", [x, integer(t, indices)], axis=axis_of(t, x, axis))


@op("GatherD")
def gather_d(t: Tape, x: Val, dim: Val, index: Val) -> Val:
    """One element of an axis per place; the axis is the second argument."""
    return t.op("GatherElements", [x, integer(t, index)], axis=axis_of(t, x, dim))


@op("GatherNd")
def gather_nd(t: Tape, x: Val, indices: Val) -> Val:
    """Elements or slices by coordinates."""
    return t.op("GatherND", [x, t.cast(indices, np.dtype(np.int64))])


def integer(t: Tape, indices: Val) -> Val:
    """Indices in a type that ONNX takes."""
    known = t.dtype(indices)
    wanted = known if known in (np.int32, np.int64) else np.dtype(np.int64)
    return t.cast(indices, wanted)


@op("IndexSelect")
def index_select(t: Tape, x: Val, dim: Val, index: Val) -> Val:
    """Rows of an axis by number."""
    return t.op("Gather", [x, integer(t, index)], axis=axis_of(t, x, dim))


@op("TensorScatterUpdate")
def tensor_scatter_update(t: Tape, x: Val, indices: Val, updates: Val) -> Val:
    """x with the named places replaced."""
    return t.op("ScatterND", [x, t.cast(indices, np.dtype(np.int64)), updates])


@op("OneHot")
def one_hot(t: Tape, indices: Val, depth: Val, on: Val, off: Val, *, axis: Val = -1) -> Val:
    """`on` at the index, `off` elsewhere; an index outside gives a row of `off` alone."""
    size = bounded(int(number(depth, "depth")), "classes", MAX_TABLE)
    dtype = t.result_dtype(on)
    along = int(number(axis, "axis")) % (t.rank(indices) + 1)
    wanted = t.op("Unsqueeze", [t.cast(indices, np.dtype(np.int64)), np.asarray([along])])
    shape = [size if i == along else 1 for i in range(t.rank(indices) + 1)]
    hit = t.op("Equal", [wanted, np.arange(size).reshape(shape)])
    return t.op("Where", [hit, t.cast(on, dtype), t.cast(off, dtype)])
