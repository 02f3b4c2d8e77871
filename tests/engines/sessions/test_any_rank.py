"""any_rank.py: one session per number of dims, made when it is met."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from mindspore_lite.core.tensor_info import ANY_RANK, TensorInfo
from mindspore_lite.engines.base import Session, SessionInfo, Stop
from mindspore_lite.engines.sessions.any_rank import MAX_SESSIONS, AnyRankSession
from mindspore_lite.errors import ClosedError, EngineError, UnsupportedOpError
from mindspore_lite.graph.source import Shapes

X = TensorInfo("x", np.dtype("float32"), ANY_RANK)
Y = TensorInfo("y", np.dtype("float32"), (2,))


class Fake:
    """Returns its first input."""

    def __init__(self) -> None:
        self.info = SessionInfo((X, Y), (X,))
        self.closed = False

    def run(self, inputs: Sequence[np.ndarray], stop: Stop | None = None) -> list[np.ndarray]:
        return [inputs[0]]

    def skeleton(self) -> bytes:
        return b""

    def close(self) -> None:
        self.closed = True


class Loader:
    def __init__(self) -> None:
        self.asked: list[dict[str, list[int | None]]] = []
        self.made: list[Fake] = []

    def __call__(self, shapes: Shapes) -> Session:
        self.asked.append({name: list(dims) for name, dims in shapes.items()})
        self.made.append(Fake())
        return self.made[-1]


@pytest.fixture
def load() -> Loader:
    return Loader()


@pytest.fixture
def session(load: Loader) -> AnyRankSession:
    return AnyRankSession(SessionInfo((X, Y), (X,)), load)


def run(session: AnyRankSession, *shape: int) -> tuple[int, ...]:
    (found,) = session.run([np.zeros(shape, np.float32), np.zeros(2, np.float32)])
    return tuple(found.shape)


def test_a_session_is_made_once_per_rank_with_open_sizes(
    session: AnyRankSession, load: Loader
) -> None:
    assert [run(session, *shape) for shape in [(2, 3), (4, 5), (), (6,)]] == [
        (2, 3), (4, 5), (), (6,),
    ]  # fmt: skip
    assert load.asked == [{"x": [None, None]}, {"x": []}, {"x": [None]}]


def test_closing_closes_all_and_ends_the_use(session: AnyRankSession, load: Loader) -> None:
    run(session, 1)
    run(session, 1, 1)
    session.close()
    session.close()
    assert [fake.closed for fake in load.made] == [True, True]
    with pytest.raises(ClosedError, match="build the model again"):
        run(session, 1)


def test_ranks_are_not_collected_without_end(session: AnyRankSession) -> None:
    for rank in range(MAX_SESSIONS):
        run(session, *[1] * rank)
    with pytest.raises(EngineError, match="different numbers of dims"):
        run(session, *[1] * MAX_SESSIONS)
    run(session, 1)


def test_what_needs_known_sizes_says_so() -> None:
    def load(shapes: Shapes) -> Session:
        raise UnsupportedOpError("the size must be known")

    session = AnyRankSession(SessionInfo((X, Y), (X,)), load)
    with pytest.raises(UnsupportedOpError, match=r"call resize\(\) .*: the size must be known"):
        run(session, 1)


def test_there_is_no_graph_yet(session: AnyRankSession) -> None:
    with pytest.raises(EngineError, match=r"call resize\(\) first"):
        session.skeleton()
