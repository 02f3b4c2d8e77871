"""Finds constants that were repeated to a size of an input, and makes them anew for another size.

A class token is expanded to the batch and joined with the input; exporters often store the result.
Where the input gets another size, such a constant has to have it too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from mindspore_lite.errors import ShapeError
from mindspore_lite.passes.check_nodes import title
from mindspore_lite.passes.edit import attribute, given, ints_of, is_op, tensor_of

Dims = Sequence[int]
MAX_BYTES = 1 << 26  # of a constant that is made anew; guess, tokens and masks are far smaller
_ELEMENTWISE = (
    "Add", "And", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min",
    "Mul", "Or", "Pow", "Sub", "Sum", "Where", "Xor",
)  # fmt: skip


class Edit(NamedTuple):
    """A constant to put at a place of a node's inputs."""

    node: ir.Node
    place: int
    array: np.ndarray


def joined_constants(
    node: ir.Node, was: Sequence[Dims | None], now: Sequence[Dims | None]
) -> Iterator[Edit]:
    """What must change for the inputs of a node to fit together again.

    Args:
        node: Any node.
        was: The sizes of its inputs that it was exported with.
        now: Those that they have now.

    Raises:
        ShapeError: A constant of the old size would be joined with values of the new one, without
            an error of its own.
    """
    if len(node.inputs) < 2 or not is_op(node, "Concat", *_ELEMENTWISE):
        return
    if any(a is None or b is None or len(a) != len(b) for a, b in zip(was, now, strict=True)):
        return
    olds, news = [list(dims or ()) for dims in was], [list(dims or ()) for dims in now]
    rank = max(map(len, olds))
    joint = attribute(node, "axis") % rank if node.op_type == "Concat" and rank else None
    for at, (old, new) in enumerate(zip(olds, news, strict=True)):
        if old != new:
            continue
        wanted = {}
        for axis in range(len(old)):
            back = axis - len(old)  # sizes are aligned from the right
            if axis == joint or (joint is None and old[axis] == 1):  # which broadcasts
                continue
            sizes = {
                theirs[back]
                for before, theirs in zip(olds, news, strict=True)
                if len(before) >= -back and before[back] == old[axis] != theirs[back]
            }
            if len(sizes) == 1:
                wanted[axis] = sizes.pop()
        if wanted:
            yield from _repeated(node, at, old, wanted)


def _repeated(node: ir.Node, at: int, old: Dims, wanted: dict[int, int]) -> Iterator[Edit]:
    """The constant at a place with other sizes of some axes, if it is one, or made of one."""
    value = node.inputs[at]
    assert value is not None
    producer = value.producer()
    if producer is not None and is_op(producer, "Expand"):
        sizes, source = ints_of(given(producer, 1)), producer.inputs[0]
        if sizes is None or len(sizes) != len(old) or tensor_of(source) is None:
            return
        target = [wanted.get(axis, size) for axis, size in enumerate(sizes)]
        yield Edit(producer, 1, np.asarray(target, np.int64))
        return
    tensor = tensor_of(value)
    if tensor is None or tensor.dtype == ir.DataType.STRING:
        return
    array = tensor.numpy() if tensor.nbytes <= MAX_BYTES else None
    for axis, size in wanted.items():
        if array is None or not (array == array.take([0], axis)).all():
            if size != 1 or node.op_type == "Concat":
                return  # an error of the layer itself, which names it
            raise ShapeError(
                f"the input sizes cannot be replaced: {title(node)} has a constant of {list(old)}, "
                f"whose axis {axis} was the size of an input that is now {size}; export the model "
                "again with these sizes"
            )
        if array.nbytes // array.shape[axis] * size > MAX_BYTES:
            return
        array = array.take([0], axis).repeat(size, axis)
    if array is not None:
        yield Edit(node, at, array)
