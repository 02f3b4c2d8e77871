"""Threads that wait for answers: tasks go in, each is run soon, on one of a few threads.

They are daemons, and so not waited for when the program ends: concurrent.futures would hold the
interpreter up for as long as a model computes.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

_MOST = 64  # guess: more would only wait in more threads
_IDLE_S = 10.0  # after which a thread without work ends


class Threads:
    """Runs tasks; a thread is started when all others are busy."""

    def __init__(self) -> None:
        self._tasks: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._count = self._idle = 0

    def start(self, task: Callable[[], None]) -> None:
        """Run a task, which must not raise, on another thread."""
        with self._lock:
            is_new = self._idle < 1 + self._tasks.qsize() and self._count < _MOST
            self._count += is_new
        self._tasks.put(task)
        if is_new:
            threading.Thread(target=self._work, name="mslite-answer", daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
            try:
                task = self._tasks.get(timeout=_IDLE_S)
            except queue.Empty:
                with self._lock:
                    self._idle -= 1
                    if self._tasks.empty():  # start() counts on who is idle, under the same lock
                        self._count -= 1
                        return
                continue
            with self._lock:
                self._idle -= 1
            task()
