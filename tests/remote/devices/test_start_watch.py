"""start_watched.py: a worker that builds may take its time, but must answer questions meanwhile."""

from __future__ import annotations

import threading
from typing import Any, cast

import pytest
from support.fake_engine import LIMIT_S, wait_for
from support.fake_workers import FakeProcess, FakeWorkers

from mindspore_lite.errors import ResourceError, WorkerDiedError
from mindspore_lite.remote.devices import start_watch as module
from mindspore_lite.remote.devices.start_watch import start_watched


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> FakeProcess:
    monkeypatch.setattr(module, "EVERY_S", 0.001)
    found: FakeProcess = FakeWorkers().start(3, (), lambda: None)
    return found


def watched(process: FakeProcess) -> Any:
    return start_watched(cast(Any, process))


def watchers() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == "mslite-start_watched-3"]


def asked_often(process: FakeProcess, monkeypatch: pytest.MonkeyPatch, fault: Any = None) -> None:
    """Wait until it was asked a few times."""
    count = threading.Semaphore(0)

    def asked() -> None:
        count.release()
        if fault is not None:
            raise fault

    monkeypatch.setattr(process, "asked", asked)
    assert all(count.acquire(timeout=LIMIT_S) for _ in range(3))


@pytest.mark.parametrize("fault", [None, ResourceError("no socket")])
def test_a_process_that_answers_or_cannot_be_asked_builds_on(
    process: FakeProcess, monkeypatch: pytest.MonkeyPatch, fault: Exception | None
) -> None:
    with watched(process):
        asked_often(process, monkeypatch, fault)
        assert process.alive
    wait_for(lambda: not watchers())


def test_a_process_that_falls_silent_is_ended_and_the_time_is_said(
    process: FakeProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SILENT_S", 0.01)
    with watched(process):
        process.silent = True
        wait_for(lambda: not process.alive)
    assert process.why == "killed, it did not answer for 0.0 s while it built the model"


def test_a_process_that_died_or_takes_no_lane_at_once_is_not_called_silent(
    process: FakeProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was told to have been silent for 300 s, and killed, at the first question."""
    with watched(process):
        asked_often(process, monkeypatch, WorkerDiedError("no worker answers: timed out"))
        assert process.alive
        process.die("ended by signal 9")
        wait_for(lambda: not watchers())
    assert process.why == "ended by signal 9"


def test_a_build_that_is_over_is_not_asked_about(process: FakeProcess) -> None:
    """Also when the question was on its way."""
    begun, goes_on = threading.Event(), threading.Event()

    def asked() -> None:
        begun.set()
        assert goes_on.wait(LIMIT_S)
        FakeProcess.asked(process)

    process.asked = asked  # type: ignore[method-assign]
    process.silent = True
    with watched(process):
        assert begun.wait(LIMIT_S)
    goes_on.set()
    wait_for(lambda: not watchers())
    assert process.alive


def test_a_quick_build_costs_no_thread(
    process: FakeProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "EVERY_S", LIMIT_S)
    entries = len(module.WATCHDOG._heap)
    with watched(process):
        assert len(module.WATCHDOG._heap) == entries + 1
    assert not watchers()
