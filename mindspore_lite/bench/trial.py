"""Tries settings of `--tune` on a real model and scores them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from mindspore_lite.bench.burst import Burst, Load
from mindspore_lite.bench.compare import OURS, ComparePlan, Watch, turns
from mindspore_lite.bench.evidence import Measured, RoundFigures
from mindspore_lite.bench.measure import Meter, run_of
from mindspore_lite.bench.result import Run
from mindspore_lite.bench.sides import Feed, Ours
from mindspore_lite.bench.tune import Score, Setting, Try
from mindspore_lite.core.capabilities import ENGINES, named
from mindspore_lite.engines.select import installed
from mindspore_lite.errors import EngineError
from mindspore_lite.serving.layout import Layout

_ROUNDS = 7  # of the last comparison; guess, for an interval of confidence needs some


def engines() -> list[str]:
    """Those that the search tries: of the CPU, and installed."""
    # one that is for cards only stands in for them on the CPU
    return [name for name, one in ENGINES.items() if not one.serves_cards and installed(name)]


def usual_setting() -> Setting:
    """What a build takes that knows nothing of the model."""
    return Setting(named("").name)


@dataclass
class Trial:
    """A model, its inputs, and how long to try; keeps the figures of every try."""

    model: Path
    feed: Feed
    plan: ComparePlan  # of the last comparison; the first look at a setting takes a third of it
    watch: Watch
    runs: dict[tuple[Setting, int], Run] = field(default_factory=dict)
    layouts: dict[Setting, Layout] = field(default_factory=dict)

    @contextmanager
    def opened(self, setting: Setting) -> Iterator[Try]:
        """Build so; the yielded function measures with so many clients."""
        self.watch.at(f"building: {setting}")
        meter, short = Meter(), ComparePlan(self.plan.duration_s / 3, self.plan.warmup_s)
        with meter.turn():
            side = self._built(setting)
        with closing(side):

            def score(clients: int) -> Score:
                bursts = self._turn(setting, side, clients, short, meter)
                run = run_of(OURS, Load(clients=clients), bursts, meter.own_bytes)
                return self._score(setting, clients, run)

            yield score

    def again(self, finalists: Sequence[tuple[Setting, int]]) -> list[Score]:
        """Measure some settings in turn, round by round."""
        bursts: list[list[Burst]] = [[] for _ in finalists]
        meters = {setting: Meter() for setting, _ in finalists}
        short = ComparePlan(self.plan.duration_s / _ROUNDS, self.plan.warmup_s / _ROUNDS)
        with ExitStack() as stack:
            built = {}
            for setting, meter in meters.items():
                with meter.turn():
                    built[setting] = stack.enter_context(closing(self._built(setting)))
            for _ in range(_ROUNDS):
                for mine, (setting, clients) in zip(bursts, finalists, strict=True):
                    mine += self._turn(setting, built[setting], clients, short, meters[setting])
        scores = []
        for mine, (setting, clients) in zip(bursts, finalists, strict=True):
            run = run_of(OURS, Load(clients=clients), mine, meters[setting].own_bytes)
            score = self._score(setting, clients, run)
            scores.append(replace(score, measured=_measured(run, mine)))
        return scores

    def _turn(
        self, setting: Setting, side: Ours, clients: int, plan: ComparePlan, meter: Meter
    ) -> list[Burst]:
        load = Load(clients=clients)
        with side.desk(load, self.feed) as desk:
            watch = _Prefixed(self.watch, setting)
            found, interrupted = turns({OURS: desk}, load, plan, watch, {OURS: meter})
        if interrupted:
            raise KeyboardInterrupt
        return found[OURS]

    def _built(self, setting: Setting) -> Ours:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is true of the model was said before
            side = Ours(self.model, setting.wish)
        self.layouts[setting] = side.layout
        return side

    def _score(self, setting: Setting, clients: int, run: Run) -> Score:
        """Raises EngineError when nothing was answered."""
        if not run.requests:
            raise EngineError(run.first_error or "no request was answered")
        self.runs[setting, clients] = run
        return Score(run.throughput, run.latency_ms.p99)


def _measured(run: Run, bursts: Sequence[Burst]) -> Measured:
    rounds = tuple(
        RoundFigures(
            burst.throughput,
            float(np.percentile(burst.latencies_ms, 99)) if burst.latencies_ms.size else 0.0,
        )
        for burst in bursts
    )
    window_s = sum(burst.window_s for burst in bursts)
    return Measured(run.requests, window_s, run.latency_ms.p99, rounds)


@dataclass(frozen=True)
class _Prefixed:
    """Tells the setting as well."""

    watch: Watch
    setting: Setting

    def at(self, text: str) -> None:
        self.watch.at(f"{self.setting}: {text}")

    def step(self) -> None:
        self.watch.step()
