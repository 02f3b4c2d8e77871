"""swap.py: sessions that are exchanged while they run."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import pytest

from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.engines.base import SessionInfo, Stop
from mindspore_lite.engines.sessions.swap import SessionSwap
from mindspore_lite.errors import ClosedError
from mindspore_lite.weights.records import Variable

LIMIT_S = 120.0
ONE = np.ones(1, np.float32)
INFO = (TensorInfo("x", np.dtype(np.float32), (1,)),)
WEIGHT = Variable("w", (), ONE.dtype, ONE.shape, ONE)


class Fake:
    """Gives its number; may be told to wait in the middle of a run."""

    def __init__(self, number: int) -> None:
        metadata = {"number": str(number)}
        self.info = SessionInfo(INFO, INFO, metadata, (WEIGHT,), mapped=True)
        self.number = number
        self.closed = 0
        self.stops: list[Stop | None] = []
        self.began, self.may_end = threading.Event(), threading.Event()
        self.may_end.set()

    def run(self, inputs: Sequence[np.ndarray], stop: Stop | None = None) -> list[np.ndarray]:
        if self.closed:
            raise ClosedError("closed")
        self.stops.append(stop)
        self.began.set()
        assert self.may_end.wait(LIMIT_S)
        return [inputs[0] * self.number]

    def skeleton(self) -> bytes:
        return b"graph %d" % self.number

    def close(self) -> None:
        self.closed += 1


def test_a_face_looks_like_the_session_behind_it() -> None:
    first = Fake(1)
    (face,) = SessionSwap([first]).faces()
    assert face.info is first.info
    assert face.skeleton() == b"graph 1"


def test_runs_go_to_the_sessions_that_are_in_place_each_to_its_own() -> None:
    swap = SessionSwap([Fake(1), Fake(2)])
    left, right = swap.faces()
    assert [left.run([ONE])[0], right.run([ONE])[0]] == [1, 2]
    swap.swap([Fake(3), Fake(4)])
    assert [left.run([ONE])[0], right.run([ONE])[0]] == [3, 4]
    assert left.skeleton() == b"graph 3"


def test_a_stop_is_handed_on() -> None:
    session, stop = Fake(1), Stop()
    SessionSwap([session]).faces()[0].run([ONE], stop)
    assert session.stops == [stop]


def test_a_run_under_way_ends_on_the_session_it_began_on_which_is_never_closed() -> None:
    old = Fake(1)
    old.may_end.clear()
    swap = SessionSwap([old])
    (face,) = swap.faces()
    found: list[np.ndarray] = []
    thread = threading.Thread(target=lambda: found.extend(face.run([ONE])))
    thread.start()
    assert old.began.wait(LIMIT_S)
    swap.swap([Fake(2)])
    assert face.run([ONE])[0] == 2
    old.may_end.set()
    thread.join(LIMIT_S)
    assert found == [1]
    assert old.closed == 0


def test_one_face_closes_the_sessions_of_all() -> None:
    sessions = [Fake(1), Fake(2)]
    swap = SessionSwap(sessions)
    left, right = swap.faces()
    left.close()
    assert [s.closed for s in sessions] == [1, 1]
    with pytest.raises(ClosedError):
        right.run([ONE])


def test_sessions_that_come_after_the_end_are_closed() -> None:
    swap = SessionSwap([Fake(1)])
    (face,) = swap.faces()
    face.close()
    late = Fake(2)
    with pytest.raises(ClosedError, match="closed meanwhile"):
        swap.swap([late])
    assert late.closed == 1
    with pytest.raises(ClosedError):
        face.run([ONE])
