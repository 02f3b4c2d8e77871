"""The watchdog calls back when a deadline passes, and only then."""

from __future__ import annotations

import math
import os
import threading
import time

import pytest

from mindspore_lite.core.deadline import Watchdog

FAR_S = 1e6


class FakeClock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Unattended(Watchdog):
    """Without a watching thread: the test alone calls fire_due."""

    def _watch(self) -> None:
        pass


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def test_due_callbacks_are_called_in_order_and_once(clock: FakeClock) -> None:
    dog, called = Unattended(clock), []
    for offset in (3, 1, 2):
        dog.watch(FAR_S + offset, lambda offset=offset: called.append(offset))
    clock.now_s = FAR_S + 2
    assert dog.fire_due() == 1
    assert called == [1, 2]
    clock.now_s = FAR_S + 9
    assert dog.fire_due() is None
    assert called == [1, 2, 3]


def test_cancelled_deadline_is_not_called(clock: FakeClock) -> None:
    dog, called = Unattended(clock), []
    kept = dog.watch(FAR_S, lambda: called.append("kept"))
    dog.cancel(dog.watch(FAR_S, lambda: called.append("cancelled")))
    clock.now_s = FAR_S
    dog.fire_due()
    assert called == ["kept"]
    dog.cancel(kept)  # harmless when late


def test_cancelled_entries_do_not_pile_up(clock: FakeClock) -> None:
    dog = Unattended(clock)
    for _ in range(10_000):
        dog.cancel(dog.watch(FAR_S, lambda: None))
    assert len(dog) < 200


def test_failing_callback_does_not_stop_the_others(clock: FakeClock) -> None:
    dog, called = Unattended(clock), []
    dog.watch(FAR_S, lambda: 1 / 0)
    dog.watch(FAR_S, lambda: called.append("second"))
    clock.now_s = FAR_S
    dog.fire_due()
    assert called == ["second"]


def test_a_started_watchdog_needs_no_thread_for_its_first_entry(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    ready, late, done = Watchdog(), Watchdog(), threading.Event()
    ready.start()
    with monkeypatch.context() as at_exit:
        at_exit.setattr(threading.Thread, "start", refuse)
        ready.start()
        ready.watch(time.monotonic(), done.set)
        with pytest.raises(RuntimeError, match="can't create new thread"):
            late.start()
    assert done.wait(120)
    late.start()  # what failed can be tried again


def test_thread_wakes_for_a_nearer_deadline() -> None:
    dog, done = Watchdog(), threading.Event()
    dog.watch(math.inf, lambda: None)
    dog.watch(time.monotonic() + FAR_S, lambda: None)
    dog.watch(time.monotonic(), done.set)
    assert done.wait(120)


def test_many_threads_get_all_their_callbacks() -> None:
    dog, gate = Watchdog(), threading.Barrier(8)
    events = [threading.Event() for _ in range(8 * 50)]

    def add(mine: list[threading.Event]) -> None:
        gate.wait()
        for event in mine:
            dog.watch(time.monotonic() + 0.001, event.set)
            dog.cancel(dog.watch(time.monotonic() + FAR_S, event.clear))

    threads = [threading.Thread(target=add, args=(events[i::8],)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(event.wait(120) for event in events)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_child_of_a_fork_watches_anew() -> None:
    dog = Watchdog()
    dog.watch(time.monotonic() + FAR_S, lambda: None)  # the thread is running now
    dog._changed.acquire()  # as another thread might hold it at the very moment of the fork
    child = os.fork()
    if child == 0:  # the parent's test run must not go on in here
        done = threading.Event()
        dog.watch(time.monotonic(), done.set)
        os._exit(0 if done.wait(120) else 1)
    dog._changed.release()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
