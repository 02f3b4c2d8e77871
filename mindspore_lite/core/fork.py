"""A lock that is free in a forked child, whichever thread of the parent held it."""

from __future__ import annotations

import os
import threading
import weakref


class ForkLock:
    """To be held by `with`. What it guards must be in order at every moment, also for a child."""

    def __init__(self, reentrant: bool = False) -> None:
        self._make = threading.RLock if reentrant else threading.Lock
        self._lock = self._make()
        _LOCKS.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def _after_fork() -> None:
    for lock in list(_LOCKS):
        lock._lock = lock._make()


_LOCKS: weakref.WeakSet[ForkLock] = weakref.WeakSet()
os.register_at_fork(after_in_child=_after_fork)
