"""A gate for runs and changes: any number of runs pass together, a change passes alone.

A change that waits lets no new run in, so that it comes to pass however many runs there are. It
waits for those under way; whoever comes meanwhile waits for it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Gate:
    """To be held by `with gate.running()` or `with gate.changing()`."""

    def __init__(self) -> None:
        self._state = threading.Condition(threading.Lock())
        self._turn = threading.Lock()  # of those who change
        self._running = 0
        self._changing = False

    @contextmanager
    def running(self) -> Iterator[None]:
        """Be one of many."""
        with self._state:
            while self._changing:
                self._state.wait()
            self._running += 1
        try:
            yield
        finally:
            with self._state:
                self._running -= 1
                if self._changing and not self._running:
                    self._state.notify_all()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Be alone."""
        with self._turn:
            with self._state:
                self._changing = True
                while self._running:
                    self._state.wait()
            try:
                yield
            finally:
                with self._state:
                    self._changing = False
                    self._state.notify_all()
