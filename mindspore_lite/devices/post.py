"""One device: its worker process is started, watched, and started again when it dies.

    STARTING ── built ──▶ READY ── died ──▶ DOWN ── after the back-off ──▶ STARTING
        │                                     ▲ │
        └───── could not be built, or died ───┘ └── failed too often ──▶ OUT

A post has one thread, which alone changes its state, under the crew's lock; others read it under
that lock, and ask for things by `suspect`, `doubt` and `stop`. A device whose first build fails is
out at once. Later it is taken out after MOST_DEATHS within WINDOW_S, of which only the time counts
when it was ready: one that does not get ready again is taken out however long its builds take. When
this machine has no room for the process, that is no fault of the device: it is tried again for as
long as it takes.
"""

from __future__ import annotations

import json
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from mindspore_lite.devices.process import WorkerProcess
from mindspore_lite.devices.vigil import vigil
from mindspore_lite.errors import (
    LiteError,
    RequestTimeoutError,
    ResourceError,
    WorkerDiedError,
)
from mindspore_lite.pool import pool
from mindspore_lite.pool.deadline import WATCHDOG
from mindspore_lite.wire.bodies import Build
from mindspore_lite.wire.client import HANGS, Model

_LOG = logging.getLogger(__name__)

FIRST_BACK_OFF_S, LONGEST_BACK_OFF_S = 0.1, 10.0
MOST_DEATHS, WINDOW_S = 5, 120.0
GRACE_S = 1.0  # for a run that was called off to end
ANSWER_S = 3.0  # within which a worker says something, if it does not hang; guess
REAP_S = 5.0  # for a process whose connection broke to be seen dead
STOP_S = 5.0  # for a process to end when it is asked to


_INNER = "ModelParallelRunner's build from file failed! Error is "  # which no user has made


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


class Life(NamedTuple):
    """A process, and the model that was built there."""

    process: WorkerProcess
    model: Model

    def predict(
        self, arrays: Sequence[np.ndarray], timeout_s: float | None = None
    ) -> list[np.ndarray]:
        """Run the model once, aside from the requests of users."""
        try:
            return self.model.predict(arrays, timeout_s)
        except WorkerDiedError as exc:
            raise self.process.died(REAP_S) from exc


class Start(Protocol):
    """How a process is started: WorkerProcess, or what a test puts in its place."""

    def __call__(
        self, device: int, cores: tuple[int, ...], on_end: Callable[[], None]
    ) -> WorkerProcess:
        """A new process; `on_end` is called when it has ended."""


class Post:
    """A device that is kept alive, from start() to stop()."""

    def __init__(
        self,
        index: int,
        place: Place,
        changed: threading.Condition,
        start: Start = WorkerProcess,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.index = index
        self.place = place
        self.state = State.STARTING
        self.life: Life | None = None  # while it is ready
        self.process: WorkerProcess | None = None  # the last one
        self.error: Exception | None = None  # why it is not ready
        self.restarts = 0
        self.load = self.done = self.failed = 0  # parts of requests; the crew's books
        self._changed = changed
        self._start = start
        self._clock = clock
        self._was_ready = False
        self._ready_s = 0.0  # how long it was ready, in all its lives
        self._deaths: deque[float] = deque(maxlen=MOST_DEATHS)  # each as _ready_s was then
        self._refusals = 0  # in a row
        self._events: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._stopping = False
        self._thread = threading.Thread(
            target=self._live, name=f"mslite-device-{place.device}", daemon=True
        )

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def suspect(self, life: Life, request: int) -> None:
        """Call off a request, and end the worker if it does not answer."""
        self._events.put(partial(self._call_off, life, request))

    def doubt(self, life: Life) -> None:
        """Look later whether a run that was told to stop really ended, and end the worker if not.

        The pool in there gives runs some time before it calls them stuck.
        """
        due_s = time.monotonic() + pool.GRACE_S + GRACE_S
        look = partial(self._end_if_stuck, life)
        WATCHDOG.watch(due_s, partial(self._events.put, look))

    def stop(self) -> None:
        """End it, without waiting. Takes no lock: a garbage collection may call it anywhere."""
        self._stopping = True
        process = self.process
        if process is not None and self.state is not State.READY:
            process.kill("the runner was closed")  # its thread waits for it, and cannot ask it
        self._events.put(_nothing)

    def join(self, timeout_s: float) -> None:
        """Wait for its end."""
        if self._thread.ident is not None:
            self._thread.join(timeout_s)

    # --- the thread ---

    def _live(self) -> None:
        while True:
            error = self._one_life()
            if self._stopping:
                break
            back_off_s = self._back_off_s(error)
            if back_off_s is None:
                if self._was_ready:
                    _LOG.error("device %d is taken out: %s", self.place.device, error)
                self._set(State.OUT, error=error)
            else:
                _LOG.warning(
                    "device %d starts again in %.1f s: %s", self.place.device, back_off_s, error
                )
                self._set(State.DOWN, error=error)
            self._rest(back_off_s)
            if self._stopping:
                break
            self._set(State.STARTING, error=error, restarts=self.restarts + 1)
        self._set(State.CLOSED)

    def _one_life(self) -> Exception:
        """Start a process, build the model, and wait for its end; returns why it ended."""
        try:
            on_end = partial(self._events.put, _nothing)
            process = self._start(self.place.device, self.place.cores, on_end)
        except Exception as exc:  # noqa: BLE001 - whatever it is, it is why this device is down
            return exc
        self.process = process
        if self._stopping:  # stop() says so before it looks for the process: one sees the other
            process.kill("the runner was closed")
        try:
            session = process.session
            with vigil(process):
                model = session.build(self.place.build)
            self._serve(Life(process, model))
        except WorkerDiedError:
            process.hang_up()
            return process.died(REAP_S)
        except Exception as exc:  # noqa: BLE001
            process.stop(STOP_S)
            return _told(exc, self.place.device)
        process.stop(STOP_S)
        return process.died()

    def _serve(self, life: Life) -> None:
        """Be ready until the process ends, or shall end."""
        self._was_ready = True
        since_s = self._clock()
        self._set(State.READY, life=life)
        while not self._stopping and life.process.alive:
            event = self._events.get()
            try:
                event()
            except Exception:  # noqa: BLE001 - the device must be watched all the same
                _LOG.exception("device %d could not be looked after", self.place.device)
        self._ready_s += self._clock() - since_s

    def _back_off_s(self, error: Exception) -> float | None:
        """How long to wait before the next life; None: there is none."""
        if not self._was_ready:  # whoever builds the model is told, and decides
            return None
        if isinstance(error, ResourceError):
            self._refusals += 1
            return min(FIRST_BACK_OFF_S * 2.0 ** min(self._refusals - 1, 16), LONGEST_BACK_OFF_S)
        self._refusals = 0
        self._deaths.append(self._ready_s)
        recent = sum(self._ready_s - then <= WINDOW_S for then in self._deaths)
        return None if recent >= MOST_DEATHS else FIRST_BACK_OFF_S * 2.0 ** (recent - 1)

    def _rest(self, limit_s: float | None) -> None:
        """Wait so long, or until it shall end; other events are about a life that is over."""
        due_s = None if limit_s is None else time.monotonic() + limit_s
        while not self._stopping:
            try:
                left_s = None if due_s is None else max(0.0, due_s - time.monotonic())
                self._events.get(timeout=left_s)
            except queue.Empty:
                return

    def _set(
        self,
        state: State,
        *,
        life: Life | None = None,
        error: Exception | None = None,
        restarts: int | None = None,
    ) -> None:
        with self._changed:
            self.state, self.life, self.error = state, life, error
            self.restarts = self.restarts if restarts is None else restarts
            self._changed.notify_all()

    # --- events ---

    def _call_off(self, life: Life, request: int) -> None:
        if self.life is not life or not life.process.alive:
            return  # it was another life
        try:
            answer = life.model.session.cancel(request, GRACE_S, ANSWER_S)
        except (RequestTimeoutError, WorkerDiedError) as exc:
            self._end(life, f"it did not answer ({exc})")
        except LiteError as exc:  # there is no lane to ask over: that tells nothing about it
            _LOG.warning("device %d cannot be asked: %s", self.place.device, exc)
        else:
            if answer == HANGS:
                self.doubt(life)

    def _end_if_stuck(self, life: Life) -> None:
        if self.life is not life or not life.process.alive:
            return
        try:
            stuck = json.loads(life.model.statistics(ANSWER_S)).get("stuck", 0)
        except (RequestTimeoutError, WorkerDiedError) as exc:
            self._end(life, f"it did not answer ({exc})")
        except LiteError as exc:
            _LOG.warning("device %d cannot be asked: %s", self.place.device, exc)
        else:
            if stuck:
                self._end(life, "a run in it could not be stopped")

    def _end(self, life: Life, why: str) -> None:
        """End a process that is of no use; nothing is sent there any more."""
        _LOG.error("the worker process of device %d is ended: %s", self.place.device, why)
        text = f"the worker process of device {self.place.device} is being ended: {why}"
        self._set(State.DOWN, error=WorkerDiedError(text, device=self.place.device))
        life.process.kill(why)


def _nothing() -> None:
    """An event that only makes the thread look around."""


def _told(error: Exception, device: int) -> Exception:
    """The error of a build, saying on which device it happened rather than in which class."""
    error.args = (f"device {device}: {str(error).removeprefix(_INNER)}", *error.args[1:])
    return error
