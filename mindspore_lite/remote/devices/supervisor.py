"""Keeps one device alive: starts its worker process, watches it, and restarts it.

    STARTING ── built ──▶ READY ── died ──▶ DOWN ── after the back-off ──▶ STARTING
        │                                     ▲ │
        └───── could not be built, or died ───┘ └── failed too often ──▶ OUT (──▶ STARTING)

A supervisor has one thread, which alone changes its state, under the dispatcher's lock; others read
it under that lock, and ask for things by `suspect`, `doubt`, `retire` and `stop`. When weights
change, the dispatcher has another model derived in the process of a supervisor that is ready, and
exchanges the life of that for the new one; the old one stays for as long as requests need it.

A device whose first build fails is out at once. Later it is taken out after MOST_DEATHS within
WINDOW_S, of which only the time counts when it was ready: one that does not get ready again is
taken out however long its builds take. One that `keeps_trying` is only out for a while: requests
fail meanwhile, rather than wait for a process that ends each time. When this machine has no room
for the process, that is no fault of the device: it is tried again for as long as it takes.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from mindspore_lite.core.deadline import WATCHDOG
from mindspore_lite.core.json_text import read_json
from mindspore_lite.errors import (
    ClosedError,
    InputError,
    LiteError,
    ModelFileError,
    RequestTimeoutError,
    ResourceError,
    WorkerDiedError,
)
from mindspore_lite.remote.devices.heartbeat import Heartbeat
from mindspore_lite.remote.devices.process import WorkerProcess
from mindspore_lite.remote.devices.start_watch import start_watched
from mindspore_lite.remote.devices.weights import Weights
from mindspore_lite.remote.wire.bodies import Build, Group
from mindspore_lite.remote.wire.client import HANGS, Model
from mindspore_lite.remote.wire.faults import RUNNER_FAILED
from mindspore_lite.serving import pool, update

T = TypeVar("T")

_LOG = logging.getLogger(__name__)

FIRST_BACK_OFF_S, LONGEST_BACK_OFF_S = 0.1, 10.0
MOST_DEATHS, WINDOW_S = 5, 120.0
GRACE_S = 1.0  # for a run that was called off to end
ANSWER_S = 3.0  # within which a worker says something, if it does not hang; guess
REAP_S = 5.0  # for a process whose connection broke to be seen dead
STOP_S = 5.0  # for a process to end when it is asked to
EVERY_S = 10.0  # how often a worker with requests is asked whether it is there
SILENT_S = 60.0  # after which one that neither answers nor computes is ended; guess


_INNER = (RUNNER_FAILED, update.FAILED)  # our own words stand in front


class State(Enum):
    """What a device can be used for."""

    STARTING = "starting"
    READY = "ready"
    DOWN = "down"
    OUT = "out"
    CLOSED = "closed"


@dataclass(frozen=True)
class DevicePlace:
    """What a device is: its number, the cores of its process, and what to build there."""

    device: int
    cores: tuple[int, ...]
    build: Build
    stamp: tuple[int, ...] = ()  # how the file looked when the runner was built; (): any will do
    keeps_trying: bool = False  # after it failed too often, it is started again all the same
    name: str = ""  # what messages call it, if not by its number

    @property
    def title(self) -> str:
        """What messages call it."""
        return self.name or f"device {self.device}"

    def check_unchanged(self) -> None:
        """Raise when the file that was built is another by now: devices must not differ."""
        try:
            is_same = not self.stamp or stamp(self.build.path) == self.stamp
        except OSError:
            is_same = False
        if not is_same:
            raise ModelFileError(f"{self.build.path!r} changed since it was built; build it again")


def stamp(path: str) -> tuple[int, ...]:
    """What distinguishes one state of a file from another."""
    found = os.stat(path)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


class Life(NamedTuple):
    """A process, a model that was built there, and the weights that this has."""

    process: WorkerProcess
    model: Model
    weights: Weights

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


class Supervisor:
    """A device that is kept alive, from start() to stop()."""

    def __init__(
        self,
        index: int,
        place: DevicePlace,
        changed: threading.Condition,
        start: Start = WorkerProcess,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.index = index
        self.place = place
        self.state = State.STARTING
        self.life: Life | None = None  # while it is ready
        self.old: list[Life] = []  # in the same process, with weights of before; requests need them
        self.wanted = Weights()  # those to be ready with; the dispatcher's
        self.process: WorkerProcess | None = None  # the last one
        self.error: Exception | None = None  # why it is not ready
        self.restarts = 0
        self.load = self.done = self.failed = 0  # parts of requests; the dispatcher's books
        self._changed = changed
        self._start = start
        self._clock = clock
        self._was_ready = False
        self._ready_s = 0.0  # how long it was ready, in all its lives
        self._deaths: deque[float] = deque(maxlen=MOST_DEATHS)  # each as _ready_s was then
        self._refusals = 0  # in a row
        self._events: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
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
        """Check later whether a run that was stopped really ended, and end the worker if not.

        The pool in there gives runs some time before it calls them stuck.
        """
        due_s = time.monotonic() + pool.GRACE_S + GRACE_S
        look = partial(self._end_if_stuck, life)
        WATCHDOG.watch(due_s, partial(self._events.put, look))

    def give_up(self, life: Life, why: str) -> None:
        """End the worker, which is known to be of no use; another is started."""
        self._events.put(partial(self._give_up, life, why))

    def made(self, process: WorkerProcess, weights: Weights) -> Life:
        """Build the model in a process, which is ended if it hangs, and give it these weights."""
        session = process.session
        with start_watched(process):
            life = Life(process, session.build(self.place.build), weights)
            try:
                self.place.check_unchanged()
                if weights.groups:
                    life.model.update_weights(weights.groups)
            except BaseException:
                self.retire(life)
                raise
            return life

    def derived(self, life: Life, groups: Sequence[Group], weights: Weights) -> Life:
        """The model of a life with other weights, in the same process; this ends if it hangs.

        Groups are what leads from the weights of the life to these.
        """
        with start_watched(life.process):
            return Life(life.process, life.model.derived(groups), weights)

    def has(self, life: Life | None) -> bool:
        """Whether a life is of the process that is in use."""
        return self.life is not None and life is not None and self.life.process is life.process

    def life_with(self, weights: Weights) -> Life | None:
        """The model here that has these weights. With the lock held."""
        for life in (self.life, *self.old):
            if life is not None and life.weights is weights:
                return life
        return None

    def exchange(self, life: Life) -> None:
        """Have another model in the process of the present one be used. With the lock held."""
        assert self.life is not None
        self.old.append(self.life)
        self.life = life

    def dismiss(self, weights: Weights) -> None:
        """No request needs weights of before any more. With the lock held."""
        for life in [life for life in self.old if life.weights is weights]:
            self.old.remove(life)
            self.retire(life)

    def retire(self, life: Life) -> None:
        """Close a model that is not needed any more."""
        self._events.put(partial(self._retire, life))

    def await_end(self, life: Life, timeout_s: float | None = None) -> bool:
        """Wait until a process that has ended is seen to have; whether it was in time."""
        with self._changed:
            return self._changed.wait_for(lambda: not self.has(life), timeout_s)

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
                    _LOG.error("%s is taken out: %s", self.place.title, error)
                self._set(State.OUT, error=error)
                if self._was_ready and self.place.keeps_trying:
                    back_off_s = LONGEST_BACK_OFF_S
            else:
                _LOG.warning("%s starts again in %.1f s: %s", self.place.title, back_off_s, error)
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
            self._serve(process)
        except WorkerDiedError:
            process.hang_up()
            return process.died(REAP_S)
        except Exception as exc:  # noqa: BLE001
            process.stop(STOP_S)
            return told(exc, self.place.device)
        process.stop(STOP_S)
        return process.died()

    def _serve(self, process: WorkerProcess) -> None:
        """Build the model, and be ready until the process ends, or should end."""
        self._get_ready(process)
        self._was_ready = True
        since_s = self._clock()
        heartbeat = Heartbeat(process)
        while not self._stopping and process.alive:
            try:
                self._next_event(
                    heartbeat
                )()  # and keep nothing of it: it may refer to large weights
            except Exception:  # noqa: BLE001 - the device must be watched all the same
                _LOG.exception("%s could not be looked after", self.place.title)
        self._ready_s += self._clock() - since_s

    def _next_event(self, heartbeat: Heartbeat) -> Callable[[], object]:
        """What to do next: check on the worker when there was no event for some time."""
        try:
            return self._events.get(timeout=EVERY_S)
        except queue.Empty:
            return partial(self._look_after, heartbeat)

    def _get_ready(self, process: WorkerProcess) -> None:
        """Be ready with the weights that count then: they may change while the model is built."""
        while True:
            life = self.made(process, self.wanted)
            with self._changed:
                if life.weights is self.wanted:
                    self._set(State.READY, life=life)
                    return
            self.retire(life)

    def _back_off_s(self, error: Exception) -> float | None:
        """How long to wait before the next life; None: there is none."""
        if not self._was_ready:  # the caller that builds the model gets the error, and decides
            return None
        if isinstance(error, ResourceError):
            self._refusals += 1
            return min(FIRST_BACK_OFF_S * 2.0 ** min(self._refusals - 1, 16), LONGEST_BACK_OFF_S)
        self._refusals = 0
        self._deaths.append(self._ready_s)
        recent = sum(self._ready_s - then <= WINDOW_S for then in self._deaths)
        return None if recent >= MOST_DEATHS else FIRST_BACK_OFF_S * 2.0 ** (recent - 1)

    def _rest(self, limit_s: float | None) -> None:
        """Wait so long, or until it should end; other events are about a life that is over."""
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
            self.old = []
            self.restarts = self.restarts if restarts is None else restarts
            self._changed.notify_all()

    # --- events ---

    def _call_off(self, life: Life, request: int) -> None:
        if self._ask(life, lambda: life.model.session.cancel(request, GRACE_S, ANSWER_S)) == HANGS:
            self.doubt(life)

    def _end_if_stuck(self, life: Life) -> bool:
        """End a worker in which a run could not be stopped; whether one still runs."""
        found = self._ask(life, lambda: read_json(life.model.statistics(ANSWER_S))) or {}
        if found.get("stuck"):
            self._end(life, "a run in it could not be stopped")
        return bool(found.get("running"))

    def _look_after(self, heartbeat: Heartbeat) -> None:
        """End a worker that has requests, and neither answers nor computes."""
        life = self.life
        if life is None or not self.load:  # no request waits for it
            heartbeat.forget()
            return
        try:
            silent_s = heartbeat.ask_for_work()
        except LiteError as exc:  # there is no lane to ask over: that tells nothing about it
            _LOG.warning("%s cannot be asked: %s", self.place.title, exc)
            return
        if silent_s >= SILENT_S:
            self._end(life, f"it did not answer for {silent_s:.1f} s, nor did it compute")

    def _give_up(self, life: Life, why: str) -> None:
        if self.has(life):
            self._end(life, why)

    def _retire(self, life: Life) -> None:
        if self._end_if_stuck(life):  # it was called off, and ends soon or is stuck
            again = partial(self.retire, life)
            WATCHDOG.watch(time.monotonic() + GRACE_S, again)
        else:
            self._ask(life, lambda: life.model.close(0.0, ANSWER_S))

    def _ask(self, life: Life, question: Callable[[], T]) -> T | None:
        """What a worker answers; one that does not is ended. None: that, or it was another life."""
        if not self.has(life) or not life.process.alive:
            return None
        try:
            return question()
        except (RequestTimeoutError, WorkerDiedError) as exc:
            self._end(life, f"it did not answer ({exc})")
        except ClosedError:  # the model went with its weights, or the worker is about to end
            pass
        except LiteError as exc:  # there is no lane to ask over: that tells nothing about it
            _LOG.warning("%s cannot be asked: %s", self.place.title, exc)
        return None

    def _end(self, life: Life, why: str) -> None:
        """End a process that is of no use; nothing is sent there any more."""
        _LOG.error("the worker process of %s is ended: %s", self.place.title, why)
        text = f"the worker process of {self.place.title} is being ended: {why}"
        self._set(State.DOWN, error=WorkerDiedError(text, device=self.place.device))
        life.process.kill(why)


def _nothing() -> None:
    """An event that only makes the thread look around."""


def told(error: Exception, device: int) -> Exception:
    """An error of a worker, saying on which device it happened rather than in which class.

    What the caller gave is as wrong on every other device.
    """
    text = str(error)
    for inner in _INNER:
        text = text.removeprefix(inner)
    where = "" if isinstance(error, InputError) else f"device {device}: "
    error.args = (f"{where}{text}", *error.args[1:])
    return error
