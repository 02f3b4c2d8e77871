"""engines/time_limit.py: who waits for a call gives up in time, whatever the call does."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from functools import partial
from typing import NoReturn

import pytest

from mindspore_lite.core import threads
from mindspore_lite.core.stop import Stop
from mindspore_lite.engines import time_limit
from mindspore_lite.engines.time_limit import all_within, within
from mindspore_lite.errors import EngineError, RequestTimeoutError, ResourceError

LONG_S = 60.0


@pytest.fixture(autouse=True)
def no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_limit, "GRACE_S", 0.0)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What calls that never end wait for; it is opened after the test."""
    made = threading.Event()
    yield made
    made.set()


def test_results_come_in_the_order_of_the_calls() -> None:
    first = threading.Event()

    def one() -> int:
        assert first.wait(LONG_S)  # both run at once
        return 1

    def two() -> int:
        first.set()
        return 2

    assert all_within(LONG_S, "it", [one, two]) == [1, 2]


def test_an_error_is_the_callers() -> None:
    def fail() -> NoReturn:
        raise EngineError("no")

    with pytest.raises(EngineError, match=r"^no$"):
        within(LONG_S, "it", fail)


def test_a_call_that_does_not_come_back_is_given_up(gate: threading.Event) -> None:
    words = r"^compiling did not end within 0.01 s; .* \[build\] max_seconds and max_run_seconds$"
    with pytest.raises(RequestTimeoutError, match=words):
        within(0.01, "compiling", lambda: gate.wait(LONG_S))


def test_a_call_that_heeds_its_stop_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_limit, "GRACE_S", LONG_S)
    stop, stopped, ended = Stop(), threading.Event(), threading.Event()
    stop.handle(lambda: stopped, lambda event: event.set())

    def run() -> None:
        assert stopped.wait(LONG_S)
        ended.set()

    with pytest.raises(RequestTimeoutError):
        within(0.01, "it", run, stop)
    assert stop.fired
    assert ended.is_set()  # it was waited for


def test_an_interrupt_fires_the_stop_and_is_passed_on(
    monkeypatch: pytest.MonkeyPatch, gate: threading.Event
) -> None:
    class Interrupted(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            raise KeyboardInterrupt

    monkeypatch.setattr(time_limit.threading, "Event", Interrupted)
    stop = Stop()
    with pytest.raises(KeyboardInterrupt):
        within(LONG_S, "it", lambda: None, stop)
    assert stop.fired


def test_a_machine_without_threads_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(run: object) -> NoReturn:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "start", refuse)
    with pytest.raises(ResourceError, match=r"^it: no thread could be started"):
        within(LONG_S, "it", lambda: None)


def test_an_error_keeps_nothing_alive_once_it_is_gone() -> None:
    class Model:
        pass

    def fail(model: Model) -> NoReturn:
        raise EngineError("no")

    model = Model()
    seen = weakref.ref(model)
    with pytest.raises(EngineError):
        within(LONG_S, "it", partial(fail, model))
    del model
    assert seen() is None  # without the help of the garbage collector
