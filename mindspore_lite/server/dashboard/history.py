"""The last quarter of an hour: what `numbers` counted, second by second, for those who watch.

    history.add(numbers(core), time.monotonic())     once a second (sampler.py)
    history.described(numbers(core))                  rates and percentiles of the last minute added
    stop = history.follow(listener)                   listener(bytes), after each sample

Counters only grow, so a sample is the difference to the one before; one that shrank belongs to a
model that was loaded anew, and begins at 0. Time is that of a clock that never jumps.

The sampler adds and the HTTP port reads, on threads of their own: one lock guards everything here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mindspore_lite.server.dashboard.events import event_bytes
from mindspore_lite.server.dashboard.ring import Ring, columns_of, percentile

KEPT_S = 900  # samples of a model, one a second
RATE_S, WINDOW_S = 10.0, 60.0  # what a rate is the mean of; of what percentiles and errors are
_SPARK_S = 300.0  # that the small pictures in the table show
_SPARK_POINTS = 60
_MARKS = 20  # of each kind that an event brings
_MOST_MODELS = 200  # versions with a history, 200 KB each; guess

Numbers = dict[str, Any]
Listener = Callable[[bytes], None]


class History:
    """What the models did lately."""

    def __init__(self, kept: int = KEPT_S) -> None:
        self._kept = kept
        self._lock = threading.Lock()
        self._rings: dict[tuple[str, str], Ring] = {}
        self._listeners: list[Listener] = []
        self._last_s: float | None = None

    def add(self, numbers: Numbers, now_s: float) -> None:
        """Take a sample, and give it to all who follow."""
        with self._lock:
            took_s = 1.0 if self._last_s is None else max(now_s - self._last_s, 1e-3)
            self._last_s = now_s
            seconds: list[dict[str, Any] | None] = []
            for model in numbers["models"]:
                ring = self._ring(model, now_s)
                seconds.append(None if ring is None else ring.add(model, now_s, took_s))
            self._drop_old(now_s)
            listeners = list(self._listeners)
        if not listeners:
            return
        event = self.described(numbers)
        event["at"] = round(now_s, 3)
        event["marks"] = _fewer(numbers["marks"])
        for model, second in zip(event["models"], seconds, strict=True):
            model["second"] = second
        data = event_bytes("numbers", event)
        for listener in listeners:
            listener(data)

    def described(self, numbers: Numbers) -> Numbers:
        """The numbers, and for each model what it did in the last minute, as `recent`."""
        with self._lock:
            models = [{**model, "recent": self._recent(model)} for model in numbers["models"]]
        return {**numbers, "models": models}

    def follow(self, listener: Listener) -> Callable[[], bool]:
        """Be told of every sample, on the sampler's thread; the result ends that."""
        with self._lock:
            self._listeners.append(listener)

        def stop() -> bool:
            with self._lock:
                if listener not in self._listeners:
                    return False
                self._listeners.remove(listener)
                return True

        return stop

    @property
    def followers(self) -> int:
        """How many follow."""
        return len(self._listeners)

    def sparks(self) -> list[dict[str, Any]]:
        """For every model requests a second in the last minutes, in few points, and its slots."""
        with self._lock:
            return [
                {
                    "name": name,
                    "version": version,
                    "rate": self._spark(ring),
                    "slots": ring.slots(),
                }
                for (name, version), ring in self._rings.items()
            ]

    def of(self, name: str, version: str) -> dict[str, Any] | None:
        """All samples of a model, by column; None if there is none."""
        with self._lock:
            ring = self._rings.get((name, version))
            return None if ring is None else ring.described()

    def _ring(self, model: Mapping[str, Any], now_s: float) -> Ring | None:
        key = (model["name"], model["version"])
        ring, columns = self._rings.get(key), columns_of(model)
        if ring is None or ring.columns != columns:
            if ring is None and len(self._rings) >= _MOST_MODELS and not self._drop_gone(now_s):
                return None
            ring = self._rings[key] = Ring(columns, model["latency"]["bounds_ms"], self._kept)
        return ring

    def _drop_gone(self, now_s: float) -> bool:
        """Make room by what was unloaded longest ago; whether there was any."""
        gone = [(ring.last_s, key) for key, ring in self._rings.items() if ring.last_s < now_s - 3]
        if gone:
            del self._rings[min(gone)[1]]
        return bool(gone)

    def _drop_old(self, now_s: float) -> None:
        old = [key for key, ring in self._rings.items() if ring.last_s < now_s - self._kept]
        for key in old:
            del self._rings[key]

    def _recent(self, model: Mapping[str, Any]) -> dict[str, Any]:
        ring = self._rings.get((model["name"], model["version"]))
        if ring is None or self._last_s is None:
            return _nothing()
        now_s = self._last_s
        done, took_s = ring.total(now_s - RATE_S)
        minute, minute_s = ring.total(now_s - WINDOW_S)
        errors = {
            name.partition(".")[2]: round(minute[index])
            for index, name in enumerate(ring.columns)
            if name.startswith(("failed.", "rejected.")) and minute[index]
        }
        counts = minute[len(ring.columns) :]
        return {
            "rate": round(float(done[0]) / took_s, 2) if took_s else 0.0,
            "window_s": round(minute_s, 1),
            "errors": errors,
            "p50_ms": percentile(ring.bounds_ms, counts, 0.5),
            "p99_ms": percentile(ring.bounds_ms, counts, 0.99),
        }

    def _spark(self, ring: Ring) -> list[float]:
        now_s = self._last_s or 0.0
        return _binned(*ring.requests(now_s - _SPARK_S), now_s)


def _nothing() -> dict[str, Any]:
    return {"rate": 0.0, "window_s": 0.0, "errors": {}, "p50_ms": None, "p99_ms": None}


def _fewer(marks: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The latest of each kind: what happens often must not hide what is rare."""
    left: dict[str, int] = {}
    found = []
    for mark in reversed(marks):
        left[mark["what"]] = left.get(mark["what"], _MARKS) - 1
        if left[mark["what"]] >= 0:
            found.append(mark)
    return found[::-1]


def _binned(at_s: np.ndarray, requests: np.ndarray, now_s: float) -> list[float]:
    """Requests a second in steps of equal length, the last one ending now."""
    step_s = _SPARK_S / _SPARK_POINTS
    place = np.ceil((at_s - now_s) / step_s).astype(int) + _SPARK_POINTS - 1
    found = np.bincount(np.clip(place, 0, _SPARK_POINTS - 1), requests, _SPARK_POINTS)
    rates: Sequence[float] = np.round(found / step_s, 2).tolist()
    return list(rates)
