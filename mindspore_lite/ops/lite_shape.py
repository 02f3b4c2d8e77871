"""converter_lite's ops that move, repeat, cut or make elements."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops.arguments import axis_of, elements, ints
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape, bounded, constant_of, dtype_argument

_INT64 = np.dtype(np.int64)
_FIRST, _LAST = np.iinfo(np.int64).min, np.iinfo(np.int64).max  # ONNX clamps them to the axis
_PAD_MODES = {0: "constant", 1: "reflect", 3: "edge"}
MAX_FILL = 2**28  # elements of a tensor that the file asks for by its shape alone; guess, 1 GiB


def cut(
    t: Tape, x: Val, axes: list[int], starts: list[Val], ends: list[Val], steps: list[Val]
) -> Val:
    """One ONNX Slice of bounds that may be known only at run time."""
    inputs = [x, t.int64s(starts), t.int64s(ends), t.int64s(axes), t.int64s(steps)]
    return t.op("Slice", inputs)


def new_shape(t: Tape, shape: Val) -> Val:
    """A shape argument as a 1-D int64 tensor."""
    if not isinstance(shape, tuple | list) and constant_of(shape) is None:
        return t.cast(shape, _INT64)
    dims = elements(t, shape)
    bounded(math.prod(d for d in dims if isinstance(d, int)), "elements of a tensor", MAX_FILL)
    return t.int64s(dims)


@op("PadFusion")
def pad_fusion(
    t: Tape,
    x: Val,
    paddings: Val,
    value: Val = None,
    *,
    padding_mode: int = 0,
    constant_value: float = 0.0,
) -> Val:
    """Paddings are (before, after) per axis."""
    is_plain = isinstance(paddings, tuple | list)
    known = np.asarray(paddings) if is_plain else constant_of(paddings)
    if known is not None:
        bounded(int(known.max(initial=0)), "elements around a tensor", MAX_FILL)
        if known.min(initial=0) < 0:
            raise UnsupportedOpError(f"PadFusion with negative paddings {known.tolist()}")
    if padding_mode == 2 and known is not None:
        return _mirrored(t, x, known.reshape(-1, 2))
    if padding_mode not in _PAD_MODES:
        raise UnsupportedOpError(f"PadFusion of mode {padding_mode} with these paddings")
    if known is not None:
        pads: Val = known.astype(np.int64).reshape(-1, 2).T.reshape(-1)
    else:
        rows = t.op("Reshape", [t.cast(paddings, _INT64), [-1, 2]])
        pads = t.op("Reshape", [t.op("Transpose", [rows], perm=[1, 0]), [-1]])
    if padding_mode:
        return t.op("Pad", [x, pads], mode=_PAD_MODES[padding_mode])
    return t.op("Pad", [x, pads, t.cast(constant_value if value is None else value, t.dtype(x))])


def _mirrored(t: Tape, x: Val, pairs: np.ndarray) -> Val:
    """The border itself is repeated, which ONNX has no mode for."""
    for axis, (before, after) in enumerate(pairs.tolist()):
        parts = [x]
        if before:
            parts.insert(0, cut(t, x, [axis], [before - 1], [_FIRST], [-1]))
        if after:
            parts.append(cut(t, x, [axis], [_LAST], [-after - 1], [-1]))
        x = t.op("Concat", parts, axis=axis) if len(parts) > 1 else x
    return x


@op("SliceFusion")
def slice_fusion(t: Tape, x: Val, begin: Val, size: Val, *, axes: Val = None) -> Val:
    """Size -1 goes to the end."""
    starts, lengths = elements(t, begin), elements(t, size)
    named = range(len(starts)) if axes is None else ints(axes, "axes")
    ends = [_end(t, start, length) for start, length in zip(starts, lengths, strict=True)]
    return cut(t, x, [axis_of(t, x, a) for a in named], starts, ends, [1] * len(starts))


def _end(t: Tape, start: Val, length: Val) -> Val:
    if not isinstance(length, ir.Value):
        if length == -1:
            return _LAST
        if not isinstance(start, ir.Value):
            return start + length
    first, count = t.cast(start, _INT64), t.cast(length, _INT64)
    is_open = t.op("Equal", [count, np.asarray(-1)])
    return t.op("Where", [is_open, np.asarray(_LAST), t.op("Add", [first, count])])


@op("TileFusion")
def tile_fusion(t: Tape, x: Val, multiples: Val, *, dims: Val = None) -> Val:
    """Repeats along the named axes, or along all of them."""
    counts, rank = elements(t, multiples), t.rank(x)
    named = None if dims is None else ints(dims, "dims")
    if named is not None and len(named) == len(counts):
        repeats: list[Val] = [1] * rank
        for axis, count in zip(named, counts, strict=True):
            repeats[axis_of(t, x, axis)] = count
        counts = repeats
    bounded(math.prod(c for c in counts if isinstance(c, int)), "repeats", MAX_FILL)
    if len(counts) != rank:
        raise UnsupportedOpError(f"TileFusion of {rank} axes with {len(counts)} repeats")
    return t.op("Tile", [x, t.int64s(counts)])


@op("Crop")
def crop(t: Tape, x: Val, like: Val, *, axis: int = 2, offsets: Val = (0,)) -> Val:
    """The axes from one on, cut to the size of another tensor; one offset serves them all."""
    first, rank = axis_of(t, x, axis), t.rank(x)
    starts = list(ints(offsets, "offsets"))
    starts = starts * (rank - first) if len(starts) == 1 else starts
    sizes = t.op("Shape", [like], start=first)
    ends = t.op("Add", [sizes, np.asarray(starts)])
    return t.op("Slice", [x, np.asarray(starts), ends, np.arange(first, rank)])


@op("Unsqueeze")
def unsqueeze(t: Tape, x: Val, axis: Val) -> Val:
    """New axes of size 1."""
    return t.op("Unsqueeze", [x, np.asarray(ints(axis, "axis"))])


@op("Splice")
def splice(t: Tape, x: Val, *, context: Val, forward_indexes: Val, output_dim: int = 0) -> Val:
    """Each row of the result is several rows of x side by side."""
    rows, width = ints(forward_indexes, "forward_indexes"), len(ints(context, "context"))
    if not width or len(rows) % width:
        raise UnsupportedOpError(f"Splice of {len(rows)} rows, {width} at a time")
    axis = t.rank(x) - 2
    picked = t.op("Gather", [x, np.asarray(rows)], axis=axis)
    shape = [t.op("Shape", [x], end=axis), np.asarray([len(rows) // width, -1])]
    return t.op("Reshape", [picked, t.op("Concat", shape, axis=0)])


@op("ConstantOfShape")
def constant_of_shape(t: Tape, shape: Val, *, value: Val = (0.0,), data_type: Val = 43) -> Val:
    """One number in every place."""
    dtype = dtype_argument(data_type).numpy
    held = value[0] if isinstance(value, tuple | list) else value
    number = np.asarray([held]).astype(dtype)
    return t.op("ConstantOfShape", [new_shape(t, shape)], value=ir.Tensor(number))


@op("Where")
def where(t: Tape, condition: Val, x: Val = None, y: Val = None) -> Val:
    """x or y by the condition; alone, the coordinates where it holds, one row each."""
    truths = t.cast(condition, np.dtype(np.bool_))
    if x is not None:
        return t.op("Where", [truths, x, y])
    rows = t.op("Transpose", [t.op("NonZero", [truths])], perm=[1, 0])
    return t.cast(rows, t.result_dtype(np.zeros(0, np.int32)))


@op("NonMaxSuppression")
def non_max_suppression(
    t: Tape,
    boxes: Val,
    scores: Val,
    most: Val = None,
    iou: Val = None,
    score: Val = None,
    *,
    center_point_box: int = 0,
) -> Val:
    """-> int32 rows of (batch, class, box)."""
    float32 = np.dtype(np.float32)
    limits = [
        None if v is None else t.op("Reshape", [t.cast(v, dtype), [1]])
        for v, dtype in ((most, _INT64), (iou, float32), (score, float32))
    ]
    kept = t.op("NonMaxSuppression", [boxes, scores, *limits], center_point_box=center_point_box)
    return t.cast(kept, t.result_dtype(np.zeros(0, np.int32)))


@op("EmbeddingLookupFusion")
def embedding_lookup_fusion(t: Tape, table: Val, ids: Val, *, max_norm: float = 0.0) -> Val:
    """Rows of a table by number."""
    if max_norm:
        raise UnsupportedOpError("EmbeddingLookupFusion with max_norm is not supported")
    return t.op("Gather", [table, ids], axis=0)


@op("ScatterElements")
def scatter_elements(t: Tape, x: Val, indices: Val, updates: Val, *, axis: int = 0) -> Val:
    """x with one element of an axis replaced per place."""
    return t.op("ScatterElements", [x, indices, updates], axis=axis_of(t, x, axis))


@op("InvertPermutation")
def invert_permutation(t: Tape, x: Val) -> Val:
    """Where each number stands."""
    _, places = t.op("TopK", [x, t.op("Shape", [x])], outputs=2, axis=0, largest=0)
    return t.cast(places, t.dtype(x))
