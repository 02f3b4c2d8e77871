"""The contract of engines/base.py, for every engine, for the wrappers and for the tests' fakes.

What only one engine does (threads, cores, artefacts, messages) is tested in that engine's folder.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.fake_card import FakeCard
from support.fake_cards import FakeCards
from support.fake_engine import Client, FakeSession, Gate
from support.sharing import forked

from mindspore_lite.core.capabilities import ENGINES
from mindspore_lite.engines import select
from mindspore_lite.engines.base import (
    CardSession,
    Compiling,
    Exporting,
    ModelSource,
    Options,
    Reopening,
    Session,
    Stop,
)
from mindspore_lite.engines.sessions.any_shape import AnyShapeSession
from mindspore_lite.engines.sessions.card_copy import CardCopy
from mindspore_lite.engines.sessions.swap import SessionSwap
from mindspore_lite.errors import ClosedError, InputError, LiteError, StoppedError

SIDE = 64  # of conftest.Dense
MakeSource = Callable[[onnx.ModelProto], ModelSource]
Load = Callable[[ModelSource], Session]
pytestmark = pytest.mark.filterwarnings("ignore:.*runs step by step")


def never(shapes: object) -> Any:
    raise AssertionError(f"no session for {shapes} was wanted")


def in_any_shape(load: Load) -> Load:
    return lambda source: AnyShapeSession(load(source), never)


def swapped(load: Load) -> Load:
    return lambda source: SessionSwap([load(source)]).faces()[0]


def card_worker(load: Load) -> Load:
    def made(source: ModelSource) -> Session:
        first = load(source)
        assert isinstance(first, CardSession)
        return CardCopy(first, never).worker(0)

    return made


@dataclass(frozen=True)
class Subject:
    """Something that keeps the contract."""

    engine: str
    device: str = "cpu"
    wrap: Callable[[Load], Load] | None = None
    stops_loops: bool = True  # OpenVINO takes a loop for one operator

    @property
    def changes(self) -> bool:
        """Whether it says itself how its weights change; wrappers leave that to serving/."""
        return self.wrap is None


SUBJECTS = {
    "onnxruntime": Subject("onnxruntime"),
    "openvino": Subject("openvino", stops_loops=False),
    "torch": Subject("torch"),
    "torch on a card": Subject("torch", "cuda:0"),
    "fake card": Subject("fake", "cuda:0"),
    "any shape": Subject("onnxruntime", wrap=in_any_shape),
    "swapped": Subject("onnxruntime", wrap=swapped),
    "worker of a card": Subject("torch", "cuda:0", wrap=card_worker),
}


@pytest.fixture(params=SUBJECTS)
def subject(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Subject:
    if SUBJECTS[request.param].engine == "torch":
        from mindspore_lite.engines.torch import engine

        monkeypatch.setattr(engine, "card_for", lambda device: FakeCard())
    return SUBJECTS[request.param]


@pytest.fixture
def load(subject: Subject) -> Load:
    """Make a session of a model, as the subject does."""
    engine = FakeCards() if subject.engine == "fake" else select.engine_for("cpu", subject.engine)

    def load(source: ModelSource) -> Session:
        return engine.load(source, Options(device=subject.device))

    return load if subject.wrap is None else subject.wrap(load)


@pytest.fixture
def session(load: Load, dense: Any) -> Session:
    return load(dense.source())


def dense_of(dense: Any, x: np.ndarray) -> np.ndarray:
    found: np.ndarray = x @ dense.w + 1
    return found


def same_outputs() -> onnx.ModelProto:
    """Outputs that are an input, a weight, and twice the same."""
    nodes = [
        helper.make_node("Identity", ["x"], ["same"]),
        helper.make_node("Identity", ["w"], ["stored"]),
        helper.make_node("Relu", ["x"], ["once"]),
        helper.make_node("Identity", ["once"], ["twice"]),
    ]
    kind, dims = onnx.TensorProto.FLOAT, [32, 32]
    names = ("same", "stored", "once", "twice")
    ends = [helper.make_tensor_value_info(name, kind, dims) for name in ("x", *names)]
    weights = [onnx.numpy_helper.from_array(np.full(dims, 3, np.float32), "w")]
    graph = helper.make_graph(nodes, "graph", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


# --- what a session says of itself ---


def test_a_session_says_what_it_is(subject: Subject, session: Session) -> None:
    info = session.info
    wanted = [("float32", (-1, SIDE))]
    assert [one.name for one in (*info.inputs, *info.outputs)] == ["x", "y"]
    assert [(one.dtype.name, one.shape) for one in info.inputs] == wanted
    assert [(one.dtype.name, one.shape) for one in info.outputs] == wanted
    assert dict(info.metadata)["author"] == "tests"
    assert info.variables == ()
    assert (info.device is None) == (subject.device == "cpu")
    assert isinstance(session, CardSession) == (subject.device != "cpu" and subject.changes)


def test_the_skeleton_is_the_graph_without_large_weights(session: Session, dense: Any) -> None:
    graph = onnx.ModelProto.FromString(session.skeleton()).graph
    assert [node.op_type for node in graph.node] == ["MatMul", "Add"]
    assert [one.name for one in graph.input][:1] == ["x"]
    assert dense.w.tobytes()[:64] not in session.skeleton()


# --- runs ---


@pytest.mark.parametrize("count", [1, 3, 7, 0])
def test_open_rows_take_any_number_also_none(session: Session, dense: Any, count: int) -> None:
    x = np.random.default_rng(count).random((count, SIDE), np.float32)
    (y,) = session.run([x])
    assert (y.dtype, y.shape) == (np.float32, (count, SIDE))
    np.testing.assert_allclose(y, dense_of(dense, x), rtol=1e-5)


def test_many_threads_get_their_own_results(session: Session, dense: Any) -> None:
    def one(scale: int) -> bool:
        x = np.tile(dense.x * scale, (1 + scale % 3, 1))
        (y,) = session.run([x], Stop() if scale % 2 else None)
        return np.allclose(y, dense_of(dense, x), rtol=1e-4)

    with ThreadPoolExecutor(8) as callers:
        assert all(callers.map(one, range(64)))


def test_outputs_own_their_memory(load: Load, source_of: MakeSource) -> None:
    session = load(source_of(same_outputs()))
    x = np.random.default_rng(0).random((32, 32), np.float32)
    kept = x.copy()
    first = session.run([x])
    for output in first:
        assert not np.shares_memory(output, x)
        output += 100  # writable, and nobody else's
    wanted = [kept, np.full((32, 32), 3, np.float32), kept, kept]
    second = session.run([x])
    session.run([x + 1])
    session.close()
    del session
    gc.collect()
    for output, array in zip(second, wanted, strict=True):
        np.testing.assert_array_equal(output, array)
    np.testing.assert_array_equal(x, kept)


def test_arrays_that_cannot_be_written_to_are_read(session: Session, dense: Any) -> None:
    dense.x.flags.writeable = False
    dense.check(session)


@pytest.mark.filterwarnings("ignore")  # torch's, of arrays that it may not write to
def test_the_wrong_number_of_inputs_is_refused(session: Session, dense: Any) -> None:
    with pytest.raises(InputError, match=r"given 2 inputs, wanted 1: \['x'\]"):
        session.run([dense.x, dense.x])
    dense.check(session)


def test_a_size_that_does_not_fit_is_an_error_of_ours(
    subject: Subject, session: Session, dense: Any
) -> None:
    if subject.wrap is None:  # others make a session for the size
        with pytest.raises(LiteError):
            session.run([np.ones((1, 3), np.float32)])
    dense.check(session)


# --- stopping ---


def test_a_fired_stop_ends_the_run_before_it_begins(session: Session, dense: Any) -> None:
    stop = Stop()
    session.run([dense.x], stop)  # which serves many runs, until it is fired
    stop.fire()
    with pytest.raises(StoppedError):
        session.run([dense.x], stop)
    dense.check(session)


def test_a_stop_ends_a_run_under_way_and_no_other(
    subject: Subject, load: Load, endless: ModelSource
) -> None:
    session = load(endless)
    x, stop = np.ones((1, SIDE), np.float32), Stop()
    count = 10**12 if subject.stops_loops else 10
    running = Client(lambda: session.run([np.array(count), x], stop))
    if subject.device == "cpu":  # on a card runs of a session come one after the other
        session.run([np.array(1), x])
    stop.fire()
    running.ended()
    assert isinstance(
        running.error, StoppedError if subject.stops_loops else (StoppedError, type(None))
    )
    np.testing.assert_allclose(session.run([np.array(3), x], Stop())[0], x / 8)


# --- weights that change ---


def changed(session: Session, replaced: Mapping[str, np.ndarray]) -> Session:
    """The session with other weights: the same one on a card, another one on the host."""
    if isinstance(session, CardSession):
        session.update(replaced)
        return session
    assert isinstance(session, Reopening)
    return session.opener()(replaced)


def test_variable_weights_change_and_change_back(subject: Subject, load: Load, dense: Any) -> None:
    if not subject.changes:
        pytest.skip("a wrapper is changed by serving/")
    session = load(replace(dense.source(), variable=(("w", ""),)))
    (variable,) = session.info.variables
    assert (variable.name, variable.dtype, variable.shape) == ("w", np.float32, (SIDE, SIDE))
    np.testing.assert_array_equal(variable.first, dense.w)
    second = changed(session, {"w": dense.w * 2})
    assert [one.name for one in second.info.variables] == ["w"]
    np.testing.assert_allclose(second.run([dense.x])[0], 2 * dense.wanted - 1, rtol=1e-5)
    dense.check(changed(second, {}))
    if second is not session:
        dense.check(session)  # which nobody changed


def test_weights_are_changed_before_a_session_is_opened(load: Load, dense: Any) -> None:
    source = replace(dense.source(), variable=(("w", ""),), replaced={"w": dense.w * 2})
    np.testing.assert_allclose(load(source).run([dense.x])[0], 2 * dense.wanted - 1, rtol=1e-5)


# --- closing and forking ---


def test_a_closed_session_says_so_however_often_it_is_closed(session: Session, dense: Any) -> None:
    (y,) = session.run([dense.x])
    session.close()
    session.close()
    with pytest.raises(ClosedError, match="closed"):
        session.run([dense.x])
    np.testing.assert_allclose(y, dense.wanted, rtol=1e-5)


def test_closing_lets_a_run_under_way_finish(
    subject: Subject, load: Load, endless: ModelSource
) -> None:
    """Whichever comes first: the run ends with its result, or finds the session closed."""
    session = load(endless)
    x = np.ones((1, SIDE), np.float32)
    running = Client(lambda: session.run([np.array(60), x]))
    session.close()
    running.ended()
    assert running.error is None or isinstance(running.error, ClosedError)
    if running.error is None:
        np.testing.assert_allclose(running.result[0], np.ldexp(x, -60))


def test_a_forked_child_is_told(session: Session, dense: Any) -> None:
    dense.check(session)
    told = forked(lambda: str(session.run([dense.x])))
    assert "EngineError" in told and "fork" in told and "spawn" in told
    dense.check(session)


# --- the rows of core/capabilities.py ---


@pytest.mark.parametrize("name", ENGINES)
def test_capabilities_are_true(name: str, dense: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    row, engine = ENGINES[name], select.engine_for("cpu", name)
    assert engine.capabilities is row and engine.name == name
    assert isinstance(engine, Compiling) == row.compiles_apart
    assert engine.load(dense.source(), Options()).info.mapped == row.maps_weights
    for precision in row.cpu_precisions:
        engine.load(dense.source(), Options(precision=precision)).run([dense.x])
    if "preferred_bf16" not in row.cpu_precisions:
        with pytest.raises(ValueError, match="precision"):
            engine.load(dense.source(), Options(precision="preferred_bf16"))
    if row.serves_cards:
        monkeypatch.setattr(f"mindspore_lite.engines.{name}.engine.card_for", lambda _: FakeCard())
        on_card = engine.load(dense.source(), Options(device="cuda:0"))
        assert isinstance(on_card, CardSession)
        assert isinstance(on_card, Exporting) == row.exports


# --- the fake of the pool's tests, whose runs always have a Stop ---


def test_the_fake_session_keeps_what_pools_rely_on() -> None:
    gate, x = Gate(), np.ones((3, 2), np.float32)
    session = FakeSession(gate)
    stop = Stop()
    running = Client(lambda: session.run([x], stop))
    other = Client(lambda: session.run([x * 2], Stop()))
    gate.entered(2)
    stop.fire()
    gate.open()
    assert isinstance(running.ended().error, StoppedError)
    np.testing.assert_array_equal(other.ended().result[0], x * 4)
    assert session.info.inputs[0].shape == session.info.outputs[0].shape == (-1, 2)
    session.close()
    session.close()
