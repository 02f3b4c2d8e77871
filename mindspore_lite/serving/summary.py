"""Copies a pool's counters into a record that its user may keep."""

from __future__ import annotations

from collections import Counter

from mindspore_lite.serving.layout import Layout
from mindspore_lite.serving.request import State
from mindspore_lite.serving.scheduler import Scheduler
from mindspore_lite.serving.statistics import (
    Histogram,
    PriorityStatistics,
    Statistics,
    WorkerStatistics,
    together,
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
