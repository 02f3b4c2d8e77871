"""interrupt.py: the main thread runs what is short for certain, and waits for the rest."""

from __future__ import annotations

import gc
import logging
import signal
import threading
import weakref
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from support.fake_engine import LIMIT_S, FakeSession, wait_for

from mindspore_lite.core import threads
from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.engines.base import Stop
from mindspore_lite.errors import EngineError, StoppedError
from mindspore_lite.serving import interrupt
from mindspore_lite.serving.interrupt import MainRuns, Pace, apart


@pytest.fixture(autouse=True)
def _every_run_is_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is."""
    monkeypatch.setattr(interrupt, "QUICK_S", LIMIT_S)


class Session(FakeSession):
    """One whose graph and inputs the test chooses; it may be run without a Stop."""

    def __init__(self, graph: bytes = b"", **kinds: type) -> None:
        super().__init__()
        self.graph = graph
        if kinds:
            inputs = tuple(TensorInfo(n, np.dtype(k), (-1,)) for n, k in kinds.items())
            self.info = replace(self.info, inputs=inputs)

    def run(self, inputs: list[np.ndarray], stop: Stop | None = None) -> list[np.ndarray]:  # type: ignore[override]
        return super().run(inputs, stop or Stop())

    def skeleton(self) -> bytes:
        return self.graph


def ran_here(runs: MainRuns, session: Session, *inputs: np.ndarray) -> bool:
    """Whether the next run is on this thread."""
    session.threads.clear()
    runs.run(session, list(inputs))
    return session.threads == [threading.get_ident()]


def vector(size: int, kind: type = np.float32) -> np.ndarray:
    return np.zeros(size, kind)


def interrupted(begun: threading.Event) -> threading.Thread:
    """Sends SIGINT to this thread once something has begun."""
    main = threading.main_thread().ident
    assert main is not None

    def ask() -> None:
        assert begun.wait(LIMIT_S)
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=ask)
    thread.start()
    return thread


def until_stopped(begun: threading.Event) -> Callable[[Stop], None]:
    def run(stop: Stop) -> None:
        begun.set()
        wait_for(lambda: stop.fired)
        raise StoppedError("the run was told to stop")

    return run


def test_a_run_is_apart_at_first_and_here_once_its_sizes_were_quick() -> None:
    runs, session = MainRuns(), Session()
    assert not ran_here(runs, session, vector(3))
    assert ran_here(runs, session, vector(3))
    assert not ran_here(runs, session, vector(4))
    assert ran_here(runs, session, vector(4))
    assert not ran_here(runs, Session(), vector(4)), "another session is another model"


@pytest.mark.parametrize("operator", [b'"\x04Loop', b'"\x04Scan', b'"\x02If', b'"\x0bSequenceMap'])
def test_a_graph_that_may_take_any_time_is_always_apart(operator: bytes) -> None:
    runs, session = MainRuns(), Session(b"\x0a\x01x" + operator + b"\x0a")
    assert [ran_here(runs, session, vector(3)) for _ in range(3)] == [False] * 3


def test_a_graph_that_is_not_known_yet_is_always_apart() -> None:
    session = Session()

    def none() -> bytes:
        raise EngineError("inputs of any rank have no graph yet")

    session.skeleton = none  # type: ignore[method-assign]
    runs = MainRuns()
    assert [ran_here(runs, session, vector(3)) for _ in range(3)] == [False] * 3


def test_small_integers_may_be_sizes_and_count_by_value() -> None:
    runs, session = MainRuns(), Session(x=np.float32, n=np.int64)
    assert not ran_here(runs, session, vector(3), np.array([5]))
    assert ran_here(runs, session, vector(3), np.array([5]))
    assert not ran_here(runs, session, vector(3), np.array([5_000_000]))
    many = vector(100, np.int64)
    assert not ran_here(runs, session, vector(3), many)
    assert ran_here(runs, session, vector(3), many + 1), "so many are no shape"


def test_a_run_that_took_long_is_apart_again(monkeypatch: pytest.MonkeyPatch) -> None:
    runs, session = MainRuns(), Session()
    ran_here(runs, session, vector(3))
    with monkeypatch.context() as patch:
        patch.setattr(interrupt, "QUICK_S", -1.0)
        assert ran_here(runs, session, vector(3))
    assert not ran_here(runs, session, vector(3))


def test_no_more_than_some_sizes_are_remembered() -> None:
    pace = Pace(Session())
    for number in range(10_000):
        pace.note(number, 0.0)
    assert 0 < len(pace.quick) <= 256


def test_a_session_that_its_owner_drops_is_not_kept() -> None:
    runs, session = MainRuns(), Session()
    ran_here(runs, session, vector(3))
    gone = weakref.ref(session)
    del session
    gc.collect()
    assert gone() is None


def test_what_a_run_apart_raises_is_raised_here() -> None:
    def fail(stop: Stop) -> None:
        raise EngineError("it broke")

    with pytest.raises(EngineError, match=r"^it broke$"):
        apart(fail)


def test_threads_are_used_again() -> None:
    idents = {apart(lambda stop: threading.get_ident()) for _ in range(5)}
    assert len(idents) == 1
    assert threading.get_ident() not in idents


def test_without_a_thread_the_run_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(run: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(interrupt, "_IDLE", [])
    monkeypatch.setattr(threads, "start", refuse)
    assert apart(lambda stop: threading.get_ident()) == threading.get_ident()


def test_ctrl_c_ends_the_wait_and_stops_the_run() -> None:
    begun = threading.Event()
    asking = interrupted(begun)
    with pytest.raises(KeyboardInterrupt):
        apart(until_stopped(begun))
    asking.join(LIMIT_S)
    assert apart(lambda stop: 7) == 7


def test_a_run_that_does_not_stop_is_left_and_said_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(interrupt, "STOP_S", 0.001)
    begun, goes_on, ended = threading.Event(), threading.Event(), threading.Event()

    def hang(stop: Stop) -> None:
        begun.set()
        assert goes_on.wait(LIMIT_S)
        ended.set()

    asking = interrupted(begun)
    with caplog.at_level(logging.WARNING), pytest.raises(KeyboardInterrupt):
        apart(hang)
    asking.join(LIMIT_S)
    assert "its thread is left to itself" in caplog.text
    assert apart(lambda stop: 7) == 7, "the next run has another thread"
    goes_on.set()
    assert ended.wait(LIMIT_S)


def test_a_handler_that_returns_lets_the_run_go_on() -> None:
    begun, seen = threading.Event(), threading.Event()
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.set())
    try:
        asking = interrupted(begun)

        def run(stop: Stop) -> bool:
            begun.set()
            assert seen.wait(LIMIT_S), "the handler is called while the run goes on"
            return stop.fired

        assert apart(run) is False
        asking.join(LIMIT_S)
    finally:
        signal.signal(signal.SIGINT, before)
