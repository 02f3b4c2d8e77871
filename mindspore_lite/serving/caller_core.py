"""Gathers waiting callers on one core, since only one at a time can run Python.

Callers that wake on many cores hand the interpreter's lock, and all objects that it guards, from
core to core. Measured with 64 callers on 16 cores: 100 microseconds of CPU time for each request,
and 55 where they wake on one. So a caller in a crowd is bound to the meeting core before it falls
asleep, and may go wherever it could before once it is awake: while bound it computes nothing.

A process has one such core, as it has one lock; which one is drawn by lot, so that processes do not
choose the same. The affinity of a caller that may not run there is left alone.
"""

from __future__ import annotations

import os
import random
import sys
from contextlib import suppress

from mindspore_lite.core.fork import after_fork_in_child

Cores = set[int]

_FEWEST = 4  # cores; with 2, one of which the workers use, it was measured to be no faster

_core: list[int] = []  # the one of this process, once it is drawn


def enter() -> Cores | None:
    """Bind the calling thread to the core; returns what `leave` needs, None if nothing changed."""
    if not _takes_turns:
        return None
    allowed = os.sched_getaffinity(0)
    if not _core:
        _core.append(random.choice(sorted(allowed)))
    if len(allowed) < _FEWEST or _core[0] not in allowed:
        return None
    try:
        os.sched_setaffinity(0, _core[:1])
    except OSError:  # the core was taken from this process since it was drawn
        _core.clear()
        return None
    return allowed


def leave(allowed: Cores | None) -> None:
    """Let the calling thread run where it could before it entered."""
    if allowed is not None:
        with suppress(OSError):  # all of its cores were taken from this process
            os.sched_setaffinity(0, allowed)


# builds of Python without the lock let all callers run at once
_takes_turns = getattr(sys, "_is_gil_enabled", lambda: True)()
after_fork_in_child(_core.clear)
