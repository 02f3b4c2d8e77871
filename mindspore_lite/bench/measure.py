"""Computes the figures of a side from its bursts, and measures its memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from mindspore_lite.bench.burst import Burst, Load
from mindspore_lite.bench.result import Histogram, Latency, Moment, Run

MIB = 2**20
_BINS = 60  # of a histogram, and of a timeline
_FEW = 10  # answers that a part of a timeline should have


class Meter:
    """How much memory the process wrote for one side: what its turns added, nobody else's.

    Memory that is mapped from files is left out, for others share it. Only one side has a turn.
    """

    def __init__(self) -> None:
        self.own_bytes = 0

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Whatever is added meanwhile belongs to the side."""
        before = written_bytes()
        try:
            yield
        finally:
            self.own_bytes += written_bytes() - before


def written_bytes(proc_root: Path = Path("/proc")) -> int:
    """Memory of this process that lies in no file."""
    for line in (proc_root / "self/smaps_rollup").read_text().splitlines():
        if line.startswith("Anonymous:"):
            return int(line.split()[1]) * 1024
    return 0


def run_of(side: str, load: Load, bursts: Sequence[Burst], own_bytes: int) -> Run:
    """All rounds of a side together."""
    latencies = _joined([burst.latencies_ms for burst in bursts])
    answered = sum(burst.answered for burst in bursts)
    window_s = sum(burst.window_s for burst in bursts)
    return Run(
        side=side,
        clients=load.clients,
        rate=load.rate,
        throughput=answered / window_s if window_s else 0.0,
        latency_ms=_latency(latencies),
        cpu_ms_per_request=sum(b.cpu_s for b in bursts) * 1e3 / answered if answered else 0.0,
        memory_mib=max(own_bytes, 0) / MIB,
        requests=len(latencies),
        errors=sum(burst.errors for burst in bursts),
        first_error=next((b.first_error for b in bursts if b.errors), ""),
        histogram=_histogram(latencies),
        timeline=_timeline(bursts, window_s),
        refused=sum(burst.refused for burst in bursts),
    )


def _latency(values_ms: np.ndarray) -> Latency:
    if not values_ms.size:
        return Latency(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    percentiles = np.percentile(values_ms, [50, 90, 99, 99.9, 100])
    return Latency(float(values_ms.mean()), *map(float, percentiles))


def _histogram(values_ms: np.ndarray) -> Histogram:
    """Edges that grow by a factor, from the least to the greatest."""
    if not values_ms.size:
        return Histogram((), ())
    low, high = max(values_ms.min(), 1e-4), values_ms.max()  # a clock may stand still in a test
    edges = np.geomspace(low * 0.999, max(high, low) * 1.001, _BINS + 1)
    counts, _ = np.histogram(np.maximum(values_ms, low), edges)
    return Histogram(tuple(map(float, edges)), tuple(map(int, counts)))


def _timeline(bursts: Sequence[Burst], window_s: float) -> tuple[Moment, ...]:
    """The windows of all bursts one after the other, cut into equal parts."""
    before = np.cumsum([0.0, *(burst.window_s for burst in bursts)])
    ends, latencies = (
        _joined([burst.ends_s + at for burst, at in zip(bursts, before[:-1], strict=True)]),
        _joined([burst.latencies_ms for burst in bursts]),
    )
    # an open loop has answers after its end, which are no part of the time of the next round
    inside = _joined([(burst.ends_s <= burst.window_s).astype(float) for burst in bursts]) > 0
    ends, latencies = ends[inside], latencies[inside]
    count = min(_BINS, len(ends) // _FEW + 1)
    if not len(ends) or window_s <= 0:
        return ()
    part_s = window_s / count
    numbers = np.minimum((ends / part_s).astype(int), count - 1)
    return tuple(_moment(n, part_s, latencies[numbers == n]) for n in np.unique(numbers).tolist())


def _moment(number: int, part_s: float, latencies_ms: np.ndarray) -> Moment:
    p50, p99 = map(float, np.percentile(latencies_ms, [50, 99]))
    return Moment((number + 0.5) * part_s, len(latencies_ms) / part_s, p50, p99)


def _joined(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.empty(0), *arrays])
