"""What `mslite inspect` shows about a model file, the same for every format.

The names of the fields are the keys of `mslite inspect --json`; programs rely on them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Port:
    """An input or output of the model; a dim of -1 is open, a shape of None is an open rank."""

    name: str
    dtype: str
    shape: tuple[int, ...] | None


@dataclass(frozen=True)
class Amount:
    """Some tensors together."""

    tensors: int
    elements: int
    size_bytes: int


@dataclass(frozen=True)
class Weights(Amount):
    """All weights of a model, and the parts of each element type."""

    by_dtype: Mapping[str, Amount]


@dataclass(frozen=True)
class ExternalFile:
    """A file of weights next to the model."""

    name: str
    size_bytes: int


@dataclass(frozen=True)
class Operator:
    """A kind of node, counted over all graphs of the file."""

    name: str
    count: int
    family: str  # "" where it is not known
    supported: bool


@dataclass(frozen=True)
class Graph:
    """One graph of the file; the main one comes first, and is called from nowhere."""

    name: str
    role: str  # main, then branch, loop body, ...
    nodes: int
    called_from: tuple[str, ...]


@dataclass(frozen=True)
class Problem:
    """Something that keeps the model from running, and every place where it does."""

    reason: str
    places: tuple[str, ...]


@dataclass(frozen=True)
class Memory:
    """An estimate of what one run holds in memory at once."""

    weights_bytes: int
    activations_bytes: int  # the largest sum of tensors that are alive together
    peak_at: str  # the node during which it is reached
    open_dims_as_one: bool  # whether the model has open dims, each of which was taken as 1
    unknown_tensors: int  # whose size depends on data, and which are not counted


@dataclass(frozen=True)
class Facts:
    """A whole file."""

    file: str
    size_bytes: int
    format: str  # MindIR or ONNX
    producer: str
    producer_version: str
    ir_version: str
    mind_ir_version: int | None  # MindIR only
    encoding: str
    user_info: Mapping[str, str]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    weights: Weights
    external_files: tuple[ExternalFile, ...]
    operators: tuple[Operator, ...]
    in_place: Mapping[str, int]  # primitives that change their input, and how often
    kept: tuple[str, ...]  # parameters that a run leaves for the next one
    graphs: tuple[Graph, ...]
    problems: tuple[Problem, ...]
    memory: Memory | None  # None where the model cannot be translated

    @property
    def can_run(self) -> bool:
        """Whether everything in the file can be translated."""
        return not self.problems

    def as_json(self) -> dict[str, Any]:
        """The facts as plain values, with the verdict first."""
        return {"can_run": self.can_run, **dataclasses.asdict(self)}


def external_files(paths: Sequence[Path]) -> tuple[ExternalFile, ...]:
    """The files that hold weights."""
    return tuple(ExternalFile(str(path), path.stat().st_size) for path in paths)


def weights_of(tensors: list[tuple[str, int, int]]) -> Weights:
    """Sum up (element type, elements, bytes) of each tensor."""
    parts: dict[str, list[tuple[int, int]]] = {}
    for dtype, elements, size in tensors:
        parts.setdefault(dtype, []).append((elements, size))
    by_dtype = {
        dtype: Amount(len(some), sum(e for e, _ in some), sum(b for _, b in some))
        for dtype, some in sorted(parts.items())
    }
    return Weights(
        len(tensors), sum(e for _, e, _ in tensors), sum(b for _, _, b in tensors), by_dtype
    )
