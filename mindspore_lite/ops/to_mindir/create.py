"""Tensors made from shapes and numbers, as MindSpore primitives."""

from __future__ import annotations

from typing import Any

import numpy as np

from mindspore_lite.ops.to_mindir.shape import numbers
from mindspore_lite.ops.to_mindir.table import back
from mindspore_lite.ops.to_mindir.writer import Made, MindirWriter, Operand, type_id

_MAX_LENGTH = 1_000_000  # of a Range known only at run time; MindSpore wants a bound, and has this


@back("Constant")
def constant(
    p: MindirWriter,
    *,
    value: np.ndarray | None = None,
    value_float: float | None = None,
    value_floats: list[float] | None = None,
    value_int: int | None = None,
    value_ints: list[int] | None = None,
) -> Made:
    """One that is a result of its graph; all others became weights before."""
    forms = (value, value_float, value_floats, value_int, value_ints)
    held = next(form for form in forms if form is not None)
    return p.call("TensorMove", np.asarray(held, p.out.dtype))


@back("ConstantOfShape")
def constant_of_shape(p: MindirWriter, shape: Operand, *, value: np.ndarray | None = None) -> Made:
    """One number everywhere, a float32 zero if none is given."""
    number = np.zeros((), np.float32) if value is None else value.reshape(())
    return p.call("FillV2", numbers(p, shape), number)


@back("Range")
def range_(p: MindirWriter, start: Operand, limit: Operand, delta: Operand) -> Made:
    """Numbers in equal steps; where sizes are open, MindSpore wants scalars, not tensors."""
    bounds = start, limit, delta
    if start.dtype in (np.int64, np.float32):  # what a scalar of a file can be
        return p.call("Range", *(_scalar(p, bound) for bound in bounds), _MAX_LENGTH)
    return p.call("Range", *bounds, _MAX_LENGTH)


def _scalar(p: MindirWriter, x: Operand) -> Any:
    return x.number() if x.const is not None else p.call("TensorToScalar", x)


@back("EyeLike")
def eye_like(p: MindirWriter, x: Operand, *, dtype: int | None = None, k: int = 0) -> Made:
    """Ones on a diagonal."""
    rows, columns = x.fixed
    if k == 0:
        return p.call("Eye", rows, columns, type_id(p.out.dtype))
    return p.call("TensorMove", np.eye(rows, columns, k, p.out.dtype))


@back("OneHot")
def one_hot(
    p: MindirWriter, indices: Operand, depth: Operand, values: Operand, *, axis: int = -1
) -> Made:
    """A negative index counts from the end; to MindSpore it is outside."""
    count = int(depth.number())
    wide = p.cast(indices, np.int64)
    moved = p.call("Add", wide, np.asarray(count, np.int64))
    below = p.call("Less", wide, np.asarray(0, np.int64))
    places = p.call("Select", below, moved, wide)
    off, on = _pair(p, values)
    along = axis if axis >= 0 else axis + indices.rank + 1
    return p.call("OneHot", places, count, on, off, -1 if along == indices.rank else along)


def _pair(p: MindirWriter, values: Operand) -> list[Any]:
    """The two numbers of a vector as tensors without axes."""
    if values.const is not None:
        return [number.reshape(()) for number in values.const]
    return [p.call("Gather", values, np.asarray(i), 0, 0) for i in range(2)]
