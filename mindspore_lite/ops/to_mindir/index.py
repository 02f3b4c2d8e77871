"""Taking elements out by number, coordinates or truth values, as MindSpore primitives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mindspore_lite.ops.to_mindir.table import back
from mindspore_lite.ops.to_mindir.writer import MAX_MADE_UP, Made, MindirWriter, Operand


def from_front(x: Operand, indices: Operand, axis: int) -> Any:
    """Constant indices counted from the front, where the size of the axis is known."""
    held, size = indices.const, x.shape[axis]
    if held is None or size is None or not (held < 0).any():
        return indices
    return np.where(held < 0, held + size, held).astype(held.dtype)


@back("Gather")
def gather(p: MindirWriter, x: Operand, indices: Operand, *, axis: int = 0) -> Made:
    """Rows of an axis by number."""
    along = axis % x.rank
    return p.call("Gather", x, from_front(x, indices, along), along, 0)


@back("GatherElements")
def gather_elements(p: MindirWriter, x: Operand, indices: Operand, *, axis: int = 0) -> Made:
    """One element of an axis per place."""
    along = axis % x.rank
    return p.call("GatherD", x, along, from_front(x, indices, along))


@back("GatherND")
def gather_nd(p: MindirWriter, x: Operand, indices: Operand, *, batch_dims: int = 0) -> Made:
    """Elements or slices by coordinates; batch axes become coordinates of their own."""
    if batch_dims == 0:
        return p.call("GatherNd", x, indices)
    lead = indices.fixed[:batch_dims]
    p.require(math.prod(indices.fixed) <= MAX_MADE_UP, "a batch of too many elements")
    grid = np.stack(np.meshgrid(*[np.arange(n) for n in lead], indexing="ij"), -1)
    grid = grid.reshape(*lead, *[1] * (indices.rank - 1 - batch_dims), batch_dims)
    own = np.broadcast_to(grid, (*indices.fixed[:-1], batch_dims))
    return p.call(
        "GatherNd", x, p.call("Concat", p.tuple([np.array(own), indices]), indices.rank - 1)
    )


@back("Compress")
def compress(p: MindirWriter, x: Operand, condition: Operand, *, axis: int | None = None) -> Made:
    """The rows of an axis, or the elements, where a condition holds; it may be shorter."""
    source: Any = x
    if axis is None:
        source, axis = p.call("Reshape", x, (-1,)), 0
    places = p.call("Reshape", p.call("NonZero", condition), (-1,))
    return p.call("Gather", source, places, axis % x.rank, 0)


@back("NonZero")
def non_zero(p: MindirWriter, x: Operand) -> Made:
    """Coordinates, one column for each element; MindSpore makes rows."""
    p.require(x.rank > 0, "a tensor without axes")
    return p.call("Transpose", p.call("NonZero", x), (1, 0))
