"""any_shape.py: one session per kind of shape, made when it is first met."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import pytest

from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.engines.base import SessionInfo, Stop
from mindspore_lite.engines.sessions.any_shape import MAX_SESSIONS, AnyShapeSession, accepts
from mindspore_lite.errors import ClosedError, ShapeError


def info(*shape: int) -> TensorInfo:
    return TensorInfo("x", np.dtype(np.float32), shape)


class Fake:
    """Returns the shape that it was made for."""

    def __init__(self, *shape: int) -> None:
        self.info = SessionInfo((info(*shape),), (info(*shape),), mapped=True)
        self.stops: list[Stop | None] = []
        self.closed = False

    def run(self, inputs: Sequence[np.ndarray], stop: Stop | None = None) -> list[np.ndarray]:
        if self.closed:
            raise ClosedError("closed")
        self.stops.append(stop)
        return [np.array(self.info.inputs[0].shape)]

    def skeleton(self) -> bytes:
        return b"graph"

    def close(self) -> None:
        self.closed = True


class Loader:
    """Leaves open what differs from the file, as serving/build.py does; refuses sizes of 7."""

    def __init__(self, *file: int, keeps: bool = False) -> None:
        self.file = file
        self.keeps = keeps  # makes a session for just these shapes
        self.made: list[Fake] = []

    def __call__(self, shapes: list[tuple[int, ...]]) -> Fake:
        (dims,) = shapes
        if 7 in dims:
            raise ShapeError("not 7")
        free = [f if f == d else -1 for f, d in zip(self.file, dims, strict=True)]
        self.made.append(Fake(*(dims if self.keeps else free)))
        return self.made[-1]


def run(session: AnyShapeSession, *shape: int) -> list[int]:
    (found,) = session.run([np.zeros(shape, np.float32)])
    return list(found)


def test_the_shapes_of_the_file_run_in_the_first_session() -> None:
    load = Loader(2, 3)
    session = AnyShapeSession(Fake(2, 3), load)
    assert run(session, 2, 3) == [2, 3]
    assert load.made == []


def test_open_dims_take_any_size_in_the_first_session() -> None:
    load = Loader(-1, 3)
    session = AnyShapeSession(Fake(-1, 3), load)
    assert run(session, 5, 3) == run(session, 0, 3) == [-1, 3]
    assert load.made == []


def test_another_size_makes_a_session_that_serves_further_sizes() -> None:
    load = Loader(2, 3)
    session = AnyShapeSession(Fake(2, 3), load)
    assert run(session, 4, 3) == [-1, 3]
    assert run(session, 9, 3) == [-1, 3]
    assert run(session, 4, 5) == [-1, -1]
    assert run(session, 2, 3) == [2, 3]
    assert len(load.made) == 2


def test_it_looks_like_the_first_session() -> None:
    first = Fake(2, 3)
    session = AnyShapeSession(first, Loader(2, 3))
    assert session.info is first.info
    assert session.skeleton() == b"graph"


def test_a_stop_reaches_the_session_that_runs() -> None:
    load, stop = Loader(2, 3), Stop()
    session = AnyShapeSession(Fake(2, 3), load)
    session.run([np.zeros((4, 3), np.float32)], stop)
    assert load.made[0].stops == [stop]


def test_a_shape_that_cannot_be_had_is_refused_every_time_and_costs_nothing_else() -> None:
    session = AnyShapeSession(Fake(2, 3), Loader(2, 3))
    for _ in range(2):
        with pytest.raises(ShapeError, match="not 7"):
            run(session, 7, 3)
    assert run(session, 2, 3) == [2, 3]
    assert run(session, 4, 3) == [-1, 3]


def test_the_number_of_sessions_is_bounded() -> None:
    load = Loader(1, 1, keeps=True)
    session = AnyShapeSession(Fake(1, 1), load)
    for size in range(100, 100 + MAX_SESSIONS + 5):
        assert run(session, size, 1) == [size, 1]
    assert len(session._others) == MAX_SESSIONS
    assert run(session, 100 + MAX_SESSIONS + 4, 1) == [100 + MAX_SESSIONS + 4, 1]
    assert len(load.made) == MAX_SESSIONS + 5
    assert run(session, 100, 1) == [100, 1]  # made again
    assert len(load.made) == MAX_SESSIONS + 6


def test_a_session_that_is_pushed_out_still_serves_who_found_it() -> None:
    """Between finding a session and running it, another thread may bring the seventeenth shape."""
    load = Loader(1, 1, keeps=True)
    session = AnyShapeSession(Fake(1, 1), load)
    found = session._other([(100, 1)])
    for size in range(101, 102 + MAX_SESSIONS):
        run(session, size, 1)
    assert found not in session._others
    assert list(found.run([np.zeros((100, 1), np.float32)])[0]) == [100, 1]


def test_many_threads_that_meet_a_shape_make_one_session() -> None:
    load = Loader(2, 3)
    session = AnyShapeSession(Fake(2, 3), load)
    start, found = threading.Barrier(8), []

    def call() -> None:
        start.wait(120)
        found.append(run(session, 4, 3))

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[-1, 3]] * 8
    assert len(load.made) == 1


def test_closing_closes_all_and_nothing_new_is_made() -> None:
    load, first = Loader(2, 3), Fake(2, 3)
    session = AnyShapeSession(first, load)
    run(session, 4, 3)
    session.close()
    session.close()
    assert first.closed
    assert load.made[0].closed
    for shape in ((2, 3), (4, 3), (4, 5)):
        with pytest.raises(ClosedError):
            run(session, *shape)
    assert len(load.made) == 1


@pytest.mark.parametrize(
    ("declared", "dims", "fits"),
    [
        ((2, 3), (2, 3), True),
        ((-1, 3), (9, 3), True),
        ((-1, 3), (9, 4), False),
        ((2, 3), (2, 3, 1), False),
        ((), (), True),
        ((), (1,), False),
    ],
)
def test_what_a_declared_shape_accepts(
    declared: tuple[int, ...], dims: tuple[int, ...], fits: bool
) -> None:
    assert accepts([info(*declared)], [dims]) is fits


def test_a_wrong_number_of_inputs_is_not_accepted() -> None:
    assert not accepts([info(2)], [])
    assert not accepts([info(2)], [(2,), (2,)])
