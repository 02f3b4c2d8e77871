"""Primitives that make functions from graphs, and choose among them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.graph.control import FUNCTIONS, Choice, Closure, Function, Known, Raised
from mindspore_lite.graph.storage import Slot
from mindspore_lite.graph.structure import structural
from mindspore_lite.ops.tape import Tape, constant_of

MAX_LAYERS = 20  # functions to choose from: each but the last takes a nested If


@structural("Partial", "PartialFusion")
def partial(t: Tape, inputs: Sequence[Slot]) -> Slot:
    """A function with its first arguments."""
    function = _function(inputs[0])
    if isinstance(function, Known):
        raise UnsupportedOpError("a part of the arguments of something that is no function")
    return Slot(Closure(function, tuple(inputs[1:])))


@structural("Switch")
def switch(t: Tape, inputs: Sequence[Slot]) -> Slot:
    """One of two functions; plain values count as functions of nothing."""
    condition, yes, no = inputs
    return Slot(Choice(condition.read(), _function(yes), _function(no)))


@structural("switch_layer")
def switch_layer(t: Tape, inputs: Sequence[Slot]) -> Slot:
    """The function of a tuple with this number; a negative one counts from the end."""
    functions = [_function(item) for item in inputs[1].items()]
    if not 0 < len(functions) <= MAX_LAYERS:
        raise UnsupportedOpError(f"a choice of {len(functions)} functions, at most {MAX_LAYERS}")
    index, count = inputs[0].read(), len(functions)
    if (known := constant_of(index)) is not None:
        if known.size != 1 or not -count <= int(known) < count:
            raise UnsupportedOpError(f"function {known} of {count}")
        return Slot(functions[int(known)])
    chosen, kind = functions[-1], t.dtype(index)
    for at in range(count - 2, -1, -1):
        same = [t.op("Equal", [index, np.asarray(k, kind)]) for k in (at, at - count)]
        chosen = Choice(t.op("Or", same), functions[at], chosen)
    return Slot(chosen)


def _function(slot: Slot) -> Function:
    value = None if slot.parts is not None else slot.read()
    return value if isinstance(value, FUNCTIONS) else Known(slot)


@structural("raise")
def raise_(t: Tape, inputs: Sequence[Slot]) -> Slot:
    """A check of the arguments failed; ONNX has no way to say so, and checks are taken to pass."""
    raise Raised


@structural("JoinedStr")
def joined_text(t: Tape, inputs: Sequence[Slot]) -> Slot:
    """The text of an error, which is never shown."""
    return Slot("text")
