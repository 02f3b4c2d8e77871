"""One thread that watches deadlines and calls back when one passes.

Who owns what: callers add and cancel entries under `_changed`; the watching thread alone takes
entries that are due, and calls them after it released the lock, so a callback may take any lock. It
is a daemon, started by start() or the first entry, and again by those after a fork: a child
inherits neither the thread nor what was being watched. A callback may still be called while
`cancel` returns, so it must be harmless when late.
"""

from __future__ import annotations

import heapq
import logging
import math
import threading
import time
import weakref
from collections.abc import Callable
from itertools import count

from mindspore_lite.core.fork import after_fork_in_child

_LOG = logging.getLogger(__name__)
_FEW = 64  # cancelled entries not worth a clean-up; guess
_IDLE_S = 3600.0  # longest single wait; only keeps an infinite deadline from overflowing wait()


class Entry:
    """A deadline being watched; `act` is None once it was called or cancelled."""

    __slots__ = ("act",)

    def __init__(self, act: Callable[[], None]) -> None:
        self.act: Callable[[], None] | None = act


class Watchdog:
    """Calls back when a deadline passes. Safe from many threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition(threading.Lock())
        # the number decides between equal deadlines, so that entries are never compared
        self._heap: list[tuple[float, int, Entry]] = []
        self._numbers = count()
        self._cancelled = 0
        self._wakes_s = math.inf  # when the watching thread looks again by itself
        self._thread: threading.Thread | None = None
        _WATCHDOGS.add(self)

    def watch(self, deadline_s: float, act: Callable[[], None]) -> Entry:
        """Call `act` once `deadline_s`, a value of the clock, has passed."""
        with self._changed:
            entry = Entry(act)
            heapq.heappush(self._heap, (deadline_s, next(self._numbers), entry))
            if deadline_s < self._wakes_s:  # else the thread looks again in time anyway
                self._changed.notify()
            self._start()
        return entry

    def start(self) -> None:
        """Have the watching thread ready, for callers that add entries when none can be started."""
        with self._changed:
            self._start()

    def cancel(self, entry: Entry) -> None:
        """Forget a deadline; harmless when it has passed."""
        with self._changed:
            if entry.act is None:
                return
            entry.act = None
            self._cancelled += 1
            # far deadlines of quick calls would pile up: drop them when they are most of the heap
            if self._cancelled > _FEW and 2 * self._cancelled > len(self._heap):
                self._heap = [item for item in self._heap if item[2].act is not None]
                heapq.heapify(self._heap)
                self._cancelled = 0

    def fire_due(self) -> float | None:
        """Call what is due; return the seconds until the next deadline, None when there is none."""
        due = []
        with self._changed:
            wait_s = self._next_s()
            while wait_s is not None and wait_s <= 0:
                entry = heapq.heappop(self._heap)[2]
                if entry.act is not None:
                    due.append(entry.act)
                    entry.act = None
                else:
                    self._cancelled -= 1
                wait_s = self._next_s()
        for act in due:
            try:
                act()
            except Exception:  # noqa: BLE001 - the other deadlines must still be kept
                _LOG.exception("ending overdue work failed")
        return wait_s

    def __len__(self) -> int:
        return len(self._heap)

    def _next_s(self) -> float | None:
        return self._heap[0][0] - self._clock() if self._heap else None

    def _start(self) -> None:
        if self._thread is None:
            thread = threading.Thread(target=self._watch, name="mslite-deadlines", daemon=True)
            thread.start()
            self._thread = thread

    def _watch(self) -> None:
        while True:
            self.fire_due()
            with self._changed:
                # asked again under the lock: an entry added since fire_due() would not wake us
                wait_s = self._next_s()
                if wait_s is None or wait_s > 0:
                    wait_s = _IDLE_S if wait_s is None else min(wait_s, _IDLE_S)
                    self._wakes_s = self._clock() + wait_s
                    self._changed.wait(wait_s)

    def _start_over(self) -> None:
        self._changed = threading.Condition(threading.Lock())  # the old one may be held for ever
        self._heap = []
        self._cancelled = 0
        self._wakes_s = math.inf
        self._thread = None


def _after_fork() -> None:
    for watchdog in list(_WATCHDOGS):
        watchdog._start_over()


_WATCHDOGS: weakref.WeakSet[Watchdog] = weakref.WeakSet()
after_fork_in_child(_after_fork)
WATCHDOG = Watchdog()
