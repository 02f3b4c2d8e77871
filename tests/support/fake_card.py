"""A card that is the CPU: its streams do all at once, its graphs are plain calls.

It counts what is captured, can be full, and can break, so that all but the arithmetic of a session
on a card can be tested anywhere.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch

from mindspore_lite.engines.torch.cards import Card


class _Graph:
    def __init__(self, replay: Callable[[], None]) -> None:
        self.replay = replay


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

    def is_current(self) -> bool:
        return True

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

        return _Graph(replay), results

    def pinned(self, shape: tuple[int, ...], dtype: Any) -> Any:
        return torch.empty(shape, dtype=dtype)

    def empty_cache(self) -> None:
        self.emptied += 1


class CallingCard(FakeCard):
    """One whose runs go through one_run.c, as those of CUDA do: its functions are Python's.

    `errors`: numbers that its next functions return. What a function raises would be lost.
    """

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []
        self.errors: list[int] = []
        self._things: list[Any] = [None]  # an address is an index here
        one, number = ctypes.c_void_p, ctypes.c_int
        kinds = {
            "copy": ctypes.CFUNCTYPE(number, one, one, ctypes.c_size_t, number, one),
            "launch": ctypes.CFUNCTYPE(number, one, one),
            "synchronize": ctypes.CFUNCTYPE(number, one),
            "record": ctypes.CFUNCTYPE(number, one, one),
            "wait": ctypes.CFUNCTYPE(number, one, one, ctypes.c_uint),
        }
        self._functions = [kind(partial(self._called, name)) for name, kind in kinds.items()]

    def addresses(self) -> list[int]:
        return [ctypes.cast(one, ctypes.c_void_p).value or 0 for one in self._functions]

    def address(self, thing: Any) -> int:
        if not any(thing is known for known in self._things):
            self._things.append(thing)
        return next(at for at, known in enumerate(self._things) if known is thing)

    def current_address(self) -> int:
        return 0

    def drawn(self) -> int:
        return hash(torch.random.get_rng_state().numpy().tobytes())  # sums of bytes may agree

    def error_text(self, number: int) -> str:
        return f"the error {number}"

    def _called(self, name: str, *arguments: Any) -> int:
        self.calls.append(name)
        if self.errors:
            return self.errors.pop(0)
        if name == "copy":
            ctypes.memmove(*arguments[:3])
        elif name == "launch":
            self._things[arguments[0]].replay()
        return 0
