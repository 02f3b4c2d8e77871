"""The books of a pool as a record that its user may keep: a Desk goes in, Statistics come out."""

from __future__ import annotations

from mindspore_lite.pool.desk import Desk
from mindspore_lite.pool.layout import Layout
from mindspore_lite.pool.request import State
from mindspore_lite.pool.statistics import Statistics, WorkerStatistics, together


def summary(desk: Desk, layout: Layout, inside: int) -> Statistics:
    """Everything at this moment; `inside` requests are in the quick lane."""
    ended = desk.ended
    return Statistics(
        sent=desk.sent + inside,
        queued=len(desk.queue),
        running=desk.running + inside,
        done=ended[State.DONE],
        failed=ended[State.FAILED],
        timed_out=ended[State.TIMED_OUT],
        cancelled=ended[State.CANCELLED],
        rejected=ended[State.REJECTED],
        closed=ended[State.CLOSED],
        stuck=desk.stuck,
        batches=dict(sorted(desk.batches.items())),
        queue_wait=together(tally.waits for _, tally in desk.workers),
        run_time=together(tally.runs for _, tally in desk.workers),
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
            for place, tally in desk.workers
        ),
        layout=layout,
    )
