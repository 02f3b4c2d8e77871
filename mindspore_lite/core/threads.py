"""Starts threads in a way that cannot hang when memory has run out.

`threading.Thread.start` waits without end for a thread that dies before its first instruction, as
it does when there is no memory for its first frame.
"""

from __future__ import annotations

import _thread
from collections.abc import Callable

BEGIN_S = 5.0  # until a thread has begun; guess: a busy machine takes milliseconds


class _Start:
    """One start: whichever takes the turn first, the thread or its starter, decides."""

    def __init__(self, run: Callable[[], None]) -> None:
        self._run = run
        self.turn = _thread.allocate_lock()
        self.begun = _thread.allocate_lock()
        self.begun.acquire()

    def main(self) -> None:
        if self.turn.acquire(False):
            self.begun.release()
            self._run()


def start(run: Callable[[], None]) -> None:
    """Run something on a new thread that does not keep the process from ending.

    Raises:
        RuntimeError: No thread could be started; `run` is not called then.
    """
    made = _Start(run)
    _thread.start_new_thread(made.main, ())
    if not made.begun.acquire(timeout=BEGIN_S) and made.turn.acquire(False):
        raise RuntimeError("can't start new thread: it does not begin, for want of memory perhaps")
