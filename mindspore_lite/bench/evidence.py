"""Decides whether a search measured enough for its winner to be remembered.

The winner and the automatic settings were measured in turn, round by round, with equally many
clients. The winner must be better by more than the rounds vary: the 95 % confidence interval of the
gain, from Student's t over the logarithms of the rounds' ratios, must lie above 1.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from mindspore_lite.engines.choice import LEAST_REQUESTS, LEAST_ROUNDS, Evidence, why_too_little

# 97.5 % quantiles of Student's t with 1, 2, ... degrees of freedom; the last serves for all above
_T = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


@dataclass(frozen=True)
class RoundFigures:
    """What a setting reached in one round."""

    throughput: float
    p99_ms: float


@dataclass(frozen=True)
class Measured:
    """All rounds of a setting together."""

    requests: int = 0
    seconds: float = 0.0
    p99_ms: float = 0.0
    rounds: tuple[RoundFigures, ...] = ()


NOTHING = Measured()


@dataclass(frozen=True)
class Interval:
    """A mean and its 95 % confidence interval."""

    low: float
    middle: float
    high: float


@dataclass(frozen=True)
class Verdict:
    """Whether the winner may be remembered."""

    evidence: Evidence
    why_not: str  # "" where it may


def interval(ratios: Sequence[float]) -> Interval:
    """The mean of ratios above 0, and its interval; that of a single one has no bounds."""
    logs = [math.log(ratio) for ratio in ratios]
    middle = statistics.fmean(logs)
    if len(logs) < 2:
        return Interval(0.0, math.exp(middle), math.inf)
    t = _T[min(len(logs) - 1, len(_T)) - 1]
    half = t * statistics.stdev(logs) / math.sqrt(len(logs))
    return Interval(math.exp(middle - half), math.exp(middle), math.exp(min(middle + half, 700.0)))


def judged(best: Measured, usual: Measured | None, limit_ms: float | None) -> Verdict:
    """Compare the winner with the automatic settings; None: the winner are these."""
    if usual is None:
        evidence = Evidence(best.requests, len(best.rounds), None)
        return Verdict(evidence, _why_not(evidence, best, ""))
    of = "p99" if limit_ms is not None and usual.p99_ms > limit_ms else "throughput"
    ratios = [
        a.throughput / b.throughput if of == "throughput" else b.p99_ms / a.p99_ms
        for a, b in zip(best.rounds, usual.rounds, strict=False)
        if min(a.throughput, b.throughput, a.p99_ms, b.p99_ms) > 0
    ]
    gain = interval(ratios) if ratios else Interval(0.0, 0.0, math.inf)
    evidence = Evidence(min(best.requests, usual.requests), len(ratios), gain.low)
    better = "throughput is" if of == "throughput" else "p99 is better by"
    text = (
        f"its {better} {gain.middle:.2f} times that of the automatic settings, with 95 % "
        f"confidence {gain.low:.2f} to {gain.high:.2f} times"
    )
    fewer = best if best.requests <= usual.requests else usual
    return Verdict(evidence, _why_not(evidence, fewer, text))


def _why_not(evidence: Evidence, measured: Measured, gain: str) -> str:
    reason = why_too_little(evidence)
    if not reason:
        return ""
    if evidence.requests < LEAST_REQUESTS:
        return f"{reason}; measure longer: --duration {_longer_s(measured):g}"
    if evidence.rounds < LEAST_ROUNDS:
        return f"{reason}; measure longer: in some rounds nothing was answered"
    return f"{gain}; the difference may be chance, measure longer"


def _longer_s(measured: Measured) -> float:
    """Seconds in which there should be enough requests, rounded up to one digit."""
    if not measured.requests or measured.seconds <= 0:
        return 60.0
    wanted = 1.3 * measured.seconds * LEAST_REQUESTS / measured.requests
    digit = 10.0 ** math.floor(math.log10(wanted))
    return math.ceil(wanted / digit) * digit
