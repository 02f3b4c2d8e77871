"""A world without waiting for tests of loads: a clock that is moved, and a side that takes time."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from mindspore_lite.bench.burst import Load
from mindspore_lite.bench.load import Done
from mindspore_lite.bench.sides import Desk, Feed


class World:
    """Time goes on when somebody waits, and what was planned happens on the way."""

    def __init__(self) -> None:
        self.time_s = 100.0
        self._planned: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()

    def now(self) -> float:
        return self.time_s

    def cpu(self) -> float:
        return self.time_s / 2  # as if half of a core were busy

    def wait_until(self, moment: float) -> None:
        while self._planned and self._planned[0][0] <= moment:
            at, _, happen = heapq.heappop(self._planned)
            self.time_s = max(self.time_s, at)
            happen()
        self.time_s = max(self.time_s, moment)

    def plan(self, moment: float, happen: Callable[[], None]) -> None:
        heapq.heappush(self._planned, (moment, next(self._order), happen))


class Server:
    """One worker that needs so many seconds for a request, first come, first served."""

    def __init__(self, world: World, service_s: float) -> None:
        self._world, self._service_s = world, service_s
        self._free_at = 0.0

    def submit(self, done: Done) -> None:
        self._free_at = max(self._free_at, self._world.now()) + self._service_s
        self._world.plan(self._free_at, lambda: done(None))

    def call(self) -> None:
        self._world.wait_until(self._world.now() + self._service_s)


class Answering:
    """A side whose every answer is the same."""

    def __init__(self, name: str, *outputs: object) -> None:
        self.name, self.closed, self.calls = name, False, 0
        self._outputs = [np.asarray(output, np.float32) for output in outputs]

    @contextmanager
    def desk(self, load: Load, feed: Feed) -> Iterator[Desk]:
        yield Desk(self._call, self._submit)

    def _call(self) -> list[np.ndarray]:
        self.calls += 1
        return self._outputs

    def _submit(self, done: Done) -> None:
        done(None)

    def close(self) -> None:
        self.closed = True


class Silent:
    """Listens to progress; `steps` counts it."""

    def __init__(self) -> None:
        self.steps = 0

    def at(self, text: str) -> None:
        pass

    def step(self) -> None:
        self.steps += 1
