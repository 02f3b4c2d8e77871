"""Primitives that compute nothing: aliases, tuples, the order of effects."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mindspore_lite.graph.storage import Slot, stored
from mindspore_lite.mindir.records import Monad
from mindspore_lite.ops.tape import Tape

Structural = Callable[[Tape, Sequence[Slot]], Slot]
STRUCTURE: dict[str, Structural] = {}


def structural(*primitives: str) -> Callable[[Structural], Structural]:
    """Register one function for the named primitives."""

    def add(fn: Structural) -> Structural:
        STRUCTURE.update(dict.fromkeys(primitives, fn))
        return fn

    return add


@structural("Load", "Depend", "identity", "Identity", "StopGradient", "Contiguous", "Detach")
def alias(t: Tape, inputs: Sequence[Slot]) -> Slot:
    """Another name for the first input."""
    return inputs[0]


@structural("TensorMove", "Copy", "Clone", "CopyToDevice")
def snapshot(t: Tape, inputs: Sequence[Slot]) -> Slot:
    """A copy that later changes of the first input do not reach."""
    return stored(inputs[0].read())


@structural("UpdateState")
def update_state(t: Tape, inputs: Sequence[Slot]) -> Slot:
    """A later point in the order of effects; the walk is in that order already."""
    return Slot(Monad.MEMORY)


@structural(
    "Print",
    "TensorDump",
    "Assert",
    "ScalarSummary",
    "ImageSummary",
    "HistogramSummary",
    "TensorSummary",
)
def drop(t: Tape, inputs: Sequence[Slot]) -> Slot:
    """Talks to the outside while training or debugging; nothing that a result depends on."""
    return Slot(None)
