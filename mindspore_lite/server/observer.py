"""Sees every request at its end: counts it, keeps the slowest, notes what should be looked at.

    observer.answered(times)                before the answer is sent
    observer.sent(times, status, "http")    after
    observer.refused.add(413)               for answers that are errors, by HTTP status

All of it is bounded in memory, and may be used from any thread.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Any

from mindspore_lite.server.marks import Marks
from mindspore_lite.server.meter import REJECTED, RequestTimes
from mindspore_lite.server.tracing import Tracing

_KEPT = 20  # slowest requests of a minute
_MINUTES = 5  # for which they are kept
_MINUTE_NS = 60 * 10**9
_MOST_ID = 128  # characters
_MOST_STATUSES = 64


class Slowest:
    """The slowest requests of the last minutes, over all models. Safe from many threads.

    Nearly all requests are faster than `fastest_ns`, and need not be added until `until_ns`, by
    time.monotonic_ns(). Both may be read without a lock.
    """

    def __init__(self, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._clock_ns = clock_ns
        self._lock = threading.Lock()
        self._numbers = count()  # decides between equals: records cannot be compared
        # by minute: (ns, number, record), the fastest first
        self._minutes: deque[tuple[int, list[tuple[int, int, dict[str, Any]]]]] = deque(
            maxlen=_MINUTES
        )
        self.fastest_ns = -1
        self.until_ns = 0

    def add(self, times: RequestTimes, status: int) -> None:
        """Keep a request if it is one of the slowest."""
        total_ns = times.total_ns()
        with self._lock:
            minute = self._clock_ns() // _MINUTE_NS
            if not self._minutes or self._minutes[-1][0] < minute:
                self._minutes.append((minute, []))
                self.fastest_ns, self.until_ns = -1, (minute + 1) * _MINUTE_NS
            heap = self._minutes[-1][1]
            entry = total_ns, next(self._numbers), _record(times, status, total_ns / 1e6)
            if len(heap) < _KEPT:
                heapq.heappush(heap, entry)
            else:
                heapq.heappushpop(heap, entry)
            if len(heap) == _KEPT:
                self.fastest_ns = heap[0][0]

    def recent(self) -> list[dict[str, Any]]:
        """Those of the last minutes, the slowest first."""
        oldest = self._clock_ns() // _MINUTE_NS - _MINUTES
        with self._lock:
            found = [e for minute, heap in self._minutes if minute > oldest for e in heap]
        return [record for _, _, record in heapq.nlargest(_KEPT, found)]


class Refused:
    """Counts answers that are errors, by HTTP status. Safe from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[int, int] = {}

    def add(self, status: int) -> None:
        """Count one."""
        with self._lock:
            if status in self._counts or len(self._counts) < _MOST_STATUSES:
                self._counts[status] = self._counts.get(status, 0) + 1

    def counts(self) -> dict[int, int]:
        """All of them so far."""
        with self._lock:
            return dict(sorted(self._counts.items()))


class Observer:
    """What is known of requests beyond the counters of their models."""

    def __init__(self) -> None:
        self.marks = Marks()
        self.slowest = Slowest()
        self.refused = Refused()
        self.tracing: Tracing | None = None
        self.forms: dict[bool, object] = {}  # what metrics.py keeps from one scrape to the next

    def answered(self, times: RequestTimes, reason: str = "") -> None:
        """A request has its answer, which is not sent yet. Harmless when repeated.

        With a reason it is not wanted any more.
        """
        model = times.model
        if model is None or not model.meter.count(times, reason) or not times.reason:
            return
        if times.reason in REJECTED:
            self.marks.add(model.name, model.version, "rejected", times.reason)
        elif times.reason == "deadline":
            self.marks.add(model.name, model.version, "deadline")

    def sent(self, times: RequestTimes, status: int, protocol: str) -> None:
        """The answer was handed to the system, over "http" or "grpc"."""
        model = times.model
        if model is None:
            return
        times.sent_ns = now_ns = time.monotonic_ns()
        model.meter.count_sent(now_ns - times.encoded_ns)
        slowest = self.slowest
        if now_ns - times.began_ns > slowest.fastest_ns or now_ns >= slowest.until_ns:
            slowest.add(times, status)
        if self.tracing is not None:
            self.tracing.add(times, status, protocol)


def _record(times: RequestTimes, status: int, total_ms: float) -> dict[str, Any]:
    model = times.model
    assert model is not None
    return {
        "time": round(time.time(), 3),
        "model": model.name,
        "version": model.version,
        "id": times.id[:_MOST_ID],
        "ms": round(total_ms, 3),
        "status": status,
        "phases_ms": phases_ms(times),
    }


def phases_ms(times: RequestTimes) -> dict[str, float]:
    """How long each phase of a request took, in milliseconds."""
    return {name: round(ns / 1e6, 3) for name, ns in times.phases_ns().items()}
