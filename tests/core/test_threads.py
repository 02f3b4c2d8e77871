from __future__ import annotations

import _thread
import threading

import pytest

from mindspore_lite.core import threads


def test_a_thread_runs_what_it_is_given() -> None:
    done = threading.Event()
    threads.start(done.set)
    assert done.wait(120)


def test_a_thread_that_dies_before_it_begins_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it does where memory is short: the interpreter cannot make its first frame."""
    monkeypatch.setattr(threads, "BEGIN_S", 0.01)
    monkeypatch.setattr(_thread, "start_new_thread", lambda run, arguments: 1)
    with pytest.raises(RuntimeError, match="it does not begin"):
        threads.start(lambda: pytest.fail("it ran"))


def test_a_thread_that_begins_too_late_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = []
    monkeypatch.setattr(threads, "BEGIN_S", 0.01)
    monkeypatch.setattr(_thread, "start_new_thread", lambda run, arguments: kept.append(run))
    with pytest.raises(RuntimeError):
        threads.start(lambda: pytest.fail("it ran"))
    kept[0]()
