"""Runs models that take microseconds on the caller's own thread, without a queue.

Waking a thread takes longer than such a run, so a queue would only slow it down: callers compute on
their own threads, and what they take turns at is the interpreter's lock, whatever a pool does. The
lane takes no lock of its own either. Its counters are deques, whose append and pop are atomic; a
reader calls `settle`, under the pool's lock, which moves what has ended into the pool's books.

A caller enters before it asks whether the lane is closing, and `close` says so before it looks for
callers inside: one of the two always sees the other.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError

import numpy as np

from mindspore_lite.engines.base import Session, Stop
from mindspore_lite.errors import ClosedError, LiteError, StoppedError
from mindspore_lite.serving.batching.compute import checked_run, engine_error
from mindspore_lite.serving.call import Arrays, Call
from mindspore_lite.serving.core_share import CoreShare
from mindspore_lite.serving.request import State
from mindspore_lite.serving.scheduler import Scheduler

_MANY = 1024  # runs after which the books are brought up to date, so that they stay small


class InlineLane:
    """Runs one session of fixed sizes for any number of threads at once, and counts."""

    def __init__(
        self,
        session: Session,
        changed: Callable[[], None],
        clock_ns: Callable[[], int] = time.monotonic_ns,
        cores: CoreShare | None = None,
    ) -> None:
        self.closing = False
        self._stop = Stop()
        self._stops: set[Stop] = set()  # of runs that can be ended one by one
        self._session = session
        self._shapes = [info.shape for info in session.info.inputs]
        self._changed = changed  # called without any lock when the books should be looked at
        self._clock_ns = clock_ns
        self._cores = cores  # where runs are counted that did not ask for one
        self._inside: deque[None] = deque()
        self._done: deque[int] = deque()  # of priority 0
        self._ended: dict[tuple[State, int], deque[int]] = {(State.DONE, 0): self._done}

    def takes(self, inputs: Arrays) -> bool:
        """Whether they have the sizes that the lane was made for; others may take long.

        A pool that had more than its share of the cores has them queue.
        """
        if [array.shape for array in inputs] != self._shapes:
            return False
        return self._cores is None or not self._cores.is_heavy(self._clock_ns())

    def run(self, call: Call, stop: Stop | None = None) -> list[np.ndarray]:
        """Compute the outputs on the calling thread; `stop` ends this run alone."""
        self._inside.append(None)
        if stop is not None:
            self._stops.add(stop)
        start_ns = self._clock_ns()
        try:
            if self.closing:
                raise ClosedError("the runner is closed; build it again to use it")
            outputs = checked_run(self._session, call.inputs, stop or self._stop)
        except BaseException as exc:  # noqa: BLE001 - counted, and raised again
            raise self._failed(exc, self._clock_ns() - start_ns, call.priority)  # noqa: B904 - it has its cause
        finally:
            if stop is not None:
                self._stops.discard(stop)
        done = self._of(State.DONE, call.priority) if call.priority else self._done
        end_ns = self._clock_ns()
        done.append(end_ns - start_ns)
        if call.timing is not None:
            call.timing.ran_alone(start_ns, end_ns)
        if self._cores is not None:
            self._cores.used(end_ns - start_ns, end_ns)
        if len(done) > _MANY or self.closing:
            self._changed()
        return outputs

    def __len__(self) -> int:
        """How many callers were inside when the books were settled, or have come since."""
        return len(self._inside)

    def stop(self) -> None:
        """End the runs under way."""
        for stop in [self._stop, *self._stops]:
            stop.fire()

    def settle(self, scheduler: Scheduler) -> None:
        """Move what has ended into the books."""
        for (state, priority), ended in list(self._ended.items()):  # others may be added
            durations = []
            while ended:
                durations.append(ended.popleft())
                self._inside.pop()
            if durations:
                scheduler.book(state, durations, priority)

    def _of(self, state: State, priority: int) -> deque[int]:
        return self._ended.setdefault((state, priority), deque())

    def _failed(self, exc: BaseException, duration_ns: int, priority: int) -> BaseException:
        """Count a failure; returns what the caller shall see."""
        state = State.FAILED
        if isinstance(exc, StoppedError) and not self._stop.fired:  # its own was
            exc, state = CancelledError(), State.CANCELLED
        elif isinstance(exc, StoppedError):
            exc = ClosedError("the runner was closed, and the request did not end in time")
        elif isinstance(exc, Exception) and not isinstance(exc, LiteError):
            exc = engine_error(exc)
        if isinstance(exc, ClosedError):
            state = State.CLOSED
        self._of(state, priority).append(duration_ns)
        self._changed()
        return exc
