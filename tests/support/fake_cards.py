"""An engine whose cards are made up: ONNX Runtime computes, and what a card would do is counted."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

import mindspore_lite as mslite
from mindspore_lite.engines.base import Options, Session, Source, Stop
from mindspore_lite.engines.onnxruntime import OnnxRuntimeEngine
from mindspore_lite.errors import EngineError


@dataclass
class Weights:
    """A copy of a model on a card: what all its streams have in common."""

    source: Source
    session: Session
    updates: list[Mapping[str, np.ndarray]] = field(default_factory=list)


class FakeCardSession:
    """One stream; see CardSession."""

    def __init__(self, engine: FakeCards, weights: Weights, options: Options) -> None:
        first = weights.session
        self.inputs, self.outputs, self.metadata = first.inputs, first.outputs, first.metadata
        self.variables, self.mapped = first.variables, first.mapped
        self.device, self.options = options.device, options
        self.engine, self.weights = engine, weights
        self.rows: list[int] = []  # of each run
        self.joined: list[int] = []  # requests of each joined run
        self.threads: set[int] = set()
        self.closed = 0
        engine.sessions.append(self)

    def run(self, inputs: Sequence[Any], stop: Stop | None = None) -> list[Any]:
        self.threads.add(threading.get_ident())
        self.rows.append(len(inputs[0]))
        self.engine.check_runs()
        return self.weights.session.run(inputs, stop)

    def run_joined(
        self, requests: Sequence[Sequence[Any]], stop: Stop | None = None
    ) -> list[list[Any]]:
        self.joined.append(len(requests))
        whole = self.run([np.concatenate(arrays) for arrays in zip(*requests, strict=True)], stop)
        ends = np.cumsum([len(request[0]) for request in requests])
        parts = zip(*(np.split(output, ends[:-1]) for output in whole), strict=True)
        return [[array.copy() for array in part] for part in parts]

    def twin(self) -> FakeCardSession:
        return FakeCardSession(self.engine, self.weights, self.options)

    def update(self, replaced: Mapping[str, np.ndarray]) -> None:
        if self.device in self.engine.refuses_updates and replaced:
            raise EngineError(f"{self.device} has no room for other weights")
        source = replace(self.weights.source, replaced=dict(replaced))
        self.weights.session = OnnxRuntimeEngine().load(source, Options())
        self.weights.updates.append(replaced)

    def skeleton(self) -> bytes:
        return self.weights.session.skeleton()

    def close(self) -> None:
        self.closed += 1


class FakeCards:
    """An engine; see Engine."""

    name = "torch"

    def __init__(self) -> None:
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

    def load(self, source: Source, options: Options, keep: object = None) -> FakeCardSession:
        self.loads.append(options)
        weights = Weights(source, OnnxRuntimeEngine().load(source, Options()))
        self.copies.append(weights)
        return FakeCardSession(self, weights, options)


def installed(monkeypatch: pytest.MonkeyPatch) -> FakeCards:
    """Cards for target gpu, as many as are asked for."""
    made = FakeCards()
    monkeypatch.setattr("mindspore_lite.build.engine_for", made.engine_for)
    return made


def gpu(**parallel: Any) -> mslite.Context:
    """A context for cards."""
    context = mslite.Context()
    context.target = ["gpu"]
    for name, value in parallel.items():
        setattr(context.parallel, name, value)
    return context
