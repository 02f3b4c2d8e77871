"""A card that is the CPU: its streams do all at once, its graphs are plain calls.

It counts what is captured, can be full, and can break, so that all but the arithmetic of a session
on a card can be tested anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from mindspore_lite.engines.torch.cards import Card


class _Stream:
    def wait_stream(self, other: object) -> None:
        pass

    def synchronize(self) -> None:
        pass


class _Event:
    def record(self, stream: object) -> None:
        pass

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, end: object) -> float:
        return 0.5


class FakeCard(Card):
    """See engines/torch/cards.py for the interface."""

    def __init__(self) -> None:
        super().__init__("cpu")
        self.kind = "fake"
        self.captured_runs = 0
        self.synchronized = 0
        self.emptied = 0
        self.failures: list[Exception] = []  # raised by the next captures
        self.on_replay: Callable[[], None] = lambda: None
        self.captures_graphs = True

    @property
    def captures(self) -> bool:
        return self.captures_graphs

    def memory_bytes(self) -> tuple[int, int]:
        return 3 << 20, 8 << 20

    def identity(self) -> str:
        return "fake"

    def stream(self) -> Any:
        return _Stream()

    def current(self) -> Any:
        return _Stream()

    def using(self, stream: Any) -> AbstractContextManager[Any]:
        return nullcontext()

    def event(self, timed: bool = False) -> Any:
        return _Event()

    def synchronize(self) -> None:
        self.synchronized += 1

    def pool(self) -> Any:
        return object()

    def captured(self, run: Callable[[], Any], stream: Any, pool: Any) -> tuple[Any, Any]:
        if self.failures:
            raise self.failures.pop(0)
        results = [result.clone() for result in run()]
        self.captured_runs += bool(results)  # the form with copies leaves none

        def replay() -> None:
            self.on_replay()
            for place, result in zip(results, run(), strict=True):
                place.copy_(result)

        return replay, results

    def pinned(self, shape: tuple[int, ...], dtype: Any) -> Any:
        return torch.empty(shape, dtype=dtype)

    def empty_cache(self) -> None:
        self.emptied += 1
