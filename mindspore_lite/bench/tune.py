"""The search for the best settings, independent of how they are tried.

First a coarse grid: every engine, the cores dealt to few wide or many narrow workers, requests
joined or not. Each setting is tried with ever more clients, until one misses the limit: more would
wait longer still. Then the neighbours of the best are tried, for as long as one of them is better.
At last the best few are tried again, in turn with the automatic settings, for longer; what counts
of those is the second try.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from mindspore_lite.bench.evidence import NOTHING, Measured, Verdict, judged
from mindspore_lite.bench.result import Point
from mindspore_lite.bench.sides import Wish
from mindspore_lite.errors import LiteError

BATCH = 8  # rows, where the search begins; guess
_MOST_BATCH = 64  # guess: more rows make all wait for the last one
_HOPS = 4  # from the grid to the best of its surroundings; guess
_FINALISTS = 3


@dataclass(frozen=True)
class Setting:
    """What the search may choose; 0 workers and threads are automatic, batch 0 joins nothing."""

    engine: str
    workers: int = 0
    threads: int = 0
    batch: int = 0

    @property
    def wish(self) -> Wish:
        """The same for our side."""
        return Wish(
            engine=self.engine, workers=self.workers, threads=self.threads, batch=self.batch
        )

    def __str__(self) -> str:
        sizes = f"{self.workers} x {self.threads}" if self.workers else "automatic"
        joined = f", batch {self.batch}" if self.batch else ""
        return f"{self.engine}, {sizes}{joined}"


@dataclass(frozen=True)
class Score:
    """How a setting did."""

    throughput: float
    p99_ms: float
    measured: Measured = NOTHING  # round by round, of the second try


Try = Callable[[int], Score]  # of a number of clients
Opened = Callable[[Setting], AbstractContextManager[Try]]  # raises LiteError if it cannot be


def grid(cores: int, engines: Sequence[str], can_batch: bool) -> list[Setting]:
    """Where the search begins, the automatic settings of each engine first."""
    workers = [cores]
    while workers[-1] > 1:
        workers.append(workers[-1] // 2)
    sizes = [(0, 0), *((count, cores // count) for count in workers)]
    batches = [0, BATCH] if can_batch else [0]
    return [Setting(e, w, t, batch) for e in engines for w, t in sizes for batch in batches]


def neighbours(best: Setting, cores: int) -> Iterator[Setting]:
    """A step in each direction."""
    if best.batch:
        for batch in (best.batch * 2, best.batch // 2):
            if 1 < batch <= _MOST_BATCH:
                yield replace(best, batch=batch)
    if best.workers:
        for workers in (best.workers - 1, best.workers + 1):
            if 1 <= workers <= cores:
                yield replace(best, workers=workers, threads=max(1, cores // workers))


def best_of(points: Sequence[Point], limit_ms: float | None) -> Point | None:
    """The highest throughput among those that keep to the limit."""
    fitting = [p for p in points if p.throughput and p.p99_ms <= (limit_ms or math.inf)]
    return max(fitting, key=lambda p: p.throughput, default=None)


def marked(points: Sequence[Point], limit_ms: float | None) -> list[Point]:
    """The same with the Pareto front and the chosen one."""
    best = best_of(points, limit_ms)
    return [replace(p, on_front=_on_front(p, points), chosen=p is best) for p in points]


def _on_front(point: Point, points: Sequence[Point]) -> bool:
    return point.throughput > 0 and not any(
        other.throughput >= point.throughput
        and other.p99_ms <= point.p99_ms
        and (other.throughput, other.p99_ms) != (point.throughput, point.p99_ms)
        for other in points
        if other.throughput
    )


class Search:
    """What was tried so far."""

    def __init__(self, opened: Opened, clients: Sequence[int], limit_ms: float | None) -> None:
        self.points: list[Point] = []
        self.refused: dict[str, str] = {}  # settings that cannot be, and why
        self.interrupted = False
        self._opened, self._clients, self._limit_ms = opened, sorted(clients), limit_ms
        self._seen: set[Setting] = set()
        self._second: dict[tuple[Setting, int], Measured] = {}  # what the second try measured

    def run(
        self, begin: Sequence[Setting], cores: int, again: Again, usual: Setting | None = None
    ) -> None:
        """Search; Ctrl-C ends it with what there is.

        `usual` is what a build takes that knows nothing: the best must be better than that.
        """
        try:
            for setting in begin:
                self._visit(setting)
            self._refine(cores)
            self._decide(again, usual)
        except KeyboardInterrupt:
            self.interrupted = True

    def _visit(self, setting: Setting) -> None:
        if setting in self._seen:
            return
        self._seen.add(setting)
        try:
            with self._opened(setting) as score:
                for clients in self._clients:
                    found = score(clients)
                    self.points.append(_point(setting, clients, found))
                    if found.p99_ms > (self._limit_ms or math.inf):
                        break
        except LiteError as exc:
            self.refused[str(setting)] = str(exc)

    def _refine(self, cores: int) -> None:
        for _ in range(_HOPS):
            best = best_of(self.points, self._limit_ms)
            if best is None:
                return
            for setting in neighbours(setting_of(best), cores):
                self._visit(setting)
            if best_of(self.points, self._limit_ms) is best:
                return

    def _decide(self, again: Again, usual: Setting | None) -> None:
        """Measure the best few once more: the best of many tries is also the luckiest."""
        fitting = [p for p in self.points if p.p99_ms <= (self._limit_ms or math.inf)]
        finalists = sorted(fitting, key=lambda p: -p.throughput)[:_FINALISTS]
        if not finalists:
            return
        tried = [(setting_of(p), p.clients) for p in finalists]
        others = [] if usual is None else [(usual, p.clients) for p in finalists]
        everyone = list(dict.fromkeys([*tried, *others]))
        try:
            scores = dict(zip(everyone, again(everyone), strict=True))
        except LiteError:  # the automatic settings cannot be, where another engine was asked for
            scores = dict(zip(tried, again(tried), strict=True))
        self._second = {one: score.measured for one, score in scores.items()}
        for at, point in enumerate(self.points):
            score = scores.get((setting_of(point), point.clients))
            if score is not None:
                self.points[at] = _point(setting_of(point), point.clients, score)

    def verdict(self, best: Point, usual: Setting) -> Verdict:
        """Whether the best was measured well enough to be remembered."""
        setting = setting_of(best)
        measured = self._second.get((setting, best.clients), NOTHING)
        other = self._second.get((usual, best.clients), NOTHING)
        return judged(measured, None if setting == usual else other, self._limit_ms)


Again = Callable[[Sequence[tuple[Setting, int]]], Sequence[Score]]  # settings and clients, in turn


def _point(setting: Setting, clients: int, score: Score) -> Point:
    return Point(
        setting.engine,
        setting.workers,
        setting.threads,
        setting.batch,
        clients,
        score.throughput,
        score.p99_ms,
        requests=score.measured.requests,
        rounds=len(score.measured.rounds),
    )


def setting_of(point: Point) -> Setting:
    """What was tried there."""
    return Setting(point.engine, point.workers, point.threads, point.batch)
