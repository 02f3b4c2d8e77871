"""Primitives on tuples and lists: mostly arithmetic on shapes, done while translating."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.graph.storage import Slot
from mindspore_lite.graph.structure import structural
from mindspore_lite.ops.scalar import known_number
from mindspore_lite.ops.tape import Tape, bounded, constant_of


@structural("MakeTuple", "make_tuple", "MakeTupleV2", "MakeList", "make_list")
def make_tuple(t: Tape, inputs: Sequence[Slot]) -> Slot:
    """A tuple of the inputs."""
    return Slot(tuple(inputs))


@structural("TupleGetItem", "tuple_getitem", "list_getitem", "RealTupleGetItem")
def tuple_get_item(t: Tape, inputs: Sequence[Slot]) -> Slot:
    """One element; a negative index counts from the end."""
    items, index = inputs[0].items(), constant_of(inputs[1].read())
    if index is None or index.size != 1 or not -len(items) <= int(index) < len(items):
        raise UnsupportedOpError(f"element {index} of a tuple of {len(items)}")
    return items[int(index)]


@structural("sequence_len")
def length(t: Tape, inputs: Sequence[Slot]) -> Slot:
    """Number of elements."""
    return Slot(len(inputs[0].items()))


@structural("SequenceAdd")
def joined(t: Tape, inputs: Sequence[Slot]) -> Slot:
    """One sequence after the other."""
    return Slot(inputs[0].items() + inputs[1].items())


@structural("SequenceMul")
def repeated(t: Tape, inputs: Sequence[Slot]) -> Slot:
    """A sequence several times."""
    items, times = inputs[0].items(), _index(inputs[1])
    bounded(times * len(items), "elements of a tuple")
    return Slot(items * times)


@structural("SequenceSlice")
def sliced(t: Tape, inputs: Sequence[Slot]) -> Slot:
    """items[start:stop:step]."""
    start, stop, step = (_index(slot) for slot in inputs[1:4])
    if step == 0:
        raise UnsupportedOpError("a slice with step 0")
    return Slot(inputs[0].items()[start:stop:step])


@structural("tuple_setitem", "list_setitem")
def replaced(t: Tape, inputs: Sequence[Slot]) -> Slot:
    """A copy with another element."""
    items, index = list(inputs[0].items()), _index(inputs[1])
    if not -len(items) <= index < len(items):
        raise UnsupportedOpError(f"element {index} of a tuple of {len(items)}")
    items[index] = inputs[2]
    return Slot(tuple(items))


@structural("tuple_reversed")
def turned(t: Tape, inputs: Sequence[Slot]) -> Slot:
    """The last element first."""
    return Slot(inputs[0].items()[::-1])


@structural("ListAppend")
def appended(t: Tape, inputs: Sequence[Slot]) -> Slot:
    """A copy with one element more."""
    return Slot((*inputs[0].items(), inputs[1]))


@structural("InSequence")
def contains(t: Tape, inputs: Sequence[Slot]) -> Slot:
    """Whether a number is an element."""
    wanted = inputs[0].read()
    return Slot(_any(t, [_equal(t, wanted, slot.read()) for slot in inputs[1].items()]))


@structural("tuple_equal", "list_equal", "SequenceEqual")
def equal(t: Tape, inputs: Sequence[Slot]) -> Slot:
    """Whether two sequences of numbers are the same."""
    first, second = inputs[0].items(), inputs[1].items()
    if len(first) != len(second):
        return Slot(False)
    pairs = zip(first, second, strict=True)
    differ = [_not(t, _equal(t, a.read(), b.read())) for a, b in pairs]
    return Slot(_not(t, _any(t, differ)))


@structural("is_", "is_not")
def identical(t: Tape, inputs: Sequence[Slot]) -> Slot:
    """Python's `is`, as graphs ask it: of None and of truth values."""
    first, second = (slot.parts if slot.parts is not None else slot.read() for slot in inputs[:2])
    if first is None or second is None:
        same = first is second
    elif isinstance(first, bool) and isinstance(second, bool):
        same = first == second
    else:
        raise UnsupportedOpError("`is` of other values than None and truth values")
    return Slot(same is (t.primitive == "is_"))


def _index(slot: Slot) -> int:
    known = known_number(slot.read())
    if not isinstance(known, int):
        raise UnsupportedOpError("an index that only the run tells")
    return known


def _equal(t: Tape, a: Any, b: Any) -> Any:
    """Whether two numbers are equal; a bool, or a value where it is known only at run time."""
    if a is b:
        return True
    x, y = known_number(a), known_number(b)
    if x is not None and y is not None:
        return x == y
    for number, other in ((x, b), (y, a)):
        if number is not None and number < 0 and _is_dim(other):
            return False  # asked of every shape whose rank was open at export
    return t.op("Equal", [t.cast(a, np.dtype(np.int64)), t.cast(b, np.dtype(np.int64))])


def _is_dim(value: Any) -> bool:
    """Whether it is one of the dims of a tensor, which are never negative."""
    node = value.producer() if isinstance(value, ir.Value) else None
    source = node.inputs[0] if node is not None and node.op_type == "Gather" else None
    maker = source.producer() if source is not None else None
    return maker is not None and maker.op_type == "Shape"


def _not(t: Tape, truth: Any) -> Any:
    return not truth if isinstance(truth, bool) else t.op("Not", [truth])


def _any(t: Tape, truths: list[Any]) -> Any:
    if any(truth is True for truth in truths):
        return True
    unsure = [truth for truth in truths if truth is not False]
    found: Any = False
    for truth in unsure:
        found = truth if found is False else t.op("Or", [found, truth])
    return found
