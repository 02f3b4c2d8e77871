"""heartbeat.py: a silent worker is told from a busy one, and from one that is gone."""

from __future__ import annotations

import os
from typing import Any, cast

import pytest
from support.fake_engine import FakeClock
from support.fake_workers import FakeProcess, FakeWorkers

from mindspore_lite.errors import ResourceError, WorkerDiedError
from mindspore_lite.remote.devices.heartbeat import Heartbeat, cpu_ticks


class World:
    """A process that the test silences, a clock that it moves, and what the kernel tells."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.ticks = 7
        self.process: FakeProcess = FakeWorkers().start(3, (), lambda: None)
        self.heartbeat = Heartbeat(cast(Any, self.process), self.clock.s, lambda pid: self.ticks)


def test_one_that_answers_is_not_silent_however_long_it_was_not_asked() -> None:
    world = World()
    world.clock.advance(1000)
    assert (world.heartbeat.ask(), world.heartbeat.ask_for_work()) == (0, 0)


def test_silence_counts_from_the_last_answer() -> None:
    world = World()
    world.clock.advance(5)
    world.heartbeat.ask()
    world.process.silent = True
    world.clock.advance(20)
    assert world.heartbeat.ask() == 20
    world.clock.advance(10)
    assert world.heartbeat.ask() == 30
    world.process.silent = False
    assert world.heartbeat.ask() == 0


def test_seconds_in_which_it_computes_do_not_count() -> None:
    world = World()
    world.process.silent = True
    world.heartbeat.ask_for_work()
    for _ in range(100):
        world.clock.advance(10)
        world.ticks += 1
        assert world.heartbeat.ask_for_work() == 0
    world.clock.advance(15)
    assert world.heartbeat.ask_for_work() == 15


def test_one_that_was_not_asked_for_long_begins_anew() -> None:
    world = World()
    world.process.silent = True
    world.clock.advance(1000)
    world.heartbeat.forget()
    assert world.heartbeat.ask_for_work() == 0


def test_a_lane_that_nobody_greets_is_silence_and_no_lane_at_all_tells_nothing() -> None:
    world = World()

    def refuse() -> None:
        raise WorkerDiedError("no worker answers: timed out")

    world.process.asked = refuse  # type: ignore[method-assign]
    world.clock.advance(9)
    assert world.heartbeat.ask() == 9

    def full() -> None:
        raise ResourceError("no socket")

    world.process.asked = full  # type: ignore[method-assign]
    with pytest.raises(ResourceError):
        world.heartbeat.ask()


def test_the_kernel_tells_whether_a_process_computes() -> None:
    before = cpu_ticks(os.getpid())
    assert before >= 0
    while cpu_ticks(os.getpid()) == before:  # which is computing
        pass
    assert cpu_ticks(os.getpid()) > before
    assert cpu_ticks(2**22 + 1) == -1  # more than there can be
