"""Shape, order and joining of elements; the numbers themselves stay as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops.arguments import axis_of, elements, ints, number, swapped
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape, bounded, dtype_argument


@op("Reshape")
def reshape(t: Tape, x: Val, shape: Val) -> Val:
    """A 0 in the shape is a size of zero, not 'as before'."""
    if isinstance(shape, tuple | list):
        dims = elements(t, shape)
        return t.op("Reshape", [x, t.int64s(dims)], allowzero=1 if 0 in dims else None)
    return t.op("Reshape", [x, t.cast(shape, np.dtype(np.int64))], allowzero=1)


@op("Flatten")
def flatten(t: Tape, x: Val) -> Val:
    """All axes but the first in one."""
    return t.op("Flatten", [x], axis=1)


@op("FlattenExt")
def flatten_ext(t: Tape, x: Val, start_dim: Val = 0, end_dim: Val = -1) -> Val:
    """A run of axes in one."""
    if t.rank(x) == 0:
        return t.op("Reshape", [x, np.asarray([1])])
    start, end = axis_of(t, x, start_dim), axis_of(t, x, end_dim)
    if start == end:
        return x
    head, tail = t.op("Shape", [x], end=start), t.op("Shape", [x], start=end + 1)
    return t.op("Reshape", [x, t.op("Concat", [head, np.asarray([-1]), tail], axis=0)])


@op("Transpose")
def transpose(t: Tape, x: Val, perm: Val) -> Val:
    """Axes in a new order."""
    return t.op("Transpose", [x], perm=[axis_of(t, x, p) for p in ints(perm, "perm")])


op("TransposeView", is_view=True)(transpose)


@op("TransposeExtView", is_view=True)
def transpose_ext(t: Tape, x: Val, dim0: Val, dim1: Val) -> Val:
    """Two axes exchanged."""
    return t.op("Transpose", [x], perm=swapped(t.rank(x), axis_of(t, x, dim0), axis_of(t, x, dim1)))


@op("ExpandDims")
def expand_dims(t: Tape, x: Val, axis: Val) -> Val:
    """A new axis of size 1."""
    return t.op("Unsqueeze", [x, np.asarray(ints(axis, "axis"))])


op("ExpandDimsView", is_view=True)(expand_dims)


@op("Squeeze")
def squeeze(t: Tape, x: Val, *, axis: Val = ()) -> Val:
    """Axes of size 1 removed; () means all of them."""
    axes = ints(axis, "axis")
    return t.op("Squeeze", [x, np.asarray(axes)] if axes else [x])


@op("Concat")
def concat(t: Tape, values: Val, *, axis: Val = 0) -> Val:
    """A tuple of tensors joined along an axis."""
    if len(values) == 1:
        return values[0]
    values = [t.cast(v, t.result_dtype(*values)) for v in values]
    return t.op("Concat", values, axis=axis_of(t, values[0], axis))


@op("Stack", "StackExt")
def stack(t: Tape, values: Val, *, axis: Val = 0, dim: Val = None) -> Val:
    """A tuple of tensors joined along a new axis."""
    along = int(number(axis if dim is None else dim, "axis"))
    along %= t.rank(values[0]) + 1
    rows = [t.op("Unsqueeze", [v, np.asarray([along])]) for v in values]
    return t.op("Concat", rows, axis=along)


@op("Split")
def split(t: Tape, x: Val, *, axis: Val = 0, output_num: Val = 1) -> Val:
    """-> a tuple of equal parts."""
    return parts(t, x, axis, count=int(number(output_num, "output_num")))


def parts(
    t: Tape, x: Val, axis: Val, count: int, sizes: list[int] | None = None
) -> tuple[Any, ...]:
    """The tensor cut along an axis, always as a tuple."""
    along = axis_of(t, x, axis)
    if count == 1:
        return (x,)
    if sizes is not None:
        return tuple(t.op("Split", [x, np.asarray(sizes)], outputs=count, axis=along))
    return tuple(t.op("Split", [x], outputs=count, axis=along, num_outputs=count))


@op("SplitWithSize")
def split_with_size(t: Tape, x: Val, sizes: Val, dim: Val = 0) -> Val:
    """-> a tuple of parts of the given sizes."""
    lengths = list(ints(sizes, "split sizes"))
    return parts(t, x, dim, len(lengths), lengths)


op("SplitWithSizeView", is_view=True)(split_with_size)


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
    return even_parts(t, x, along, -(-length // count))


op("ChunkView", is_view=True)(chunk)


def even_parts(t: Tape, x: Val, axis: int, step: int) -> tuple[Any, ...]:
    """Parts of `step` along an axis of known length."""
    length = t.shape(x)[axis]
    if length is None:
        raise UnsupportedOpError("splitting by size needs a fixed size on its axis")
    bounded(-(-length // step), "results of one operator")
    sizes = [min(step, length - at) for at in range(0, length, step)]
    return parts(t, x, axis, len(sizes), sizes)


@op("Unstack")
def unstack(t: Tape, x: Val, *, axis: Val = 0, num: Val = None) -> Val:
    """-> a tuple with one tensor per element of an axis, which vanishes."""
    along = axis_of(t, x, axis)
    count = t.shape(x)[along] if num is None else int(number(num, "num"))
    if count is None:
        raise UnsupportedOpError("Unstack needs a fixed size on its axis")
    pieces = parts(t, x, along, count)
    return tuple(t.op("Squeeze", [p, np.asarray([along])]) for p in pieces)


op("UnstackExtView", is_view=True)(unstack)


@op("Tile")
def tile(t: Tape, x: Val, reps: Val) -> Val:
    """Repeated along each axis; more repeats than axes add axes in front."""
    counts = elements(t, reps)
    missing = len(counts) - t.rank(x)
    if missing > 0:
        x = t.op("Unsqueeze", [x, np.asarray(range(missing))])
    return t.op("Tile", [x, t.int64s([1] * -missing + counts)])


@op("BroadcastTo")
def broadcast_to(t: Tape, x: Val, shape: Val) -> Val:
    """-1 keeps a dim."""
    dims = [1 if d == -1 else d for d in elements(t, shape)]
    return t.op("Expand", [x, t.int64s(dims)])


op("BroadcastToView", is_view=True)(broadcast_to)


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


@op("Pad")
def pad(t: Tape, x: Val, *, paddings: Val) -> Val:
    """Zeros around; paddings are (before, after) per axis."""
    pairs = [tuple(ints(p, "paddings")) for p in paddings]
    return t.op("Pad", [x, np.asarray([p[0] for p in pairs] + [p[1] for p in pairs])])


@op("PadV3")
def pad_v3(
    t: Tape,
    x: Val,
    paddings: Val,
    value: Val = None,
    *,
    mode: str = "constant",
    paddings_contiguous: bool = True,
) -> Val:
    """Pads run from the last axis backwards, as (left, right, top, bottom, ...)."""
    pads, rank = ints(paddings, "paddings"), t.rank(x)
    if paddings_contiguous:
        pairs = [(pads[i], pads[i + 1]) for i in range(0, len(pads), 2)][::-1]
    else:
        half = len(pads) // 2
        pairs = list(zip(pads[:half], pads[half:], strict=True))
    pairs = [(0, 0)] * (rank - len(pairs)) + pairs
    order = np.asarray([p[0] for p in pairs] + [p[1] for p in pairs])
    if mode != "constant":
        return t.op("Pad", [x, order], mode={"circular": "wrap"}.get(mode, mode))
    return t.op("Pad", [x, order] if value is None else [x, order, t.cast(value, t.dtype(x))])


@op("Triu", "Tril", "TrilExt")
def triangle(t: Tape, x: Val, *, diagonal: Val = 0) -> Val:
    """The upper or lower triangle of the last two axes."""
    k = np.asarray(number(diagonal, "diagonal"), np.int64)
    return t.op("Trilu", [x, k], upper=int(t.primitive == "Triu"))


@op("ZerosLike", "ZerosLikeExt", "OnesLike", "OnesLikeExt")
def filled_like(t: Tape, x: Val, dtype: Val = None) -> Val:
    """Zeros or ones in the shape of x, in its type or another."""
    kind = t.result_dtype(x) if dtype is None else dtype_argument(dtype).numpy
    number_ = np.asarray([int(t.primitive.startswith("Ones"))], kind)
    return t.op("ConstantOfShape", [t.op("Shape", [x])], value=ir.Tensor(number_))
