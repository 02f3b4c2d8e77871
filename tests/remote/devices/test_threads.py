"""threads.py: tasks are run soon, on threads that come and go."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable

import pytest
from support.fake_engine import LIMIT_S, wait_for

from mindspore_lite.errors import ResourceError
from mindspore_lite.remote.devices.threads import Threads


class Gate:
    """A task that stays until it is let go."""

    def __init__(self) -> None:
        self.entered, self.opened = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.entered.set()
        self.opened.wait(LIMIT_S)


def entered(gates: list[Gate]) -> bool:
    return all(gate.entered.wait(LIMIT_S) for gate in gates)


def test_tasks_run_at_the_same_time() -> None:
    threads, gates = Threads(), [Gate() for _ in range(5)]
    for gate in gates:
        threads.start(gate)
    assert entered(gates)
    for gate in gates:
        gate.opened.set()


def test_a_thread_is_used_again() -> None:
    threads, names = Threads(idle_s=LIMIT_S), []
    for _ in range(3):
        done = threading.Event()

        def task(done: threading.Event = done) -> None:
            names.append(threading.get_ident())
            done.set()

        threads.start(task)
        assert done.wait(LIMIT_S)
        wait_for(lambda: threads._idle == 1)
    assert len(set(names)) == 1


def test_a_task_does_not_wait_behind_one_that_an_idle_thread_was_just_called_for() -> None:
    """Two tasks at once, one idle thread: the second gets a thread of its own."""
    threads, first = Threads(idle_s=LIMIT_S), Gate()
    first.opened.set()
    threads.start(first)
    wait_for(lambda: threads._idle == 1)
    gates = [Gate(), Gate()]
    with threads._changed:  # the idle thread cannot take anything yet
        for gate in gates:
            threads.start(gate)
    assert entered(gates)
    for gate in gates:
        gate.opened.set()


def test_what_comes_beyond_the_most_threads_waits_for_a_free_one() -> None:
    threads, gates = Threads(most=2), [Gate() for _ in range(4)]
    for gate in gates:
        threads.start(gate)
    assert entered(gates[:2])
    assert not any(gate.entered.is_set() for gate in gates[2:])
    gates[0].opened.set()
    assert entered(gates[:3])
    gates[1].opened.set()
    assert entered(gates)
    for gate in gates:
        gate.opened.set()


def test_a_thread_without_work_ends() -> None:
    threads, ran = Threads(idle_s=0.0), threading.Event()
    threads.start(ran.set)
    assert ran.wait(LIMIT_S)
    wait_for(lambda: threads._count == 0)
    again = threading.Event()
    threads.start(again.set)
    assert again.wait(LIMIT_S)


def test_an_idle_thread_holds_nothing_of_its_last_task() -> None:
    threads, task = Threads(idle_s=LIMIT_S), Gate()
    task.opened.set()
    gone = weakref.ref(task)
    gc.collect()
    gc.disable()
    try:
        threads.start(task)
        assert task.entered.wait(LIMIT_S)
        del task
        wait_for(lambda: gone() is None)
        assert threads._count == 1
    finally:
        gc.enable()


def refused(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    return monkeypatch.undo


def test_a_task_is_refused_when_there_is_no_thread_and_none_can_be_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads, ran = Threads(), threading.Event()
    undo = refused(monkeypatch)
    with pytest.raises(ResourceError, match=r"no thread can be started .*can't start new thread"):
        threads.start(ran.set)
    undo()
    threads.start(lambda: None)
    wait_for(lambda: threads._idle == 1)
    assert not ran.is_set()


def test_a_task_waits_for_the_threads_there_are_when_no_other_can_be_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads, gate, ran = Threads(), Gate(), threading.Event()
    threads.start(gate)
    assert gate.entered.wait(LIMIT_S)
    refused(monkeypatch)
    threads.start(ran.set)
    gate.opened.set()
    assert ran.wait(LIMIT_S)
