"""Whether a worker process still answers, asked over a lane that no request uses.

Every lane has a thread of its own in the worker, so one that computes for hours answers at once.
One that does not may be busy all the same, its interpreter held by what it builds: the kernel
tells whether the process uses the processor.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from mindspore_lite.errors import RequestTimeoutError, WorkerDiedError
from mindspore_lite.remote.wire.client import WireSession

ASK_S = 10.0  # for which an answer is waited for, each time


def cpu_ticks(pid: int) -> int:
    """How long a process has computed, in ticks of the kernel; -1 when it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return -1
    fields = text.rpartition(")")[2].split()  # the name before may hold anything
    return int(fields[11]) + int(fields[12])  # in user mode, and in the kernel


class Peer(Protocol):
    """A worker process, and a session with it."""

    pid: int

    @property
    def session(self) -> WireSession:
        """Over which it is asked."""


class Heartbeat:
    """What is known of one process; one thread at a time may ask."""

    def __init__(
        self,
        process: Peer,
        clock: Callable[[], float] = time.monotonic,
        ticks: Callable[[int], int] = cpu_ticks,
    ) -> None:
        self._process = process
        self._clock = clock
        self._ticks = ticks
        self.forget()

    def forget(self) -> None:
        """Count from now on: nothing was asked for some time."""
        self._heard_s = self._worked_s = self._clock()
        self._seen = -1

    def ask(self) -> float:
        """For how many seconds the process has been silent; 0 when it answers now.

        Raises:
            LiteError: It cannot be asked, which says nothing about it.
        """
        try:
            self._process.session.info("pid", timeout_s=ASK_S)
        except (RequestTimeoutError, WorkerDiedError):
            return self._clock() - self._heard_s
        self.forget()
        return 0.0

    def ask_for_work(self) -> float:
        """The same, but seconds in which the process computed do not count as silence."""
        silent_s = self.ask()
        seen = self._ticks(self._process.pid)
        if seen != self._seen:
            self._seen, self._worked_s = seen, self._clock()
        return min(silent_s, self._clock() - self._worked_s)
