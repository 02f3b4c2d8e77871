"""Statistics of a pool: histograms of fixed size, and immutable records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from mindspore_lite.serving.layout import Layout
from mindspore_lite.serving.request import State

if TYPE_CHECKING:
    from mindspore_lite.serving.scheduler import Scheduler

__all__ = [
    "Latency",
    "PriorityStatistics",
    "Statistics",
    "WorkerStatistics",
]

_STEPS = 16  # buckets per power of two: a percentile is at most 1/16 above the true one


@dataclass(frozen=True)
class Latency:
    """Times of many requests; percentiles are within 7 % of the true ones, never below them."""

    count: int
    mean_ms: float
    p50_ms: float
    p90_ms: float
    p99_ms: float
    max_ms: float


@dataclass(frozen=True)
class WorkerStatistics:
    """One worker: its place, and the requests that it took."""

    index: int
    threads: int
    cores: tuple[int, ...]
    node: int
    done: int
    failed: int
    queue_wait: Latency
    run_time: Latency
    device: str = "cpu"  # or the card, such as gpu:0


@dataclass(frozen=True)
class PriorityStatistics:
    """The requests of one priority."""

    sent: int
    queued: int
    done: int
    queue_wait: Latency


@dataclass(frozen=True)
class Statistics:
    """A runner at one moment.

    sent = queued + running + done + failed + timed_out + cancelled + rejected + closed, exactly.
    Arguments that were refused before they became a request are not counted.
    """

    sent: int
    queued: int
    running: int
    done: int
    failed: int
    timed_out: int
    cancelled: int
    rejected: int
    closed: int
    stuck: int  # runs that outlived their deadline by far, and still hold a thread
    batches: Mapping[int, int]  # rows of a run -> how many runs had as many
    queue_wait: Latency
    run_time: Latency
    workers: tuple[WorkerStatistics, ...]
    layout: Layout
    # of those that were used; counts without runs under way on their callers' own threads
    priorities: Mapping[int, PriorityStatistics] = field(default_factory=dict)


@dataclass(frozen=True)
class Occupancy:
    """What a pool does right now; cheap enough to be asked many times a second.

    Attributes:
        slots: A word for each worker: idle, gathering (it waits for more rows of a batch),
            computing, or stuck (it was told to stop, and does not). One whose engine hangs is
            replaced, and stays in the list as stuck.
        queued: Requests that wait.
        queue_size: How many may.
        running: Requests that are computed.
    """

    slots: tuple[str, ...]
    queued: int
    queue_size: int
    running: int


class Histogram:
    """Durations in buckets that grow by a sixteenth; adding is cheap and memory constant."""

    __slots__ = ("_buckets", "count", "max_ns", "sum_ns")

    def __init__(self) -> None:
        self._buckets = [0] * (64 * _STEPS)
        self.count = self.sum_ns = self.max_ns = 0

    def add(self, duration_ns: int, times: int = 1) -> None:
        """Count one duration, or so many alike."""
        # the four bits after the leading one are the step within a power of two
        shift = duration_ns.bit_length() - 5
        step = duration_ns if shift <= 0 else (shift << 4) + (duration_ns >> shift)
        self._buckets[step] += times
        self.count += times
        self.sum_ns += duration_ns * times
        if duration_ns > self.max_ns:
            self.max_ns = duration_ns

    def add_many(self, durations_ns: Sequence[int]) -> None:
        """The same as adding each, at a tenth of the time."""
        values = np.asarray(durations_ns, np.int64)
        shifts = np.maximum(np.frexp(values.astype(np.float64))[1] - 5, 0)
        steps = np.where(shifts > 0, (shifts << 4) + (values >> shifts), values)
        for step, times in zip(*np.unique(steps, return_counts=True), strict=True):
            self._buckets[step] += int(times)
        self.count += len(values)
        self.sum_ns += int(values.sum())
        self.max_ns = max(self.max_ns, int(values.max()))

    def __iadd__(self, other: Histogram) -> Histogram:
        self._buckets = [a + b for a, b in zip(self._buckets, other._buckets, strict=True)]
        self.count += other.count
        self.sum_ns += other.sum_ns
        self.max_ns = max(self.max_ns, other.max_ns)
        return self

    def __isub__(self, other: Histogram) -> Histogram:
        """Take away what was added to another one as well; the maximum is that of a bucket then."""
        self._buckets = [a - b for a, b in zip(self._buckets, other._buckets, strict=True)]
        self.count -= other.count
        self.sum_ns -= other.sum_ns
        last = max((step for step, number in enumerate(self._buckets) if number), default=0)
        self.max_ns = min(self.max_ns, _upper_end(last))
        return self

    def latency(self) -> Latency:
        """The record of what was added so far."""
        p50, p90, p99 = (self._percentile_ns(part) / 1e6 for part in (0.5, 0.9, 0.99))
        mean_ms = self.sum_ns / self.count / 1e6 if self.count else 0.0
        return Latency(self.count, mean_ms, p50, p90, p99, self.max_ns / 1e6)

    def _percentile_ns(self, part: float) -> int:
        """The upper end of the bucket in which the percentile lies."""
        wanted, seen = part * self.count, 0
        for step, number in enumerate(self._buckets):
            seen += number
            if number and seen >= wanted:
                return min(_upper_end(step), self.max_ns)
        return 0


def _upper_end(step: int) -> int:
    if step < 2 * _STEPS:
        return step
    shift = (step >> 4) - 1
    return (((step & (_STEPS - 1)) + _STEPS + 1) << shift) - 1


def together(histograms: Iterable[Histogram]) -> Latency:
    """One record of all."""
    total = Histogram()
    for histogram in histograms:
        total += histogram
    return total.latency()


def occupancy(scheduler: Scheduler, inside: int) -> Occupancy:
    """What goes on at this moment; `inside` requests are in the quick lane."""
    slots = []
    for slot in scheduler.slots:
        if slot.batch:
            slots.append("stuck" if slot.stop.fired else "computing")
        else:
            slots.append("gathering" if scheduler.gathering is slot else "idle")
    for index in range(min(inside, len(slots))):  # which run on their callers' threads
        slots[index] = "computing"
    slots += ["stuck"] * scheduler.stuck
    return Occupancy(
        tuple(slots), scheduler.queue.count, scheduler.queue_size, scheduler.running + inside
    )


def summary(scheduler: Scheduler, layout: Layout, inside: int) -> Statistics:
    """Everything at this moment; `inside` requests are in the quick lane."""
    ended = scheduler.ended
    return Statistics(
        sent=scheduler.sent + inside,
        queued=len(scheduler.queue),
        running=scheduler.running + inside,
        done=ended[State.DONE],
        failed=ended[State.FAILED],
        timed_out=ended[State.TIMED_OUT],
        cancelled=ended[State.CANCELLED],
        rejected=ended[State.REJECTED],
        closed=ended[State.CLOSED],
        stuck=scheduler.stuck,
        batches=dict(sorted(scheduler.batches.items())),
        queue_wait=together(tally.waits for _, tally in scheduler.workers),
        run_time=together(tally.runs for _, tally in scheduler.workers),
        workers=tuple(
            WorkerStatistics(
                place.index,
                layout.threads,
                place.cores,
                place.node,
                tally.done,
                tally.failed,
                tally.waits.latency(),
                tally.runs.latency(),
                layout.devices[place.index] if layout.devices else "cpu",
            )
            for place, tally in scheduler.workers
        ),
        layout=layout,
        priorities=_priorities(scheduler),
    )


def _priorities(scheduler: Scheduler) -> dict[int, PriorityStatistics]:
    """The requests of each priority; those of 0, which are not counted apart, are the rest."""
    sent, done, waits = scheduler.sent, scheduler.ended[State.DONE], Histogram()
    for _, worker in scheduler.workers:
        waits += worker.waits
    queued = (
        Counter(r.call.priority for r in scheduler.queue)
        if scheduler.priorities
        else {0: len(scheduler.queue)}
    )
    found = {}
    for priority, tally in sorted(scheduler.priorities.items()):
        sent -= tally.sent
        done -= tally.done
        waits -= tally.waits
        found[priority] = PriorityStatistics(
            tally.sent, queued.get(priority, 0), tally.done, tally.waits.latency()
        )
    if sent:
        found[0] = PriorityStatistics(sent, queued.get(0, 0), done, waits.latency())
    return dict(sorted(found.items()))
