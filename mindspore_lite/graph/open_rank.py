"""Models whose inputs may have any number of dims; a graph is made for one number at a time.

As in graph/source.py, nothing of onnx is loaded before a graph is wanted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mindspore_lite.core.budget import DEFAULT, Budget
from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.mindir.records import Model, local_name

if TYPE_CHECKING:
    import onnx_ir as ir

End = tuple[str, np.dtype, tuple[int, ...]]  # name, type and dims of an input or output
_RANKS = (2, 4, 3, 1, 5, 0)  # to try for inputs of any rank, the likely ones first


@dataclass(frozen=True)
class Trial:
    """What a model whose inputs may have any rank looks like with one of them."""

    open: tuple[str, ...]  # the inputs in question
    inputs: tuple[End, ...]
    outputs: tuple[End, ...]
    metadata: dict[str, str]


class OpenRankError(UnsupportedOpError):
    """Inputs may have any number of dims: a graph can only be made for a given number."""

    def __init__(self, trial: Trial) -> None:
        names = list(trial.open)
        super().__init__(f"the inputs {names} have no fixed number of dims; give them shapes")
        self.trial = trial


def of_open_rank(model: Model) -> tuple[str, ...]:
    """The inputs that may have any number of dims."""
    return tuple(
        declared.given_name or local_name(declared.name)
        for declared in model.graph.inputs
        if getattr(declared.type, "shape", ()) is None
    )


def trial(
    model: Model,
    names: tuple[str, ...],
    budget: Budget = DEFAULT,
    carries_state: bool = False,
) -> Trial:
    """Translate for the first rank that works, to know the outputs and what is unsupported."""
    from mindspore_lite.graph.from_mindir import from_mindir
    from mindspore_lite.passes.element_types import element_types

    refusals = []
    for rank in _RANKS:
        try:
            shapes = {name: [None] * rank for name in names}
            made = from_mindir(model, shapes, budget, carries_state=carries_state)
        except UnsupportedOpError as exc:
            refusals.append(exc)
            continue
        types = element_types(made)
        inputs = tuple(_end(value, types[value]) for value in made.graph.inputs)
        outputs = tuple(_end(value, types[value]) for value in made.graph.outputs)
        return Trial(names, inputs, outputs, dict(made.metadata_props))
    raise refusals[0]


def _end(value: ir.Value, dtype: ir.DataType) -> End:
    dims = tuple(d if isinstance(d, int) else -1 for d in value.shape or ())
    return str(value.name), dtype.numpy(), dims
