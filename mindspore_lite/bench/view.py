"""A result cleaned for drawing, with the queries that the page needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mindspore_lite.bench.looks import OURS
from mindspore_lite.bench.markup import cleaned
from mindspore_lite.bench.number_text import count

Entry = Mapping[str, Any]  # of the result: a run, a ratio, a point


@dataclass(frozen=True, order=True)
class Load:
    """How requests came: so many clients that wait for answers, or so many a second."""

    kind: str  # clients or rate
    value: float

    @property
    def text(self) -> str:
        """`16 clients` or `200 requests/s`."""
        if self.kind == "clients":
            return "1 client" if self.value == 1 else f"{count(self.value)} clients"
        return f"{_rate(self.value)} requests/s"

    @property
    def short(self) -> str:
        """The same where there is little room."""
        return self.text if self.kind == "clients" else f"{_rate(self.value)}/s"


def load_of(entry: Entry) -> Load:
    """The load of a run or a ratio."""
    if entry.get("clients") is not None:
        return Load("clients", float(entry["clients"]))
    return Load("rate", float(entry.get("rate") or 0.0))


class View:
    """A result that is safe to draw: every number is finite or None, every part is there."""

    def __init__(self, result: Entry) -> None:
        safe = cleaned(result)
        self.model: Entry = safe.get("model") or {}
        self.machine: Entry = safe.get("machine") or {}
        self.settings: Entry = safe.get("settings") or {}
        self.runs: Sequence[Entry] = safe.get("runs") or []
        self.ratios: Sequence[Entry] = sorted(safe.get("ratios") or [], key=load_of)
        self.layout: Sequence[Entry] = safe.get("layout") or []
        self.tune: Entry | None = safe.get("tune")
        self.apart: Sequence[Entry] = safe.get("apart") or []
        self.loads = sorted({load_of(run) for run in self.runs})
        self.sides = ours_first(run["side"] for run in self.runs)
        self.lead = self.sides[0] if self.sides else OURS  # whose figures come first

    def at(self, load: Load) -> list[Entry]:
        """The runs of a load, in the order of the sides."""
        found = [run for run in self.runs if load_of(run) == load]
        return sorted(found, key=lambda run: self.sides.index(run["side"]))

    def of(self, side: str) -> list[Entry]:
        """The runs of a side, by load."""
        return sorted((run for run in self.runs if run["side"] == side), key=load_of)


def ours_first(names: Iterable[str]) -> list[str]:
    """Each name once, in order, ours before the others."""
    return sorted(dict.fromkeys(names), key=lambda name: name != OURS)


def latency(run: Entry, name: str) -> float | None:
    """One latency of a run in ms; None when nothing was answered, which is kept as 0."""
    return (run.get("latency_ms") or {}).get(name) or None


def _rate(value: float) -> str:
    return count(value) if value == int(value) else f"{value:.6g}"
