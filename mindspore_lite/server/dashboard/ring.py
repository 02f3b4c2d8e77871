"""The samples of one model: a table with a row a second, whose oldest rows are overwritten."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_FIRST_ROWS = 64  # of a new table; it doubles until it has all
_SLOTS_S = 60  # samples of which the states of slots are kept
_GROWING = ("requests", "rows", "failed.", "rejected.", "phases_us.")  # columns of differences


def columns_of(model: Mapping[str, Any]) -> tuple[str, ...]:
    """What is kept of a model every second, before its latencies."""
    return (
        "requests",
        "rows",
        "queued",
        "running",
        *(f"failed.{reason}" for reason in model["failed"]),
        *(f"rejected.{reason}" for reason in model["rejected"]),
        *(f"phases_us.{phase}" for phase in model["phases_ns"]),
    )


def _values(model: Mapping[str, Any]) -> list[float]:
    """A model's numbers now, in the order of its columns; then the counts of its latencies."""
    failed = sum(model["failed"].values())
    return [
        model["success"] + failed,
        model["rows"],
        model["queued"],
        model["running"],
        *model["failed"].values(),
        *model["rejected"].values(),
        *(value / 1e3 for value in model["phases_ns"].values()),
        *model["latency"]["counts"],
    ]


class Ring:
    """At most so many samples of a model.

    Attributes:
        columns: What a row holds, before the counts of latencies.
        bounds_ms: Upper ends of the latencies' buckets.
        last_s: When the last sample was taken.
    """

    def __init__(self, columns: tuple[str, ...], bounds_ms: Sequence[float], kept: int) -> None:
        self.columns = columns
        self.bounds_ms = list(bounds_ms)
        self.last_s = 0.0
        self._kept = kept
        self._width = len(columns) + len(bounds_ms) + 1
        self._rows = np.zeros((min(_FIRST_ROWS, kept), self._width), np.float32)
        self._times = np.zeros((len(self._rows), 2))  # when, and how many seconds it covers
        self._count = 0  # of all samples ever
        self._slots: deque[Sequence[str]] = deque(maxlen=_SLOTS_S)
        self._before = np.zeros(self._width)  # the counters of the last sample
        grows = [name.startswith(_GROWING) for name in columns]
        self._grows = np.array([*grows, *[True] * (len(bounds_ms) + 1)])

    def add(self, model: Mapping[str, Any], now_s: float, took_s: float) -> dict[str, Any]:
        """Take a sample; returns its row as watchers get it."""
        values = np.array(_values(model), np.float64)
        if (values[self._grows] < self._before[self._grows]).any():
            self._before[:] = 0  # it was loaded anew
        row = values - np.where(self._grows, self._before, 0)
        self._before, self.last_s = values, now_s
        self._grow()
        place = self._count % self._kept
        self._rows[place], self._times[place] = row, (now_s, took_s)
        self._count += 1
        self._slots.append(model["slots"])
        whole = np.rint(row).astype(int).tolist()
        split = len(self.columns)
        named = dict(zip(self.columns, whole[:split], strict=True))
        return {"took_s": round(took_s, 3), "values": named, "latency": whole[split:]}

    def total(self, since_s: float) -> tuple[np.ndarray, float]:
        """The sums of all columns over the samples after a time, and the seconds they cover."""
        rows, times = self._ordered()
        first = int(np.searchsorted(times[:, 0], since_s, side="right"))
        return rows[first:].sum(axis=0, dtype=np.float64), float(times[first:, 1].sum())

    def requests(self, since_s: float) -> tuple[np.ndarray, np.ndarray]:
        """Times and requests of the samples after a time."""
        rows, times = self._ordered()
        first = int(np.searchsorted(times[:, 0], since_s, side="right"))
        return times[first:, 0], rows[first:, 0]

    def slots(self) -> list[str]:
        """For each slot the states of the last minute, one letter a second: idle, gathering, ..."""
        number = len(self._slots[-1]) if self._slots else 0
        return [
            "".join(states[slot][0] for states in self._slots if slot < len(states))
            for slot in range(number)
        ]

    def described(self) -> dict[str, Any]:
        """All samples, from the oldest on, by column."""
        rows, times = self._ordered()
        whole = np.rint(rows).astype(int)
        split = len(self.columns)
        return {
            "at": np.round(times[:, 0], 3).tolist(),
            "took_s": np.round(times[:, 1], 3).tolist(),
            "columns": {name: whole[:, i].tolist() for i, name in enumerate(self.columns)},
            "bounds_ms": self.bounds_ms,
            "latency": whole[:, split:].tolist(),
        }

    def _grow(self) -> None:
        have = len(self._rows)
        if self._count == have < self._kept:
            more = min(have, self._kept - have)
            self._rows = np.vstack([self._rows, np.zeros((more, self._width), np.float32)])
            self._times = np.vstack([self._times, np.zeros((more, 2))])

    def _ordered(self) -> tuple[np.ndarray, np.ndarray]:
        if self._count <= self._kept:
            return self._rows[: self._count], self._times[: self._count]
        start = self._count % self._kept
        return np.roll(self._rows, -start, axis=0), np.roll(self._times, -start, axis=0)


def percentile(bounds_ms: Sequence[float], counts: np.ndarray, part: float) -> float | None:
    """Where a part of the latencies lies below, spread evenly within a bucket; None of none.

    Beyond the last bound nothing is known: it is that bound.
    """
    total = float(counts.sum())
    if not total:
        return None
    ends = np.cumsum(counts)
    index = int(np.searchsorted(ends, part * total))
    if index >= len(bounds_ms):
        return float(bounds_ms[-1])
    low = float(bounds_ms[index - 1]) if index else 0.0
    inside = (part * total - (ends[index] - counts[index])) / counts[index]
    return round(low + (float(bounds_ms[index]) - low) * float(inside), 4)
