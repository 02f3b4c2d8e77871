"""What happened to models, for pages and reports: loads, updates, faults, rejections.

    marks.add("digits", "2", "load")
    marks.recent()      the oldest first

Memory is bounded. Things that may happen thousands of times a second are kept apart from those that
are rare, and those of one second count as one, so that a flood of them hides nothing.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

RARE = ("load", "unload", "reload_failed", "weights", "unready")
FREQUENT = ("rejected", "deadline")
_MOST = 256  # of each kind that are kept
_MOST_MODELS = 1024  # versions whose last update is known
_MOST_TEXT = 300  # characters
_TOGETHER_S = 1.0  # within which equal frequent marks are one


class Marks:
    """The marks of a server. Safe from many threads."""

    def __init__(
        self,
        wall_s: Callable[[], float] = time.time,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wall_s, self._clock_s = wall_s, clock_s
        self._lock = threading.Lock()
        self._rare: deque[dict[str, Any]] = deque(maxlen=_MOST)
        self._frequent: deque[dict[str, Any]] = deque(maxlen=_MOST)
        self._last: dict[tuple[str, str, str], tuple[float, dict[str, Any]]] = {}
        self._counts = dict.fromkeys((*RARE, *FREQUENT), 0)
        self._updated: dict[tuple[str, str], float] = {}

    def add(self, model: str, version: str, what: str, text: str = "") -> None:
        """Note something.

        Args:
            model: Its name.
            version: Of the model.
            what: One of RARE and FREQUENT, or another word that is as rare.
            text: More about it, for people.
        """
        now_s, key = self._clock_s(), (model, version, what)
        with self._lock:
            if what in FREQUENT:
                last = self._last.get(key)
                if last is not None and now_s - last[0] < _TOGETHER_S:
                    last[1]["count"] += 1
                    return
            self._counts[what] = self._counts.get(what, 0) + 1
            mark: dict[str, Any] = {
                "time": round(self._wall_s(), 3),
                "model": model,
                "version": version,
                "what": what,
                "text": text[:_MOST_TEXT],
                "count": 1,
            }
            if what in FREQUENT:
                if len(self._last) >= _MOST:
                    self._last.clear()
                self._last[key] = now_s, mark
                self._frequent.append(mark)
                return
            self._rare.append(mark)
            if what == "load":  # the weights are those of its file again
                self._updated.pop((model, version), None)
            if what == "weights":
                if len(self._updated) >= _MOST_MODELS:
                    self._updated.clear()
                self._updated[model, version] = mark["time"]

    def recent(self) -> list[dict[str, Any]]:
        """All that are kept, the oldest first."""
        with self._lock:
            found = [dict(mark) for mark in (*self._rare, *self._frequent)]
        return sorted(found, key=lambda mark: float(mark["time"]))

    def counts(self) -> dict[str, int]:
        """How many there were of each kind, in all; of FREQUENT, seconds in which they were."""
        with self._lock:
            return dict(self._counts)

    def weights_updated(self, model: str, version: str) -> float:
        """When weights were last changed, in seconds since 1970; 0.0 if not since the load."""
        return self._updated.get((model, version), 0.0)
