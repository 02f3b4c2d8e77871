"""The contract of engines: an engine loads models into sessions that many threads may run.

An engine never sees a queue, and a pool never sees an op. Everything swappable is here and small.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from mindspore_lite.core.budget import DEFAULT
from mindspore_lite.core.capabilities import Capabilities
from mindspore_lite.core.stop import Stop as Stop
from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.engines.group import Group as Group
from mindspore_lite.graph.source import ModelSource as ModelSource
from mindspore_lite.weights.records import Identity
from mindspore_lite.weights.records import Variable as Variable


@dataclass(frozen=True, eq=False)
class SessionInfo:
    """What a session says about itself. Wrappers pass on the record of what they wrap."""

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    metadata: Mapping[str, str] = field(default_factory=dict)
    variables: tuple[Variable, ...] = ()  # weights that may change: see Reopening and CardSession
    mapped: bool = False  # the weights are pages of a file: another session of the model adds none
    device: str | None = None  # the card, as torch writes it: cuda:0; None is the host


@dataclass(frozen=True)
class Options:
    """How a session should run."""

    threads: int = 1  # per running request
    inter_op_threads: int = 1
    cores: tuple[int, ...] = ()  # empty: not bound; else one core per thread, the caller's included
    binds_caller: bool = True  # False: the caller is on the first core already
    streams: int = 1  # requests that run at the same time; for engines that must know beforehand
    caller_computes: bool = False  # the caller is pinned and must run the work itself
    precision: str = "enforce_fp32"
    group: Group | None = None  # what is shared with other sessions of this process
    device: str = "cpu"  # as torch writes it: cpu, cuda:0, npu:0
    tf32: bool = True  # float32 products on a card may round their operands to 10 bits
    tuning: str = "fast"  # fast: compile; full: in several ways, keep the fastest; off: do not
    batches: tuple[int, ...] = ()  # numbers of rows to prepare at the build; open batch axes only
    profile: str = ""  # ONNX Runtime: where close() writes what each operator took; "": nowhere
    max_seconds: float = DEFAULT.max_seconds  # of one native call that compiles or opens a model


# called with the artefact's path and identity while eviction is locked out
Keep = Callable[[Path, Identity], None]


class Session(Protocol):
    """A compiled model. `run` may be called from many threads at once."""

    info: SessionInfo

    def run(self, inputs: Sequence[np.ndarray], stop: Stop | None = None) -> list[np.ndarray]:
        """One C-contiguous array per input in, one array that owns its memory per output out.

        When `stop` is fired the work is ended where the engine can, and StoppedError is raised.
        """

    def skeleton(self) -> bytes:
        """The untouched ONNX graph without its large weights, for shape inference."""

    def close(self) -> None:
        """Let go of memory and threads once no run is under way; harmless when repeated."""


@runtime_checkable
class CardSession(Session, Protocol):
    """A session on a card. It has one stream: runs of it come one after the other.

    `run` also takes torch tensors that lie on the card; if all inputs do, the outputs are such
    tensors too, and own their memory.
    """

    def run_joined(
        self, requests: Sequence[Sequence[Any]], stop: Stop | None = None
    ) -> list[list[Any]]:
        """Several requests along the batch axis as one run; the outputs of each."""

    def twin(self) -> CardSession:
        """Another session of the model, with a stream of its own and the same weights."""

    def update(self, replaced: Mapping[str, np.ndarray]) -> None:
        """Let the variable weights be those of the file but for these, in all twins at once.

        Runs under way finish on the weights they began with. On an error nothing has changed.
        """


# opens a compiled model once more, with these arrays in place of its variable weights
Opener = Callable[[Mapping[str, np.ndarray]], Session]


@runtime_checkable
class Reopening(Protocol):
    """A session on the host whose variable weights change by opening another one."""

    def opener(self) -> Opener:
        """Opens other sessions of this compiled model, whatever became of the model's files.

        They share with this one what does not change. The opener keeps no session alive.
        """


@runtime_checkable
class Exporting(Protocol):
    """A session whose weights lie where no file shows them."""

    def export(self) -> bytes:
        """What one other process needs to use the same weights: `extra` of Engine.open."""


@runtime_checkable
class Compiling(Protocol):
    """An engine that compiles apart from opening: another process can do the first."""

    def compile(self, source: ModelSource, options: Options, folder: Path) -> None:
        """Write into an empty folder what `load` would keep in the cache, and later opens."""


class Engine(Protocol):
    """A runtime that can load models."""

    name: str
    capabilities: Capabilities  # its row of core/capabilities.py

    def load(self, source: ModelSource, options: Options, keep: Keep | None = None) -> Session:
        """Compile, or find compiled, and open; `keep` is called if that lies on a disk."""

    def identity(self, source: ModelSource, options: Options) -> Identity:
        """What a model is known by among processes, without compiling it."""

    def open(self, folder: Path, options: Options, extra: bytes = b"") -> Session:
        """Open what another process has compiled; its identity was found to be the same.

        extra: what the other process's session exported, where it has something to say.
        """
