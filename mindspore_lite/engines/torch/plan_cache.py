"""Execution plans of earlier starts, kept in the cache with the weights they belong to.

With it a start neither lowers a graph nor loads torch's compiler. A file that is damaged, or of no
use here, is ignored.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from mindspore_lite.engines.torch import code_cache, trace, trace_program
from mindspore_lite.engines.torch.compile import Run
from mindspore_lite.engines.torch.kernels.lower import Lowered, Weight
from mindspore_lite.engines.torch.store import Store

_LOG = logging.getLogger(__name__)
_MOST_BYTES = 64 << 20  # of constants that the model does not have, and that are kept; guess

Constants = Mapping[str, torch.Tensor]


@dataclass(frozen=True)
class Kept:
    """A place for a plan, and the weights that the model itself has."""

    name: str
    constants: Constants
    variable: frozenset[str]


def keep(place: Kept, run: Run, examples: Sequence[torch.Tensor], lowered: Lowered) -> bool:
    """Let later starts find what runs a lowered graph; False where it cannot be put on tape."""
    if lowered.bodies:
        return False
    names = [name for name, _ in lowered.module.named_parameters()]
    weights = [lowered.weights[name] for name in names]
    computed = {
        one.name: lowered.constants[one.name]
        for one in weights
        if one.name not in place.constants and one.name not in place.variable
    }
    if sum(value.nbytes for value in computed.values()) > _MOST_BYTES:
        return False
    tensors = [parameter.detach() for parameter in lowered.module.parameters()]
    found = trace.recorded(run, examples, tensors)
    if found is None:
        return False
    spelled = [[w.name, str(w.dtype).removeprefix("torch."), w.layout] for w in weights]
    code_cache.write(place.name, trace_program.written(found, {"weights": spelled}, computed))
    return True


def find(
    place: Kept, store: Store, device: torch.device, examples: Sequence[torch.Tensor]
) -> Run | None:
    """What an earlier start has kept, with the weights of this one; None if nothing is of use."""
    content = code_cache.read(place.name)
    if content is None:
        return None
    try:
        found, more, computed = trace_program.read(content)
        weights = [Weight(name, getattr(torch, kind), lay) for name, kind, lay in more["weights"]]
        player = trace_program.Player(found, device)
        tensors = store.tensors(weights, {**place.constants, **computed})
        with torch.no_grad():
            player(*examples, *tensors)
    except torch.OutOfMemoryError:
        raise
    except Exception as exc:  # noqa: BLE001 - damaged, or the driver does not take it
        _LOG.debug("what was kept cannot be used", exc_info=exc)
        return None
    return lambda *given: player(*given, *tensors)
