"""Gives memory back to the system that glibc keeps after large requests.

gRPC receives a message in many pieces, on threads of its own. glibc gives each thread an arena, and
an arena keeps what was freed in it: a hundred messages of 20 MB left 160 MB behind, although
nothing was in use any more. So `mslite serve` has few arenas (`limit_arenas`), and a second after a
large request has ended, when nothing is under way, the free pages are handed back (`Trimmer`).
Other C libraries have neither; there this does nothing.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache

from mindspore_lite.core.deadline import WATCHDOG, Watchdog
from mindspore_lite.core.environment import variables

LARGE_BYTES = 1 << 20  # of a request that is worth a look; guess
_CORES_PER_ARENA = 8  # glibc has 8 arenas per core, Python takes little from them; guess
_ARENA_MAX = -8  # M_ARENA_MAX of mallopt()
_AFTER_S = 1.0  # from a large request to the look; guess
_MOST_LOOKS = 30  # that find requests under way, before the pages are handed back all the same


def limit_arenas() -> None:
    """Let the process have few arenas. Threads that have one keep it: call this early.

    Nothing is done if the user has said how many.
    """
    if "MALLOC_ARENA_MAX" in variables or "arena_max" in variables.get("GLIBC_TUNABLES", ""):
        return
    with suppress(AttributeError):  # not glibc
        _libc().mallopt(_ARENA_MAX, max(1, (os.cpu_count() or 1) // _CORES_PER_ARENA))


def trim() -> None:
    """Hand all free pages back to the system. Takes milliseconds, without the interpreter."""
    with suppress(AttributeError):  # not glibc
        _libc().malloc_trim(0)


class Trimmer:
    """Trims after large requests, at most once a second. Safe from many threads."""

    def __init__(
        self,
        is_busy: Callable[[], bool],
        trim: Callable[[], None] = trim,
        watchdog: Watchdog = WATCHDOG,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Trim when it is not busy; while it is, memory is used again anyway."""
        self._is_busy, self._trim = is_busy, trim
        self._watchdog, self._clock = watchdog, clock
        self._lock = threading.Lock()
        self._is_planned = False
        self._looks = 0

    def freed(self) -> None:
        """A large request has ended."""
        with self._lock:
            if self._is_planned:
                return
            self._is_planned, self._looks = True, 0
        self._plan()

    def _plan(self) -> None:
        self._watchdog.watch(self._clock() + _AFTER_S, self._look)

    def _look(self) -> None:
        self._looks += 1
        if self._is_busy() and self._looks < _MOST_LOOKS:
            self._plan()
            return
        with self._lock:
            self._is_planned = False
        # on a thread of its own: the watchdog has deadlines to keep
        threading.Thread(target=self._trim, name="mslite-trim", daemon=True).start()


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)
