"""Taking elements out by number, by coordinates or by truth values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops.arguments import axis_of, elements, number
from mindspore_lite.ops.shape import moved
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape

_I64 = np.dtype(np.int64)


def integer(t: Tape, indices: Val) -> Val:
    """Indices in a type that ONNX takes."""
    known = t.dtype(indices)
    return t.cast(indices, known if known in (np.int32, np.int64) else _I64)


@op("Gather", "GatherV2")
def gather(t: Tape, x: Val, indices: Val, axis: Val, *, batch_dims: Val = 0) -> Val:
    """Rows of an axis by number; the first batch_dims axes go in step."""
    along, batch = axis_of(t, x, axis), int(number(batch_dims, "batch_dims"))
    if batch == 0:
        return t.op("Gather", [x, integer(t, indices)], axis=along)
    rank = t.rank(indices)
    batch %= rank
    if batch > along:
        raise UnsupportedOpError(f"Gather with axis {along} before batch_dims {batch}")
    places = t.op("Unsqueeze", [t.cast(indices, _I64), np.asarray([-1])])
    y = t.op("GatherND", [moved(t, x, along, batch), places], batch_dims=batch)
    new = list(range(batch, rank))  # the axes of the indices, which belong where the axis was
    skipped = list(range(rank, rank + along - batch))
    if not new or not skipped:
        return y
    rest = range(rank + along - batch, t.rank(y))
    return t.op("Transpose", [y], perm=[*range(batch), *skipped, *new, *rest])


@op("GatherD")
def gather_d(t: Tape, x: Val, dim: Val, index: Val) -> Val:
    """One element of an axis per place; the axis is the second argument."""
    if t.rank(x) == 0:
        return t.op("Expand", [x, t.op("Shape", [index])])
    return t.op("GatherElements", [x, integer(t, index)], axis=axis_of(t, x, dim))


@op("GatherNd", "GatherNdExt")
def gather_nd(t: Tape, x: Val, indices: Val) -> Val:
    """Elements or slices by coordinates."""
    return t.op("GatherND", [x, t.cast(indices, _I64)])


@op("IndexSelect")
def index_select(t: Tape, x: Val, dim: Val, index: Val) -> Val:
    """Rows of an axis by number."""
    return t.op("Gather", [x, integer(t, index)], axis=axis_of(t, x, dim))


@op("Take")
def take(t: Tape, x: Val, index: Val) -> Val:
    """Elements of the flat tensor by number."""
    return t.op("Gather", [t.op("Reshape", [x, np.asarray([-1])]), integer(t, index)], axis=0)


@op("Embedding")
def embedding(
    t: Tape,
    ids: Val,
    table: Val,
    padding_idx: Val = None,
    max_norm: Val = None,
    norm_type: Val = 2.0,
    scale_grad_by_freq: Val = False,
) -> Val:
    """Rows of a table; what else it takes speaks of training."""
    if max_norm is not None:
        raise UnsupportedOpError("Embedding with max_norm changes its table, set it to None")
    return t.op("Gather", [table, integer(t, ids)], axis=0)


@op("EmbeddingLookup")
def embedding_lookup(t: Tape, table: Val, ids: Val, offset: Val = 0) -> Val:
    """Rows of a table that starts at row `offset` of a larger one; zeros for rows elsewhere."""
    rows = t.op("Sub", [t.cast(ids, _I64), t.cast(offset, _I64)])
    size = t.op("Gather", [t.op("Shape", [table]), np.asarray(0)])
    below, above = t.op("Less", [rows, np.asarray(0)]), t.op("GreaterOrEqual", [rows, size])
    outside = t.op("Or", [below, above])
    held = t.op("Gather", [table, t.op("Where", [outside, np.asarray(0), rows])], axis=0)
    wide = t.op("Unsqueeze", [outside, np.asarray([-1])])
    return t.op("Where", [wide, np.zeros((), t.dtype(table)), held])


@op("MaskedSelect")
def masked_select(t: Tape, x: Val, mask: Val) -> Val:
    """The elements where the mask holds, in one axis; both are broadcast to one shape."""
    if None in t.shape(x) or t.shape(x) != t.shape(mask):
        x = t.op("Expand", [x, t.op("Shape", [mask])])
        mask = t.op("Expand", [mask, t.op("Shape", [x])])
    return t.op("Compress", [x, t.op("Reshape", [mask, np.asarray([-1])])])


@op("UnravelIndex")
def unravel_index(t: Tape, indices: Val, dims: Val) -> Val:
    """-> [number of dims, ...]: coordinates of places in the flat tensor."""
    dtype = t.dtype(indices)
    left, found = t.cast(indices, _I64), []
    for dim in reversed(elements(t, dims)):
        size = t.cast(dim, _I64)
        found.append(t.op("Mod", [left, size]))
        left = t.op("Div", [left, size])
    rows = [t.op("Unsqueeze", [v, np.asarray([0])]) for v in reversed(found)]
    return t.cast(t.op("Concat", rows, axis=0), dtype)


# --- x[i, :, j]: several axes by index tensors --------------------------------------------------


@dataclass(frozen=True)
class Indexed:
    """A tensor prepared for indices: its indexed axes lie in front, in one."""

    flat: Val  # [product of the indexed axes, the other axes ...]
    places: Val  # in the first axis of flat
    order: list[int]  # axes of x as they lie before flattening
    shape: Val  # of x in that order
    first: int  # where the axes of the indices belong in a result of x[...]


def indexed(t: Tape, x: Val, by_axis: Mapping[int, Val]) -> Indexed:
    """Flatten the indexed axes of x, and the indices into places there."""
    axes, others = list(by_axis), [a for a in range(t.rank(x)) if a not in by_axis]
    dims = t.shape(x)
    whole = t.op("Shape", [x]) if None in dims else None

    def size(axis: int) -> Val:
        known = dims[axis]
        return known if known is not None else t.op("Gather", [whole, np.asarray(axis)])

    places: Val = None
    for axis, index in by_axis.items():
        length = t.cast(size(axis), _I64)
        below = t.op("Less", [index, np.asarray(0)])
        wrapped = t.op("Where", [below, t.op("Add", [index, length]), index])
        scaled = None if places is None else t.op("Mul", [places, length])
        places = wrapped if scaled is None else t.op("Add", [scaled, wrapped])
    order = [*axes, *others]
    turned = t.op("Transpose", [x], perm=order) if order != sorted(order) else x
    shape = t.int64s([size(a) for a in order])
    known = [dims[a] for a in axes]
    lead: Val = -1 if None in known else math.prod(d or 0 for d in known)
    flat = t.op("Reshape", [turned, t.int64s([lead, *(size(a) for a in others)])], allowzero=1)
    together = axes == list(range(axes[0], axes[0] + len(axes)))
    return Indexed(flat, places, order, shape, axes[0] if together else 0)


def axis_indices(t: Tape, x: Val, indices: Sequence[Val]) -> dict[int, Val]:
    """{axis: int64 index}; a mask speaks of as many axes as it has, None or 9 empty dims of one."""
    found: dict[int, Val] = {}
    axis = 0
    for index in indices:
        if index is None or (t.rank(index) == 9 and t.shape(index) == (0,) * 9):
            axis += 1
        elif t.dtype(index) in (np.bool_, np.uint8):
            rank = t.rank(index)
            rows = t.op("NonZero", [t.cast(index, np.dtype(np.bool_))])
            for k in range(rank):
                found[axis + k] = t.op("Gather", [rows, np.asarray(k)], axis=0)
            axis += rank
        else:
            found[axis] = t.cast(index, _I64)
            axis += 1
    if not found or max(found) >= t.rank(x):
        raise UnsupportedOpError(f"{len(indices)} indices for a tensor of {t.rank(x)} dims")
    return found


@op("Index", "InnerIndex")
def index_(t: Tape, x: Val, indices: Val) -> Val:
    """x[i, j, ...]: the indices are broadcast, and their axes stand where the indexed axes were."""
    by_axis = axis_indices(t, x, indices)
    if len(by_axis) == 1:
        ((axis, index),) = by_axis.items()
        return t.op("Gather", [x, index], axis=axis)
    prepared = indexed(t, x, by_axis)
    y = t.op("Gather", [prepared.flat, prepared.places], axis=0)
    count, first = t.rank(prepared.places), prepared.first
    if first == 0:
        return y
    before = range(count, count + first)  # the axes that lay in front of the indexed ones
    return t.op("Transpose", [y], perm=[*before, *range(count), *range(count + first, t.rank(y))])
