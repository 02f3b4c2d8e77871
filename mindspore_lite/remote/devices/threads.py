"""A few threads that wait for answers, started as needed.

They are daemons, and so not waited for when the program ends: concurrent.futures would hold the
interpreter up for as long as a model computes. `_changed` guards tasks and counts; tasks run
without it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from mindspore_lite.errors import ResourceError

_MOST = 64  # guess: more would only wait in more threads
_IDLE_S = 10.0  # after which a thread without work ends


class Threads:
    """Runs tasks; a thread is started when all others are busy."""

    def __init__(self, most: int = _MOST, idle_s: float = _IDLE_S) -> None:
        self._most = most
        self._idle_s = idle_s
        self._changed = threading.Condition()
        self._tasks: deque[Callable[[], None]] = deque()
        self._count = self._idle = 0

    def start(self, task: Callable[[], None]) -> None:
        """Run a task, which must not raise, on another thread.

        Raises:
            ResourceError: There is no thread, and none can be started; the task is not run.
        """
        with self._changed:
            self._tasks.append(task)
            # one that was notified and has not woken yet is idle, and its task waits: it is counted
            if self._idle >= len(self._tasks):
                self._changed.notify()
                return
            if self._count >= self._most:
                return  # the first thread that is ready takes it
            self._count += 1
        try:
            threading.Thread(target=self._work, name="mslite-answer", daemon=True).start()
        except RuntimeError as exc:
            with self._changed:
                self._count -= 1
                if self._count:
                    return
                self._tasks.remove(task)
            raise ResourceError(f"no thread can be started to wait for an answer: {exc}") from exc

    def _work(self) -> None:
        while (task := self._next()) is not None:
            task()
            del task  # it holds a request with all its arrays

    def _next(self) -> Callable[[], None] | None:
        """A task; None when there was none for some time, and this thread should end."""
        with self._changed:
            self._idle += 1
            found = self._changed.wait_for(lambda: self._tasks, self._idle_s)
            self._idle -= 1
            if found:
                return self._tasks.popleft()
            self._count -= 1
            return None
