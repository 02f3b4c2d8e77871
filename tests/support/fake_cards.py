"""An engine whose cards are made up: ONNX Runtime computes, and what a card would do is counted."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

import mindspore_lite as mslite
from mindspore_lite.core.capabilities import ENGINES
from mindspore_lite.engines.base import ModelSource, Options, Session, Stop
from mindspore_lite.engines.onnxruntime.engine import OnnxRuntimeEngine
from mindspore_lite.errors import ClosedError, EngineError, EngineUnavailableError


@dataclass
class Weights:
    """A copy of a model on a card: what all its streams have in common."""

    source: ModelSource
    session: Session
    updates: list[Mapping[str, np.ndarray]] = field(default_factory=list)


class FakeCardSession:
    """One stream; see CardSession."""

    def __init__(self, engine: FakeCards, weights: Weights, options: Options) -> None:
        device = "cpu" if engine.on_host else options.device
        self.info, self.options = replace(weights.session.info, device=device), options
        self.engine, self.weights = engine, weights
        self.rows: list[int] = []  # of each run
        self.kinds: list[list[str]] = []  # of the inputs of each run: ndarray, Tensor
        self.joined: list[int] = []  # requests of each joined run
        self.threads: set[int] = set()
        self.closed = 0
        engine.sessions.append(self)

    def run(self, inputs: Sequence[Any], stop: Stop | None = None) -> list[Any]:
        if self.closed:
            raise ClosedError("the session is closed")
        self.threads.add(threading.get_ident())
        self.rows.append(len(inputs[0]) if inputs[0].ndim else 0)
        self.engine.check_runs()
        kinds = [type(value).__name__ for value in inputs]
        self.kinds.append(kinds)
        found = self.weights.session.run([np.asarray(value) for value in inputs], stop)
        if set(kinds) == {"Tensor"}:
            import torch

            return [torch.from_numpy(array) for array in found]
        return found

    def run_joined(
        self, requests: Sequence[Sequence[Any]], stop: Stop | None = None
    ) -> list[list[Any]]:
        self.joined.append(len(requests))
        columns = zip(*requests, strict=True)
        whole = self.run([_joined(column) for column in columns], stop)
        ends = np.cumsum([len(request[0]) for request in requests])
        starts = [0, *ends[:-1]]
        return [
            [output[start:end] * 1 for output in whole]
            for start, end in zip(starts, ends, strict=True)
        ]

    def twin(self) -> FakeCardSession:
        return FakeCardSession(self.engine, self.weights, self.options)

    def update(self, replaced: Mapping[str, np.ndarray]) -> None:
        if self.info.device in self.engine.refuses_updates and replaced:
            raise EngineError(f"{self.info.device} has no room for other weights")
        source = replace(self.weights.source, replaced=dict(replaced))
        self.weights.session = OnnxRuntimeEngine().load(source, Options())
        self.weights.updates.append(replaced)

    def skeleton(self) -> bytes:
        return self.weights.session.skeleton()

    def close(self) -> None:
        self.closed += 1


def _joined(values: Sequence[Any]) -> Any:
    if isinstance(values[0], np.ndarray):
        return np.concatenate(values)
    import torch

    return torch.cat(list(values))


class FakeCards:
    """An engine; see Engine. With `on_host`, tensors of PyTorch on the CPU are on its card."""

    capabilities = ENGINES["torch"]
    name = capabilities.name

    def __init__(self) -> None:
        self.on_host = False
        self.loads: list[Options] = []
        self.sessions: list[FakeCardSession] = []
        self.copies: list[Weights] = []
        self.asked: list[tuple[str, str, int]] = []
        self.refuses_updates: set[str] = set()
        self.refuses_runs = False

    def engine_for(self, target: str, engine: str = "", device: int = 0) -> FakeCards:
        self.asked.append((target, engine, device))
        return self

    def check_runs(self) -> None:
        if self.refuses_runs:
            raise EngineError("the card is tired")

    def load(self, source: ModelSource, options: Options, keep: object = None) -> FakeCardSession:
        self.loads.append(options)
        weights = Weights(source, OnnxRuntimeEngine().load(source, Options()))
        self.copies.append(weights)
        return FakeCardSession(self, weights, options)


def installed(monkeypatch: pytest.MonkeyPatch) -> FakeCards:
    """Cards for target gpu, as many as are asked for."""
    made = FakeCards()
    monkeypatch.setattr("mindspore_lite.serving.build.engine_for", made.engine_for)
    return made


def on_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the memory of card gpu:0 be that of the host, in PyTorch's hands."""
    from mindspore_lite.engines.torch import memory

    def check(device: str) -> None:
        if device != "cpu:0":
            raise EngineUnavailableError(f"there is no {device}")

    monkeypatch.setattr(memory, "_KINDS", {"gpu": "cpu"})
    monkeypatch.setattr("mindspore_lite.engines.torch.cards.check", check)


def gpu(**parallel: Any) -> mslite.Context:
    """A context for cards."""
    context = mslite.Context()
    context.target = ["gpu"]
    for name, value in parallel.items():
        setattr(context.parallel, name, value)
    return context
