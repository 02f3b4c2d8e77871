"""Models that may be closed while nobody uses them, and are started again by the next request.

    service = EvictableService(start)           start() makes the service, each time
    evictor = Evictor(services, quota_bytes)    looks once a second whether memory is short

To clients such a model is ready, closed or not: a request to one that is closed waits until it is
started, within its deadline. When the server has more memory than its quota, the models that were
not used for longest are closed, but none that has requests, that was used in the last seconds, or
whose weights were changed: these are in memory alone. The compile cache makes a start short.

`_lock` of a service guards its fields. The thread that starts it calls nothing else under it.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from mindspore_lite.core.deadline import WATCHDOG
from mindspore_lite.errors import (
    CancelledError,
    ClosedError,
    LiteError,
    ModelFileError,
    QueueFullError,
    RequestTimeoutError,
)
from mindspore_lite.server.allocator import trim
from mindspore_lite.server.models import PoolLike
from mindspore_lite.server.wrapped import WrappedService
from mindspore_lite.serving.call import Call
from mindspore_lite.serving.service import Ended
from mindspore_lite.serving.statistics import Occupancy, Statistics
from mindspore_lite.tensor import Tensor

_LOG = logging.getLogger(__name__)
_LOOK_S = 1.0  # how often memory is looked at
_IDLE_S = 5.0  # for which a model must not have been used; guess
_MOST_WAITING = 1000  # requests for a model that is being started; guess

Outputs = list[np.ndarray] | BaseException


@dataclass(eq=False)
class _Waiting:
    """A request for a model that is not there yet."""

    call: Call
    ended: Ended
    due_s: float | None
    cancel: Callable[[], bool] | None = None  # once it was passed on


class EvictableService(WrappedService):
    """A service that can be closed and started again; see the module's text."""

    def __init__(
        self, start: Callable[[], PoolLike], clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(start())
        self._start, self._clock = start, clock
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)  # a start has ended
        self._is_there, self._is_starting, self._is_closed = True, False, False
        self._failed = False  # the last start did
        self._users = 0
        self._waiting: list[_Waiting] = []
        self._last: Statistics | None = None  # of before it was closed
        self.used_s = clock()

    @property
    def is_evicted(self) -> bool:
        """Whether the next request has to start it."""
        return not self._is_there

    @property
    def is_up(self) -> bool:
        """Whether requests will be answered: also if the model has to be started for them."""
        return self.wrapped.is_up if self._is_there else not self._failed

    def evict(self, idle_s: float = 0.0) -> bool:
        """Close it, if nobody uses it; whether that was done."""
        if not self._is_there:
            return False
        last = self.wrapped.statistics()
        with self._lock:
            is_used = self._users or self._clock() - self.used_s < idle_s
            if is_used or not self._is_there or self._is_closed or self.wrapped.weights_version:
                return False
            self._is_there, self._last = False, last
        self.wrapped.close(None)
        return True

    # --- requests ---

    def run(self, call: Call) -> list[np.ndarray]:
        """Compute one call; the calling thread waits."""
        if self._enter():
            try:
                return self.wrapped.run(call)
            finally:
                self._leave()
        found: queue.SimpleQueue[Outputs] = queue.SimpleQueue()
        cancel = self.submit_or_run(call, found.put)
        if call.known is not None:

            def give_up() -> None:
                if cancel():
                    found.put(CancelledError("the request was cancelled"))

            call.known(give_up)
        outputs = found.get()
        if isinstance(outputs, BaseException):
            raise outputs
        return outputs

    def submit_or_run(self, call: Call, ended: Ended) -> Callable[[], bool]:
        """Queue one call; the calling thread goes on."""
        if self._enter():
            return self._passed_on(call, ended)
        due_s = None if call.timeout_s is None else time.monotonic() + call.timeout_s
        waiting = _Waiting(call, ended, due_s)
        with self._lock:
            if self._is_closed:
                raise ClosedError("the model was closed")
            if len(self._waiting) >= _MOST_WAITING:
                raise QueueFullError(f"{_MOST_WAITING} requests wait for the model to be started")
            self._waiting.append(waiting)
            self._start_soon()
        if due_s is not None:
            WATCHDOG.watch(due_s, lambda: self._too_late(waiting))
        return lambda: self._cancelled(waiting)

    def _passed_on(self, call: Call, ended: Ended) -> Callable[[], bool]:
        uses = [True]  # taken out once, by whichever comes first: the end, or a cancellation

        def leave() -> None:
            with suppress(IndexError):
                uses.pop()
                self._leave()

        def done(found: Outputs) -> None:
            leave()
            ended(found)

        try:
            cancel = self.wrapped.submit_or_run(call, done)
        except BaseException:
            leave()
            raise

        def cancelled() -> bool:
            if not cancel():
                return False
            leave()
            return True

        return cancelled

    def _enter(self) -> bool:
        """Use the model, if it is there."""
        with self._lock:
            if not self._is_there:
                return False
            self._users += 1
            self.used_s = self._clock()
            return True

    def _leave(self) -> None:
        with self._lock:
            self._users -= 1
            self.used_s = self._clock()

    def _taken(self, waiting: _Waiting) -> bool:
        """Take a request out of those that wait; False if it waits no more."""
        with self._lock:
            if waiting not in self._waiting:
                return False
            self._waiting.remove(waiting)
            return True

    def _too_late(self, waiting: _Waiting) -> None:
        if self._taken(waiting):
            error = RequestTimeoutError("the deadline passed while the model was being started")
            error.was_waiting = True
            waiting.ended(error)

    def _cancelled(self, waiting: _Waiting) -> bool:
        return self._taken(waiting) or (waiting.cancel is not None and waiting.cancel())

    # --- starting again ---

    def _start_soon(self) -> None:
        if self._is_starting or self._is_there:
            return
        self._is_starting = True
        threading.Thread(target=self._started_again, name="mslite-start", daemon=True).start()

    def _started_again(self) -> None:
        error: Exception | None = None
        try:
            service = self._start()
            if (service.inputs, service.outputs) != (self.inputs, self.outputs):
                service.close(0.0)
                raise ModelFileError("the model file has changed; load the model again")
        except Exception as exc:  # noqa: BLE001 - those who wait are told
            _LOG.error("a model that was evicted cannot be started: %s", exc)
            error = exc
        with self._lock:
            waiting, self._waiting = self._waiting, []
            self._is_starting, self._failed = False, error is not None
            is_closed = self._is_closed
            self._changed.notify_all()
            if error is None and not is_closed:
                self.wrapped, self._is_there = service, True
                self._users += len(waiting)
        if error is None and is_closed:
            service.close(0.0)
        for one in waiting:
            if error is not None or is_closed:
                one.ended(error or ClosedError("the model was closed"))
            else:
                self._go_on(one)

    def _go_on(self, waiting: _Waiting) -> None:
        call = waiting.call
        if waiting.due_s is not None:
            call.timeout_s = max(1e-3, waiting.due_s - time.monotonic())
        try:
            waiting.cancel = self._passed_on(call, waiting.ended)
        except LiteError as exc:
            waiting.ended(exc)

    # --- the rest ---

    def update_weights(self, groups: list[list[Tensor]]) -> None:
        """Change weights; from then on it is not evicted any more."""
        self._wait_there()
        try:
            self.wrapped.update_weights(groups)
        finally:
            self._leave()

    def _wait_there(self) -> None:
        """Use the model, which is started if it is not there.

        Raises:
            LiteError: It cannot be started.
        """
        while not self._enter():
            with self._changed:
                if self._is_closed:
                    raise ClosedError("the model was closed")
                self._start_soon()
                self._changed.wait_for(lambda: not self._is_starting)
                if self._failed:
                    raise LiteError("the model cannot be started; the server's log says why")

    def statistics(self) -> Statistics:
        """What was done so far; of one that is closed, what was done before."""
        last = self._last
        return self.wrapped.statistics() if self._is_there or last is None else last

    def occupancy(self) -> Occupancy:
        """What goes on right now."""
        if self._is_there:
            return self.wrapped.occupancy()
        return Occupancy((), len(self._waiting), _MOST_WAITING, 0)

    @property
    def weights_version(self) -> int:
        """How many times the weights were changed; 0 of one that is closed."""
        return self.wrapped.weights_version if self._is_there else 0

    @property
    def pids(self) -> tuple[int, ...]:
        """Of its processes, if it has some of its own."""
        return tuple(super().pids) if self._is_there else ()

    def examine(self) -> str:
        """Why it cannot compute now; "" of one that is closed, which a request starts."""
        return super().examine() if self._is_there else ""

    def close(self, drain_s: float | None) -> None:
        """Finish what was taken, release all."""
        with self._lock:
            self._is_closed = True
            waiting, self._waiting = self._waiting, []
            is_there = self._is_there
        for one in waiting:
            one.ended(ClosedError("the model was closed"))
        if is_there:
            self.wrapped.close(drain_s)


Named = tuple[str, str, EvictableService]  # name and version of the model


class Evictor:
    """Keeps the memory of a server under its quota, as far as idle models allow."""

    def __init__(
        self,
        services: Callable[[], Iterable[Named]],
        resident: Callable[[], int],
        quota_bytes: int,
        mark: Callable[[str, str, str, str], None] = lambda *_: None,
        trimmed: Callable[[], None] = trim,
    ) -> None:
        self._services, self._resident, self._quota = services, resident, quota_bytes
        self._mark, self._trim = mark, trimmed
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mslite-evictor", daemon=True)

    def start(self) -> None:
        """Look once a second."""
        self._thread.start()

    def close(self) -> None:
        """Look no more."""
        self._is_over.set()

    def look(self, idle_s: float = _IDLE_S) -> int:
        """Close models until there is less memory than the quota; how many."""
        count = 0
        for name, version, service in sorted(self._services(), key=lambda one: one[2].used_s):
            if self._resident() <= self._quota:
                break
            if service.evict(idle_s):
                self._trim()
                self._mark(name, version, "unload", "evicted: memory is short")
                _LOG.info("model %s version %s was evicted: memory is short", name, version)
                count += 1
        return count

    def _run(self) -> None:
        while not self._is_over.wait(_LOOK_S):
            try:
                self.look()
            except LiteError as exc:
                _LOG.warning("a model could not be evicted: %s", exc)
