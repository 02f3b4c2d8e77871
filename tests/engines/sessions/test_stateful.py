"""engines/sessions/state.py: runs that fail, are stopped, wait, or lie on a card."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.engines.base import SessionInfo, Stop
from mindspore_lite.engines.sessions.state import StatefulSession, carrying
from mindspore_lite.errors import EngineError, StoppedError
from mindspore_lite.graph.state import Kept, written

KEPT = Kept("n", "n/first", "n/before", "n/after")
F32 = np.dtype(np.float32)


class Counting:
    """Counts runs from 10 on; `during` is called in each."""

    def __init__(self, during: Callable[[], None] = lambda: None) -> None:
        inputs = (("x", F32), ("n/first", np.dtype(bool)), ("n/before", F32))
        self.info = SessionInfo(
            tuple(TensorInfo(name, dtype, ()) for name, dtype in inputs),
            tuple(TensorInfo(name, F32, ()) for name in ("y", "n/after")),
            {"mslite.state": written([KEPT])},
        )
        self.during = during
        self.start = np.float32(10)
        self.shape: tuple[int, ...] = ()
        self.closed = False

    def run(self, inputs: Sequence[Any], stop: Stop | None = None) -> list[Any]:
        x, first, before = inputs
        self.during()
        after = (self.start if first else before) + np.float32(1)
        return [x + after, np.full(self.shape, after, F32)]

    def skeleton(self) -> bytes:
        return b""

    def close(self) -> None:
        self.closed = True


ZERO = np.zeros((), F32)


def said(session: Any, stop: Stop | None = None) -> float:
    return float(session.run([ZERO], stop)[0])


def test_a_session_without_a_state_is_left_alone() -> None:
    inner = Counting()
    inner.info = SessionInfo(inner.info.inputs, inner.info.outputs)
    assert carrying(inner) is inner


def test_ends_that_the_session_does_not_have_are_an_error() -> None:
    with pytest.raises(EngineError, match="not among its ends"):
        StatefulSession(Counting(), [Kept("m", "m/first", "m/before", "m/after")])


def test_a_run_that_fails_leaves_what_was_there() -> None:
    inner = Counting()
    session = carrying(inner)
    assert said(session) == 11

    def fails() -> None:
        raise EngineError("no memory")

    inner.during = fails
    with pytest.raises(EngineError, match="no memory"):
        said(session)
    inner.during = lambda: None
    assert said(session) == 12


def test_a_run_that_was_stopped_leaves_what_was_there_even_if_it_came_to_its_end() -> None:
    inner, stop = Counting(), Stop()
    session = carrying(inner)
    inner.during = stop.fire
    with pytest.raises(StoppedError):
        said(session, stop)
    inner.during = lambda: None
    assert said(session) == 11


def test_a_run_that_waits_for_another_can_be_stopped() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def during() -> None:
        begun.set()
        go_on.wait()

    session = carrying(Counting(during))
    other = threading.Thread(target=said, args=(session,))
    other.start()
    begun.wait()
    stop = Stop()
    stop.fire()
    try:
        with pytest.raises(StoppedError, match="while another one"):
            said(session, stop)
    finally:
        go_on.set()
        other.join()
    assert said(session) == 12


def test_a_value_of_another_size_is_an_error_and_is_not_kept() -> None:
    inner = Counting()
    session = carrying(inner)
    assert said(session) == 11
    inner.shape = (2,)
    with pytest.raises(EngineError, match=r"leaves \[2\] in its parameter 'n', which is \[\]"):
        said(session)
    inner.shape = ()
    assert said(session) == 12


def test_a_change_of_weights_that_fails_leaves_session_and_state() -> None:
    session = carrying(Counting())
    assert isinstance(session, StatefulSession)
    assert said(session) == 11

    def changed(before: Any) -> Any:
        raise EngineError("no memory")

    with pytest.raises(EngineError):
        session.change(changed, {"n": np.zeros(())})
    assert said(session) == 12


def test_a_run_under_way_when_the_session_is_closed_leaves_nothing() -> None:
    inner = Counting()
    session = carrying(inner)
    inner.during = session.close
    assert said(session) == 11
    assert inner.closed
    inner.during = lambda: None
    assert said(session) == 11


def test_where_all_inputs_are_on_a_card_the_state_is_there_too() -> None:
    torch = pytest.importorskip("torch")
    seen: list[Any] = []

    class OnCard(Counting):
        def run(self, inputs: Sequence[Any], stop: Stop | None = None) -> list[Any]:
            seen.extend(inputs)
            x, first, before = inputs
            after = torch.where(first, torch.tensor(10.0), before) + 1
            return [x + after, after]

    session = carrying(OnCard())
    for wanted in (11, 12):
        assert float(session.run([torch.zeros(())])[0]) == wanted
    assert all(isinstance(one, torch.Tensor) for one in seen)
