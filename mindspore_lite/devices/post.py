"""One device: its worker process is started, watched, and started again when it dies.

    STARTING ── built ──▶ READY ── died ──▶ DOWN ── after the back-off ──▶ STARTING
        │                                     ▲ │
        └───── could not be built, or died ───┘ └── MOST_DEATHS within WINDOW_S ──▶ OUT

A post has one thread, which alone changes its state; others read it under the crew's lock, and ask
for things by `suspect` and `stop`.
"""

from __future__ import annotations

import json
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from mindspore_lite.devices.process import WorkerProcess
from mindspore_lite.errors import LiteError, WorkerDiedError
from mindspore_lite.pool import pool
from mindspore_lite.pool.deadline import WATCHDOG
from mindspore_lite.wire.bodies import Build
from mindspore_lite.wire.client import HANGS, Model

_LOG = logging.getLogger(__name__)

FIRST_BACK_OFF_S, LONGEST_BACK_OFF_S = 0.1, 10.0
MOST_DEATHS, WINDOW_S = 5, 120.0
GRACE_S = 1.0  # how long a request may go on after its deadline before the worker counts as hung
STOP_S = 5.0


class State(Enum):
    """What a device can be used for."""

    STARTING = "starting"
    READY = "ready"
    DOWN = "down"
    OUT = "out"
    CLOSED = "closed"


@dataclass(frozen=True)
class Place:
    """What a device is: its number, the cores of its process, and what to build there."""

    device: int
    cores: tuple[int, ...]
    build: Build


class Post:
    """A device that is kept alive."""

    def __init__(
        self,
        index: int,
        place: Place,
        changed: threading.Condition,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.index = index
        self.place = place
        self.state = State.STARTING
        self.model: Model | None = None
        self.process: WorkerProcess | None = None
        self.error: LiteError | None = None  # why it is not ready
        self.restarts = 0
        self._changed = changed
        self._clock = clock
        self._deaths: deque[float] = deque(maxlen=MOST_DEATHS)
        self._events: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._thread = threading.Thread(
            target=self._live, name=f"mslite-device-{place.device}", daemon=True
        )
        self._thread.start()

    def suspect(self, model: Model, request: int) -> None:
        """Look whether a worker that missed a deadline still works, and end it if not."""
        self._events.put(lambda: self._end_if_hung(model, request))

    def doubt(self, model: Model) -> None:
        """Look later whether a run that was stopped at its deadline really ended."""
        due_s = time.monotonic() + pool.GRACE_S + GRACE_S
        WATCHDOG.watch(due_s, lambda: self._events.put(lambda: self._end_if_stuck(model)))

    def stop(self) -> None:
        """End it, without waiting."""
        self._stopping.set()
        self._events.put(_nothing)

    def join(self, timeout_s: float) -> None:
        """Wait for its end."""
        self._thread.join(timeout_s)

    # --- the thread ---

    def _live(self) -> None:
        while not self._stopping.is_set():
            died = self._one_life()
            if self._stopping.is_set():
                break
            self._deaths.append(self._clock())
            is_out = (
                len(self._deaths) == MOST_DEATHS and self._deaths[-1] - self._deaths[0] <= WINDOW_S
            )
            self._set(State.OUT if is_out else State.DOWN, error=died)
            if is_out:
                _LOG.error(
                    "device %d is taken out after %d failures: %s",
                    self.place.device, MOST_DEATHS, died,
                )  # fmt: skip
                self._stopping.wait()
                break
            back_off_s = min(FIRST_BACK_OFF_S * 2 ** (len(self._deaths) - 1), LONGEST_BACK_OFF_S)
            _LOG.warning(
                "device %d starts again in %.1f s: %s", self.place.device, back_off_s, died
            )
            self._stopping.wait(back_off_s)
            self.restarts += 1
            self._set(State.STARTING, error=died)
        self._set(State.CLOSED, error=None)

    def _one_life(self) -> LiteError:
        """Start a process, build the model, and wait for its end; returns why it ended."""
        try:
            process = WorkerProcess(self.place.device, self.place.cores)
        except LiteError as exc:
            return exc
        process.when_ended(lambda: self._events.put(_nothing))
        self.process = process
        try:
            model = process.session.build(self.place.build)
        except LiteError as exc:
            if isinstance(exc, WorkerDiedError):
                process.kill()
                return process.died()
            process.stop(STOP_S)
            return exc.prefixed(f"device {self.place.device}: ")
        self._set(State.READY, model=model)
        while not self._stopping.is_set() and process.alive:
            self._events.get()()
        if self._stopping.is_set():
            process.stop(STOP_S)
        process.session.close()
        return process.died()

    def _set(
        self, state: State, *, model: Model | None = None, error: LiteError | None = None
    ) -> None:
        with self._changed:
            self.state, self.model, self.error = state, model, error
            self._changed.notify_all()

    def _end_if_hung(self, model: Model, request: int) -> None:
        process = self.process
        if process is None or self.model is not model or not process.alive:
            return  # it was another life
        try:
            hangs = model.session.cancel(request, GRACE_S, 2 * GRACE_S) == HANGS
        except LiteError as exc:
            _LOG.warning("device %d does not answer: %s", self.place.device, exc)
            hangs = True
        if hangs:
            _LOG.error("device %d hangs; its worker process is ended", self.place.device)
            process.kill()

    def _end_if_stuck(self, model: Model) -> None:
        process = self.process
        if process is None or self.model is not model or not process.alive:
            return
        try:
            stuck = json.loads(model.statistics(GRACE_S)).get("stuck", 0)
        except LiteError as exc:
            _LOG.warning("device %d does not answer: %s", self.place.device, exc)
            stuck = 1
        if stuck:
            _LOG.error(
                "a run of device %d cannot be stopped; its worker process is ended",
                self.place.device,
            )
            process.kill()


def _nothing() -> None:
    """An event that only makes the thread look around."""
