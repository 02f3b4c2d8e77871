"""Shape and order of elements, and repeating them, as MindSpore primitives."""

from __future__ import annotations

import math
from typing import Any

from mindspore_lite.mindir.tensors import MAX_RANK
from mindspore_lite.ops.to_mindir.table import NoEquivalentError, back
from mindspore_lite.ops.to_mindir.writer import Made, MindirWriter, Operand


@back("Identity")
def identity(p: MindirWriter, x: Operand) -> Made:
    """The same numbers."""
    return p.call("TensorMove", x)


# --- shapes as numbers ----------------------------------------------------------------------------


@back("Shape")
def shape(p: MindirWriter, x: Operand, *, start: int = 0, end: int | None = None) -> Made:
    """A 1-D int64 tensor, or a stretch of it."""
    whole = p.call("TensorShape", x)
    if start == 0 and end is None:
        return whole
    first, last, _ = slice(start, end).indices(x.rank)
    return p.call("StridedSlice", whole, (first,), (max(first, last),), (1,), 0, 0, 0, 0, 0)


@back("Size")
def size(p: MindirWriter, x: Operand) -> Made:
    """The number of elements as a tensor; MindSpore's Size is a plain number."""
    return p.call("ReduceProd", p.call("TensorShape", x), (), False)


# --- the same elements in another shape -----------------------------------------------------------


def numbers(p: MindirWriter, x: Operand) -> Any:
    """A vector as the plain numbers that primitives want, known now or at run time."""
    if x.const is not None:
        return tuple(x.numbers())
    _ = x.fixed  # how many
    return p.call("TensorToTuple", x)


def known(shape: Operand) -> list[int | None]:
    """The numbers of a vector as far as they are known now; exporters join constants and sizes."""
    if shape.const is not None:
        return shape.numbers()
    node = shape.value.producer()
    if node is None or node.op_type != "Concat":
        return [None] * shape.fixed[0]
    return [d for value in node.inputs if value is not None for d in known(Operand(value))]


@back("Reshape")
def reshape(p: MindirWriter, x: Operand, shape: Operand, *, allowzero: int = 0) -> Made:
    """A 0 takes over the dim of x unless allowzero is set; to MindSpore it is a size of zero."""
    dims = known(shape)
    copied = [] if allowzero else [i for i, d in enumerate(dims) if d == 0]
    p.require(all(i < x.rank for i in copied), "a 0 beyond the axes")
    for i in copied:
        dims[i] = x.shape[i]
    if dims.count(None) == 1 and all(d is None or d > 0 for d in dims):
        dims[dims.index(None)] = -1  # follows from the others
    if None not in dims:
        return p.call("Reshape", x, tuple(dims))
    own: Any = p.call("Shape", x) if copied else None
    given: Any = p.call("TensorToTuple", shape) if shape.const is None else None
    found: list[Any] = [
        p.item(own if i in copied else given, i) if d is None else d for i, d in enumerate(dims)
    ]
    # the attribute is for our own reader: MindSpore takes every 0 for a size
    return p.call("Reshape", x, p.tuple(found), allowzero=allowzero)


@back("Flatten")
def flatten(p: MindirWriter, x: Operand, *, axis: int = 1) -> Made:
    """Two axes: those before `axis` in one, and the rest."""
    at = axis + x.rank if axis < 0 else axis
    if at == 1 and x.rank > 1:
        return p.call("Flatten", x)
    head, tail = x.shape[:at], x.shape[at:]
    if None not in head:
        return p.call("Reshape", x, (math.prod(d or 0 for d in head), -1))
    p.require(None not in tail, "sizes known only at run time")
    return p.call("Reshape", x, (-1, math.prod(d or 0 for d in tail)))


@back("Transpose")
def transpose(p: MindirWriter, x: Operand, *, perm: list[int] | None = None) -> Made:
    """Axes in a new order, the reverse one if none is given."""
    reverse = range(x.rank)[::-1]
    return p.call("Transpose", x, tuple(perm or reverse))


@back("Squeeze")
def squeeze(p: MindirWriter, x: Operand, axes: Operand | None = None) -> Made:
    """Axes of size 1 removed; () means all of them."""
    return p.call("Squeeze", x, () if axes is None else tuple(axes.numbers()))


@back("Unsqueeze")
def unsqueeze(p: MindirWriter, x: Operand, axes: Operand) -> Made:
    """New axes of size 1; they are numbers of the result's axes."""
    rank = x.rank + len(axes.numbers())
    p.require(rank <= MAX_RANK, f"more than {MAX_RANK} axes")
    made: Any = x
    for axis in sorted(axis % rank for axis in axes.numbers()):
        made = p.call("ExpandDims", made, axis)
    return p.value(made)


# --- repeating ------------------------------------------------------------------------------------


@back("Expand")
def expand(p: MindirWriter, x: Operand, shape: Operand) -> Made:
    """Both shapes may stretch each other; MindSpore wants the result's, or -1 for x's own."""
    wanted = known(shape)
    rank = max(len(wanted), x.rank)
    own = [*[1] * (rank - x.rank), *x.shape]
    dims = [*[1] * (rank - len(wanted)), *wanted]
    dims = [(-1 if have is None else have) if want == 1 else want
            for have, want in zip(own, dims, strict=True)]  # fmt: skip
    if None not in dims:
        return p.call("BroadcastTo", x, tuple(dims))
    given, front = p.call("TensorToTuple", shape), rank - len(wanted)
    items = [p.item(given, i - front) if d is None else d for i, d in enumerate(dims)]
    return p.call("BroadcastTo", x, p.tuple(items))


@back("Tile")
def tile(p: MindirWriter, x: Operand, repeats: Operand) -> Made:
    """Repeated along each axis."""
    return p.call("Tile", x, numbers(p, repeats))


# --- joining and cutting --------------------------------------------------------------------------


@back("Concat")
def concat(p: MindirWriter, *inputs: Operand, axis: int) -> Made:
    """Joined along an axis."""
    if len(inputs) == 1:
        return p.call("TensorMove", *inputs)
    return p.call("Concat", p.tuple(inputs), axis % inputs[0].rank)


@back("Split")
def split(
    p: MindirWriter,
    x: Operand,
    sizes: Operand | None = None,
    *,
    axis: int = 0,
    num_outputs: int | None = None,
) -> Any:
    """Equal parts, or parts of given sizes."""
    along, count = axis % x.rank, len(p.outputs)
    if count == 1:
        return p.call("TensorMove", x)
    lengths = _lengths(x, sizes, along, count)
    if len(set(lengths)) == 1:
        parts = p.call("Split", x, along, count)
    else:
        parts = p.call("SplitWithSize", x, tuple(lengths), along)
    return tuple(p.item(parts, i) for i in range(count))


def _lengths(x: Operand, sizes: Operand | None, axis: int, count: int) -> list[int]:
    if sizes is not None:
        return list(sizes.numbers())
    length = x.shape[axis]
    if length is None:
        raise NoEquivalentError("equal parts of a size known only at run time")
    each = -(-length // count)
    return [each] * (count - 1) + [length - each * (count - 1)]


@back("ReverseSequence")
def reverse_sequence(
    p: MindirWriter, x: Operand, lengths: Operand, *, batch_axis: int = 1, time_axis: int = 0
) -> Made:
    """The first elements of an axis run backwards, as many as each batch entry says."""
    return p.call("ReverseSequence", x, lengths, seq_dim=time_axis, batch_dim=batch_axis)


@back("Trilu")
def trilu(p: MindirWriter, x: Operand, k: Operand | None = None, *, upper: int = 1) -> Made:
    """One triangle of each matrix."""
    diagonal = 0 if k is None else k.number()
    if upper:
        return p.call("Triu", x, diagonal)
    return p.call("Tril", x, diagonal=diagonal)
