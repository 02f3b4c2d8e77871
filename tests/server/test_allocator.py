from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest
from support.fake_engine import FakeClock, Unattended, wait_for

from mindspore_lite.server.allocator import Trimmer
from mindspore_lite.server.core import Flight
from mindspore_lite.server.limits import MIB

HAS_ARENAS = hasattr(ctypes.CDLL(None), "mallopt")


class Trims:
    """A trimmer of which the test is the clock; `count` is how often it trimmed."""

    def __init__(self) -> None:
        self.count, self.is_busy = 0, False
        self._clock = FakeClock()
        self._watchdog = Unattended(self._clock.s)
        self.trimmer = Trimmer(lambda: self.is_busy, self._trim, self._watchdog, self._clock.s)

    def _trim(self) -> None:
        self.count += 1

    def later(self, seconds: float = 1.0) -> None:
        self._clock.advance(seconds)
        self._watchdog.fire_due()

    @property
    def planned(self) -> int:
        return len(self._watchdog)


def test_memory_is_handed_back_a_second_after_a_large_request() -> None:
    trims = Trims()
    for _ in range(100):
        trims.trimmer.freed()
    assert trims.planned == 1
    trims.later(0.9)
    assert trims.planned == 1
    trims.later(0.1)
    wait_for(lambda: trims.count == 1)
    assert trims.planned == 0
    trims.trimmer.freed()
    trims.later()
    wait_for(lambda: trims.count == 2)


def test_memory_that_is_needed_again_is_kept_for_a_while() -> None:
    trims = Trims()
    trims.is_busy = True
    trims.trimmer.freed()
    for _ in range(10):
        trims.later()
    assert (trims.count, trims.planned) == (0, 1)
    trims.is_busy = False
    trims.later()
    wait_for(lambda: trims.count == 1)
    trims.is_busy = True
    trims.trimmer.freed()
    for _ in range(30):
        trims.later()
    wait_for(lambda: trims.count == 2)


def test_only_large_requests_count() -> None:
    trims = Trims()
    flight = Flight(64 * MIB)
    flight.trimmer = trims.trimmer
    for size in (1, MIB - 1):
        flight.take(size)
        flight.give(size)
    assert trims.planned == 0
    flight.take(MIB)
    flight.give(MIB)
    assert trims.planned == 1


ARENAS = """
import os, threading
from mindspore_lite.server.allocator import limit_arenas
limit_arenas()
kept = []
threads = [threading.Thread(target=lambda: kept.append(bytes(100_000))) for _ in range(20)]
for thread in threads: thread.start()
for thread in threads: thread.join()
import ctypes
ctypes.CDLL(None).malloc_stats()
"""


@pytest.mark.skipif(not HAS_ARENAS, reason="this C library has no arenas")
@pytest.mark.parametrize("given", ["", "MALLOC_ARENA_MAX"])
def test_arenas_are_few_unless_the_user_says_otherwise(given: str) -> None:
    env = {k: v for k, v in os.environ.items() if "MALLOC" not in k and k != "GLIBC_TUNABLES"}
    env |= {given: "5"} if given else {}
    command = [sys.executable, "-c", ARENAS]
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=True)
    arenas = done.stderr.count("Arena ")
    most = max(1, (os.cpu_count() or 1) // 8)
    assert 1 <= arenas <= (5 if given else most + 1)  # one may have been there before
