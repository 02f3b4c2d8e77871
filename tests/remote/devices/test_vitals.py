"""vitals.py: a process that is stopped or hangs is told from one that is slow, busy or starved."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.devices import stop_process

from mindspore_lite.errors import RequestTimeoutError, ResourceError, WorkerDiedError
from mindspore_lite.remote.devices import vitals
from mindspore_lite.remote.devices.process import WorkerProcess
from mindspore_lite.remote.devices.supervisor import State
from mindspore_lite.remote.devices.vitals import (
    ENDED_AFTER,
    HANGS_AFTER,
    SLOW_AFTER,
    Activity,
    Vitals,
    activity,
)

HANGS = "its process does not answer, nor does it compute"
AGAIN = "its process was started again"


class World:
    """A supervisor, its process as the kernel shows it, and questions that the test answers."""

    def __init__(self) -> None:
        self.seen = Activity("S", 100)
        self.trouble: str | Exception = ""
        self.questions: list[Callable[[], None]] = []
        self.given_up: list[str] = []
        self.refuses = False
        self.supervisor: Any = SimpleNamespace(
            state=State.READY,
            life=self.life(),
            give_up=lambda life, why: self.given_up.append(why),
        )
        self.vitals = Vitals(
            cast(Any, self.supervisor), self.start, lambda pid, *, threads: self.seen
        )

    def life(self) -> Any:
        session = SimpleNamespace(info=self.info)
        process = SimpleNamespace(pid=4, alive=True)
        return SimpleNamespace(process=process, model=SimpleNamespace(session=session, number=1))

    def start(self, question: Callable[[], None]) -> None:
        if self.refuses:
            raise ResourceError("no thread")
        self.questions.append(question)

    def info(self, key: str, model: int, timeout_s: float) -> str:
        assert (key, model) == ("trouble", 1)
        if isinstance(self.trouble, Exception):
            raise self.trouble
        return self.trouble

    def answer(self) -> None:
        (question,) = self.questions
        self.questions.clear()
        question()

    def looks(self, count: int) -> str:
        found = ""
        for _ in range(count):
            found = self.vitals.look()
        return found


def test_one_that_answers_is_well() -> None:
    world = World()
    for _ in range(100):
        assert world.vitals.look() == ""
        world.answer()
    assert not world.given_up


def test_one_that_sleeps_although_it_was_asked_hangs_and_is_given_up() -> None:
    world = World()
    assert world.looks(HANGS_AFTER) == ""
    assert world.looks(1) == HANGS
    assert len(world.questions) == 1
    world.looks(ENDED_AFTER - HANGS_AFTER)
    assert world.given_up == ["it did not answer for some time, nor did it compute"]
    world.answer()
    assert world.looks(1) == ""


@pytest.mark.parametrize("starved", [True, False])
def test_one_that_computes_or_waits_for_a_processor_is_only_slow(starved: bool) -> None:
    world = World()
    world.seen = world.seen._replace(is_runnable=starved)
    for look in range(SLOW_AFTER):
        assert world.looks(1) == "", look
        if not starved:
            world.seen = world.seen._replace(ticks=world.seen.ticks + 5)
    assert world.looks(1) == "its process has not answered for 10 s"
    for _ in range(ENDED_AFTER):
        world.looks(1)
        if not starved:
            world.seen = world.seen._replace(ticks=world.seen.ticks + 5)
    assert not world.given_up


def test_one_of_which_the_kernel_tells_nothing_does_not_hang() -> None:
    world = World()
    world.seen = Activity("")
    assert world.looks(SLOW_AFTER) == ""
    assert not world.given_up


def test_a_stopped_one_is_seen_at_once_and_given_up_later() -> None:
    world = World()
    world.seen = Activity("T")
    assert world.looks(1) == "its process is stopped"
    world.looks(ENDED_AFTER - 2)
    assert not world.given_up
    world.looks(3)
    assert world.given_up == ["it was stopped, and not continued"]
    world.seen = Activity("S")
    assert world.looks(1) == ""


def test_one_that_is_debugged_is_not_given_up() -> None:
    world = World()
    world.seen = Activity("t")
    assert world.looks(2 * ENDED_AFTER) == "its process is stopped"
    assert not world.given_up


def test_what_it_complains_of_counts_and_ends_it_when_it_stays() -> None:
    world = World()
    world.trouble = "1 of 1 workers hang"
    for _ in range(ENDED_AFTER):
        world.looks(1)
        world.answer()
    assert world.looks(1) == world.trouble
    assert world.given_up == [world.trouble]


def test_a_question_that_fails_says_nothing() -> None:
    world = World()
    world.trouble = WorkerDiedError("gone")
    for _ in range(2 * HANGS_AFTER):
        assert world.looks(1) == ""
        world.answer()


def test_a_lane_that_was_given_up_is_no_answer() -> None:
    world = World()
    assert world.looks(2 * HANGS_AFTER) == HANGS
    world.trouble = RequestTimeoutError("late")
    world.answer()
    assert world.looks(1) == HANGS


def test_without_a_thread_nothing_is_asked() -> None:
    world = World()
    world.refuses = True
    assert world.looks(10 * HANGS_AFTER) == ""


@pytest.mark.parametrize(
    ("state", "words"),
    [(State.STARTING, "being started"), (State.DOWN, "being started"), (State.OUT, "too often")],
)
def test_one_that_is_not_there_is_missed(state: State, words: str) -> None:
    world = World()
    world.supervisor.life, world.supervisor.state = None, state
    assert words in world.looks(1)


def test_one_that_died_just_now_is_missed() -> None:
    world = World()
    world.supervisor.life.process.alive = False
    assert "being started" in world.looks(1)


def test_another_one_begins_anew() -> None:
    world = World()
    world.looks(2 * HANGS_AFTER)
    (old,) = world.questions
    world.questions.clear()
    world.supervisor.life = world.life()
    assert world.looks(1) == AGAIN  # even where nobody saw the end of the first
    assert world.looks(1) == ""
    old()  # of the first one
    world.looks(1)
    assert len(world.questions) == 1


def test_the_kernel_tells_of_this_process() -> None:
    found = activity(os.getpid(), threads=True)
    assert found.state in "RS" and found.is_runnable and found.ticks > 0
    assert activity(2**22 + 1, threads=True) == Activity("")


def test_the_kernel_tells_of_a_stopped_process() -> None:
    process = WorkerProcess(0, ())
    try:
        stop_process(process.pid)
        assert activity(process.pid, threads=True) == Activity(
            "T", activity(process.pid, threads=False).ticks
        )
    finally:
        process.kill("the test is over")
        process.died()
        process.hang_up()


def test_the_numbers_make_a_second() -> None:
    assert vitals.LOOK_S * (HANGS_AFTER + 1) <= 1.0
