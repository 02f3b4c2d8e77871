"""Primitives that compute nothing: tuples, aliases, the order of effects. They move Slots about."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.graph.storage import Slot, stored
from mindspore_lite.mindir.records import Monad
from mindspore_lite.ops.tape import constant_of

Structural = Callable[[Sequence[Slot]], Slot]
STRUCTURE: dict[str, Structural] = {}


def structural(*primitives: str) -> Callable[[Structural], Structural]:
    """Register one function for the named primitives."""

    def add(fn: Structural) -> Structural:
        STRUCTURE.update(dict.fromkeys(primitives, fn))
        return fn

    return add


@structural("Load", "Depend", "identity", "Identity", "StopGradient", "Contiguous", "Detach")
def alias(inputs: Sequence[Slot]) -> Slot:
    """Another name for the first input."""
    return inputs[0]


@structural("TensorMove", "Copy", "Clone", "CopyToDevice")
def snapshot(inputs: Sequence[Slot]) -> Slot:
    """A copy that later changes of the first input do not reach."""
    return stored(inputs[0].read())


@structural("UpdateState")
def update_state(inputs: Sequence[Slot]) -> Slot:
    """A later point in the order of effects; the walk is in that order already."""
    return Slot(Monad.MEMORY)


@structural("MakeTuple", "make_tuple", "MakeTupleV2", "MakeList", "make_list")
def make_tuple(inputs: Sequence[Slot]) -> Slot:
    """A tuple of the inputs."""
    return Slot(tuple(inputs))


@structural("TupleGetItem", "tuple_getitem", "list_getitem", "RealTupleGetItem")
def tuple_get_item(inputs: Sequence[Slot]) -> Slot:
    """One element; a negative index counts from the end."""
    items, index = inputs[0].items(), constant_of(inputs[1].read())
    if index is None or index.size != 1 or not -len(items) <= int(index) < len(items):
        raise UnsupportedOpError(f"element {index} of a tuple of {len(items)}")
    return items[int(index)]
