"""Measures several sides in turns, so that all see the same machine, and compares them.

A round is one burst of every side, and each round another side begins: what the machine does
besides hits all of them, and a ratio is one of bursts that ran right after each other.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mindspore_lite.bench.burst import Burst, Load
from mindspore_lite.bench.load import Tick, closed_loop, open_loop
from mindspore_lite.bench.measure import Meter
from mindspore_lite.bench.result import Apart, Ratio
from mindspore_lite.bench.sides import Desk
from mindspore_lite.conversion.measure import cosine, top_one
from mindspore_lite.errors import EngineError

SETTLE_S = 0.1  # between bursts: ONNX Runtime's threads were seen to spin on for 0.05 s
ALIKE = 1e-3  # how far outputs may lie apart, as a share of the largest value
OURS = "mslite"
_FEWEST, _MOST = 7, 30  # rounds of a comparison
_ANSWERS = 100  # that a burst should hold; guess
_SHORTEST_S = 0.07  # of a burst; guess

Bursts = dict[str, list[Burst]]


class Watch(Protocol):
    """Is called with the progress."""

    def at(self, text: str) -> None:
        """What is being done."""

    def step(self) -> None:
        """One of the announced steps is done."""


@dataclass(frozen=True)
class ComparePlan:
    """How long to measure: `duration_s` of every side and load, cut into rounds."""

    duration_s: float
    warmup_s: float
    rounds: int = 1
    seed: int = 0

    def lengths(self, number: int) -> tuple[float, float]:
        """Warm-up and window of the burst in one round; only the first has all of the warm-up."""
        window_s = self.duration_s / self.rounds
        return (min(self.warmup_s, window_s / 5) if number else self.warmup_s), window_s


def rounds_for(duration_s: float, loads: Sequence[Load], answer_s: float) -> int:
    """Into how many rounds a comparison is cut, given how long an answer takes.

    The moods of a machine last for some tenths of a second. So the shorter the bursts, the more
    they have in common: with the embedded model and one client, 7 rounds gave ratios from 0.83 to
    1.11, 40 rounds of the same time 0.89 to 0.91. Requests of an open loop may come too seldom.
    """
    if any(load.rate is not None for load in loads):
        return _FEWEST
    burst_s = max(_SHORTEST_S, _ANSWERS * answer_s)
    return max(_FEWEST, min(_MOST, int(duration_s / burst_s)))


def turns(
    desks: Mapping[str, Desk],
    load: Load,
    plan: ComparePlan,
    watch: Watch,
    meters: Mapping[str, Meter],
) -> tuple[Bursts, bool]:
    """All rounds; the second says whether Ctrl-C ended them early."""
    found: Bursts = {name: [] for name in desks}
    names = list(desks)
    try:
        for number in range(plan.rounds):
            first = number % len(names)
            for name in names[first:] + names[:first]:
                if len(names) > 1:
                    time.sleep(SETTLE_S)
                with meters[name].turn():
                    burst = _burst(desks[name], load, plan, number, _tick(watch, name, load))
                if burst.window_s > 0:
                    found[name].append(burst)
                if burst.interrupted:
                    return found, True
                watch.step()
    except KeyboardInterrupt:  # between two bursts
        return found, True
    return found, False


def _burst(desk: Desk, load: Load, plan: ComparePlan, number: int, tick: Tick) -> Burst:
    warm_s, window_s = plan.lengths(number)
    if load.clients is not None:
        return closed_loop(desk.call, load.clients, warm_s, window_s, tick=tick)
    assert load.rate is not None  # a load has one of both
    # all sides get the same requests in a round, and others in the next one
    seed = plan.seed + number
    return open_loop(desk.submit, load.rate, warm_s, window_s, seed, tick=tick, drop=desk.drop)


def _tick(watch: Watch, name: str, load: Load) -> Tick:
    start = time.perf_counter()

    def tick(answered: int) -> None:
        rate = answered / (time.perf_counter() - start)
        watch.at(f"{name}, {load}: {answered} answers, {rate:.0f} /s")

    return tick


def check_alike(desks: Mapping[str, Desk], files: Mapping[str, Sequence[str]]) -> list[Apart]:
    """Let every side answer once; `files` are other model files, with the names of their outputs.

    Returns:
        How far the answers of these lie apart, which may differ: one may be quantised.

    Raises:
        EngineError: An answer is not ours; to compare speeds would mean nothing.
    """
    wanted = desks[OURS].call()
    found: list[Apart] = []
    for name, desk in desks.items():
        if name == OURS:
            continue
        got = desk.call()
        if name in files:
            found += _all_apart(name, files[name], wanted, got)
            continue
        if len(got) != len(wanted):
            raise EngineError(f"{name} has {len(got)} outputs, mslite has {len(wanted)}")
        for number, (ours, theirs) in enumerate(zip(wanted, got, strict=True)):
            apart = _apart(ours, theirs)
            if apart > ALIKE:
                raise EngineError(
                    f"output {number} of {name} differs from mslite's by {apart:.2g} of the "
                    f"largest value, wanted at most {ALIKE:g}; there is nothing to compare, leave "
                    f"{name} out"
                )
    return found


def _all_apart(
    name: str, outputs: Sequence[str], wanted: Sequence[np.ndarray], got: Sequence[np.ndarray]
) -> Iterator[Apart]:
    shapes = [[list(one.shape) for one in side] for side in (got, wanted)]
    if shapes[0] != shapes[1]:
        raise EngineError(
            f"{name} answers with {shapes[0]}, the model with {shapes[1]}; it is another network, "
            "leave it out of --compare"
        )
    for output, ours, theirs in zip(outputs, wanted, got, strict=True):
        same = top_one(output, [ours], [theirs]) if ours.dtype.kind == "f" else None
        alike = cosine([ours], [theirs])
        agreed, rows = (0, 0) if same is None else (same.agreed, same.rows)
        yield Apart(name, output, _apart(ours, theirs), alike, agreed, rows)


def _apart(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The largest difference, as a share of the largest value; infinite where they cannot be."""
    if ours.shape != theirs.shape:
        return float("inf")
    kind = np.complex128 if ours.dtype.kind == "c" else np.float64
    ours, theirs = ours.astype(kind), theirs.astype(kind)
    same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
    if same.all():
        return 0.0
    scale = np.abs(ours[np.isfinite(ours)]).max(initial=0.0) or 1.0
    apart = float(np.abs(ours[~same] - theirs[~same]).max()) / scale
    return apart if np.isfinite(apart) else float("inf")


def ratios(load: Load, bursts: Bursts) -> list[Ratio]:
    """Ours against every peer, round by round."""
    of = "throughput" if load.rate is None else "p99"
    found = []
    for peer, theirs in bursts.items():
        if peer == OURS or OURS not in bursts:
            continue
        pairs = [(_figure(a, of), _figure(b, of)) for a, b in zip(bursts[OURS], theirs)]  # noqa: B905 - Ctrl-C may leave one less
        values = [a / b if of == "throughput" else b / a for a, b in pairs if a and b]
        if values:
            found.append(Ratio(load.clients, load.rate, peer, of, *_quartiles(values)))
    return found


def _figure(burst: Burst, of: str) -> float:
    if of == "throughput":
        return burst.throughput
    return float(np.percentile(burst.latencies_ms, 99)) if burst.latencies_ms.size else 0.0


def _quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high
