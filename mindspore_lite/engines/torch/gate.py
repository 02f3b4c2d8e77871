"""A lock for runs and changes: any number of runs pass together, a change passes alone.

A change that waits lets no new run in, so that it comes to pass however many runs there are. It
waits for those under way; runs that arrive meanwhile wait for it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager


class Gate:
    """To be held by `with gate.running()` or `with gate.changing()`."""

    def __init__(self) -> None:
        self._one = _Running(self)
        self._lock = threading.Lock()  # of what follows; taken itself by runs, which is faster
        self._state = threading.Condition(self._lock)
        self._turn = threading.Lock()  # serialises changes
        self._running = 0
        self._changing = False

    def running(self) -> AbstractContextManager[None]:
        """Be one of many."""
        return self._one

    def enter(self) -> None:
        """Come in as one of many."""
        with self._lock:
            while self._changing:
                self._state.wait()
            self._running += 1

    def leave(self) -> None:
        """Go out as one of many."""
        with self._lock:
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


class _Running(AbstractContextManager[None]):
    """A class, and the same object for all: every run passes here, and generators take longer."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def __enter__(self) -> None:
        self._gate.enter()

    def __exit__(self, *error: object) -> None:
        self._gate.leave()
