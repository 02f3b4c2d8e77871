"""One request in parts: which wait, which are under way, and their results.

It is computed on one thread, its caller's, which alone changes it; only cancel() may come from
another, and what both touch is under `_lock`. It ends once: finished, or cancelled.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mindspore_lite.errors import CancelledError, RequestTimeoutError
from mindspore_lite.remote.devices.supervisor import Life, Supervisor
from mindspore_lite.remote.devices.weights import Weights
from mindspore_lite.remote.wire.client import LATE_S, Pending
from mindspore_lite.serving.call import Arrays, Call

Result = list[np.ndarray] | Exception


class Flight(NamedTuple):
    """A part under way."""

    supervisor: Supervisor
    life: Life
    call: Pending


class SplitRequest:
    """The parts of a request, and where they are.

    Args:
        parts: The inputs of each.
        call: The whole request: its time, which begins now, and what else counts for every part.
        retries: How often a part that was lost with its worker is tried elsewhere.
        keeps_going: Whether the other parts are computed when one fails.
    """

    def __init__(
        self,
        parts: Sequence[Arrays],
        call: Call | None = None,
        *,
        retries: int = 0,
        keeps_going: bool = False,
    ) -> None:
        self.parts = parts
        self._call = call or Call(())
        self.timeout_s = timeout_s = self._call.timeout_s
        self.retries = retries
        self.keeps_going = keeps_going
        self.waiting = deque(range(len(parts)))
        self.flying: dict[int, Flight] = {}  # by part
        self.held: list[Pending] = []  # whose outputs lie in shared memory still
        self.results: list[Result | None] = [None] * len(parts)
        self.lost_at: dict[int, list[int]] = {}  # for each part, the supervisors that lost it
        self.weights: Weights | None = None  # that all parts are computed with, once one is sent
        self.is_cancelled = False
        self._is_over = False
        self._due_s = None if timeout_s is None else time.monotonic() + timeout_s
        self._lock = threading.Lock()

    def left_s(self) -> float | None:
        """Until the deadline; None for ever."""
        return None if self._due_s is None else max(0.0, self._due_s - time.monotonic())

    def call(self, part: int) -> Call:
        """What is to be sent for a part, now."""
        return self._call.part(self.parts[part], self.left_s())

    def patience_s(self, most_s: float) -> float:
        """How long to wait for something else: not much beyond the deadline."""
        left_s = self.left_s()
        return most_s if left_s is None else min(left_s + LATE_S, most_s)

    def late(self, why: str) -> RequestTimeoutError:
        """The error of a deadline that passed."""
        limit_s = "None" if self.timeout_s is None else f"{self.timeout_s:g}"
        return RequestTimeoutError(f"no answer within timeout_s={limit_s}: {why}")

    def silent(self, supervisors: Sequence[Supervisor]) -> RequestTimeoutError:
        """The error of a deadline that passed without a word from devices."""
        devices = sorted({supervisor.place.device for supervisor in supervisors})
        told = f"device {devices[0]} is" if len(devices) == 1 else f"devices {devices} are"
        return self.late(f"{told} silent")

    def took_off(self, part: int, flight: Flight) -> None:
        """A part was sent."""
        with self._lock:
            self.flying[part] = flight
            if self.is_cancelled:  # before it could be seen here
                flight.call.interrupt()

    def landed(self, part: int) -> None:
        """A part was answered; from here on cancel() does not touch its connection."""
        with self._lock:
            if self.is_cancelled:  # and the connection is of no more use, whatever came
                raise _cancelled()
            del self.flying[part]

    def abandoned(self) -> list[Flight]:
        """The parts that are still under way, and whose answers are not wanted."""
        with self._lock:
            found, self.flying = list(self.flying.values()), {}
            return found

    def begin_anew(self) -> None:
        """Forget what was computed, but for errors; nothing may be under way."""
        for call in self.held:
            call.release()
        self.held = []
        self.results = [r if isinstance(r, Exception) else None for r in self.results]
        self.waiting = deque(part for part, result in enumerate(self.results) if result is None)
        self.weights = None

    def cancel(self) -> bool:
        """End it, from any thread: the computing one gets CancelledError. Whether it was this call.

        Connections that were woken so are of no more use.
        """
        with self._lock:
            if self._is_over:
                return False
            self._is_over = self.is_cancelled = True
            for flight in self.flying.values():
                flight.call.interrupt()
            return True

    def finish(self) -> None:
        """It is over, well or not; from here on it cannot be cancelled."""
        with self._lock:
            if self.is_cancelled:
                raise _cancelled()
            self._is_over = True

    def forget(self) -> None:
        """Let go of the arrays: a Future, which is kept for longer, refers to this."""
        self.parts, self.results, self.held = (), [], []

    def check(self) -> None:
        """Raise CancelledError if it was cancelled."""
        if self.is_cancelled:
            raise _cancelled()


def _cancelled() -> CancelledError:
    return CancelledError("the request was cancelled")
