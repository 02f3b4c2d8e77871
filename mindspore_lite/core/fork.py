"""What a forked child does first: one registry of hooks, and a lock that is free in the child."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from contextlib import ExitStack

Hook = Callable[[], object]
_HOOKS: list[Hook] = []


def after_fork_in_child(hook: Hook) -> None:
    """Let a forked child call `hook` before anything else; hooks are called in their order."""
    _HOOKS.append(hook)


def _run_hooks() -> None:
    """Call all hooks, whatever one of them raises: Python then shows the last error."""
    with ExitStack() as stack:
        for hook in reversed(_HOOKS):
            stack.callback(hook)


os.register_at_fork(after_in_child=_run_hooks)


class ForkLock:
    """To be held by `with`, or with a time limit.

    What it guards must be in order at every moment, also for a child.
    """

    def __init__(self, reentrant: bool = False) -> None:
        self._make = threading.RLock if reentrant else threading.Lock
        self._lock = self._make()
        _LOCKS.add(self)

    def acquire(self, timeout_s: float) -> bool:
        """Take it within this time, to be released by `release`; False if that was not possible."""
        return self._lock.acquire(timeout=timeout_s)

    def release(self) -> None:
        """Let go of it."""
        self._lock.release()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def _after_fork() -> None:
    for lock in list(_LOCKS):
        lock._lock = lock._make()


_LOCKS: weakref.WeakSet[ForkLock] = weakref.WeakSet()
after_fork_in_child(_after_fork)
