"""Notices runs that hang: neither their thread nor any thread of an engine computes.

How long a run takes says nothing: a worker that is busy is not stuck. But a run on the CPU that
sleeps for many seconds waits for something that does not come. The kernel tells what threads do. A
run counts as hanging when its own thread, and all threads that Python did not start, which are
those of engines, have slept for ASLEEP_S, and used no processor time. Threads that wait for a
processor or for a disk do not sleep, so a busy machine makes no run hang. Where other libraries
have busy threads of their own, such as gRPC under load, a run that hangs is not noticed: its
deadline is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mindspore_lite.core.fork import ForkLock

if TYPE_CHECKING:
    from mindspore_lite.serving.scheduler import Slot

ASLEEP_S = 10.0  # guess
LATE_S = 1.0  # after a stop, until the worker counts as stuck; guess
LONG_S = 2.0  # runs that take less are not looked at: reading what threads do takes some time
_LOOKS = 4  # at least; one may come at a moment in which nothing is done
_IDLE_TICKS = 2  # of processor time that somebody else's threads may have used meanwhile


class Thread(NamedTuple):
    """What the kernel says of a thread."""

    state: str  # a letter, as ps shows it
    ticks: int  # of processor time so far


def kernel_threads() -> dict[int, Thread]:
    """The threads of this process, by the kernel's number."""
    found = {}
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it ended just now
            # the name before may hold anything
            fields = (task / "stat").read_text().rpartition(")")[2].split()
            found[int(task.name)] = Thread(fields[0], int(fields[11]) + int(fields[12]))
    return found


def native_ids() -> dict[int, int]:
    """The kernel's numbers of Python's threads, by Python's."""
    return {
        thread.ident: thread.native_id
        for thread in threading.enumerate()
        if thread.ident is not None and thread.native_id is not None
    }


def long_runs(slots: Iterable[Slot], now_ns: int) -> list[Run]:
    """The runs on the CPU that have taken long, and were not told to stop. With the pool's lock."""
    return [
        Run((slot, slot.started_ns), slot.ident)
        for slot in slots
        if slot.batch
        and not slot.place.card
        and not slot.stop.fired
        and now_ns - slot.started_ns >= LONG_S * 1e9
    ]


def late_runs(slots: Iterable[Slot], now_ns: int, pace_ns: int) -> int:
    """How many runs were told to stop LATE_S ago, or twice the usual time, and still go on.

    An engine looks whether to stop after each operator, of which one may be the whole model.
    """
    limit_ns = max(LATE_S * 1e9, 2 * pace_ns)
    return sum(
        bool(slot.batch) and slot.stop.fired and now_ns - slot.told_ns >= limit_ns for slot in slots
    )


class Run(NamedTuple):
    """A run under way: which one it is, and the thread it runs on, by Python's number."""

    key: object
    ident: int


class _Sleep(NamedTuple):
    since_s: float
    ticks: int
    looks: int


class Sleepers:
    """Knows since when runs sleep."""

    def __init__(
        self,
        threads: Callable[[], Mapping[int, Thread]] = kernel_threads,
        natives: Callable[[], Mapping[int, int]] = native_ids,
    ) -> None:
        self._threads = threads
        self._natives = natives
        self._asleep: dict[object, _Sleep] = {}
        self._lock = ForkLock()  # guards it; nothing else is locked within

    def trouble(self, late: int, long: Sequence[Run], workers: int, now_s: float) -> str:
        """What is wrong where so many of the workers do not stop, and these runs take long."""
        hung = self.look(long, now_s)
        if not late and not hung:
            return ""
        why = "cannot end a run whose time is over" if late else "hang: they wait, and do nothing"
        return f"{late or hung} of {workers} workers {why}"

    def look(self, runs: Sequence[Run], now_s: float) -> int:
        """How many of these runs hang; they are all that take long."""
        with self._lock:
            return self._look(runs, now_s)

    def _look(self, runs: Sequence[Run], now_s: float) -> int:
        if not runs:
            self._asleep = {}
            return 0
        threads, natives = self._threads(), self._natives()
        ours = set(natives.values())
        engines = [one for number, one in threads.items() if number not in ours]
        asleep = {}
        for run in runs:
            own = threads.get(natives.get(run.ident, 0))
            if own is None or any(one.state in "RD" for one in (own, *engines)):
                continue
            ticks = own.ticks + sum(one.ticks for one in engines)
            before = self._asleep.get(run.key)
            if before is None or ticks - before.ticks > _IDLE_TICKS:
                before = _Sleep(now_s, ticks, 0)
            asleep[run.key] = before._replace(looks=before.looks + 1)
        self._asleep = asleep
        return sum(
            now_s - one.since_s >= ASLEEP_S and one.looks >= _LOOKS for one in asleep.values()
        )
