"""served_model.py: a Model or a runner that many lanes use, change and close at once."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.fake_engine import LIMIT_S, Client, wait_for
from support.models import ENDLESS, dense_net, dense_values, looping, written
from support.workers import X, file_build

from mindspore_lite.core.deadline import WATCHDOG
from mindspore_lite.engines.base import Session
from mindspore_lite.errors import (
    CancelledError,
    ClosedError,
    EngineError,
    InputError,
    LiteError,
    ModelFileError,
    RequestTimeoutError,
)
from mindspore_lite.remote.wire.bodies import MODEL, RUNNER, Build, Description
from mindspore_lite.remote.worker.served_model import Hosted, Running, Served, built
from mindspore_lite.serving import single
from mindspore_lite.serving.call import Call

TWO, FIVE = np.ones((2, 3), np.float32), np.ones((5, 3), np.float32)


@pytest.fixture
def dense(tmp_path: Path) -> Path:
    return written(tmp_path / "dense.mindir", dense_net())


def opened(path: Path, kind: int = MODEL, model_type: int = 0, **settings: str) -> Hosted:
    return built(file_build(path, model_type, kind, **settings), [])


def predict(hosted: Hosted, *arrays: np.ndarray, timeout_s: float | None = None) -> np.ndarray:
    return hosted.predict(Call(arrays, timeout_s), Running())[0]


def session_of(hosted: Hosted) -> Session:
    assert isinstance(hosted, Served)
    return hosted._service.built.session


# --- resizing, while others run -------------------------------------------------------------------


def between(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Have something happen once, after a run has taken its session and before it uses it."""
    real = single.feeds.arrays
    acts = [act]

    def arrays(*arguments: object) -> list[np.ndarray]:
        found = real(*arguments)
        if acts:
            acts.pop()()
        return found

    monkeypatch.setattr(single.feeds, "arrays", arrays)


def test_a_run_that_loses_its_session_to_a_resize_is_run_with_the_new_one(
    dense: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = opened(dense)
    first = session_of(model)

    def there_and_back() -> None:
        model.resize([(5, 3)])
        model.resize([(2, 3)])

    between(monkeypatch, there_and_back)
    np.testing.assert_allclose(predict(model, TWO), dense_values(TWO))
    assert session_of(model) is not first


def test_a_run_whose_session_is_closed_for_another_reason_fails(
    dense: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = opened(dense)
    between(monkeypatch, session_of(model).close)
    with pytest.raises(ClosedError, match="predict failed! the session is closed"):
        predict(model, TWO)


def test_a_run_that_no_longer_fits_after_a_resize_says_so(
    dense: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = opened(dense)
    between(monkeypatch, lambda: model.resize([(5, 3)]))
    with pytest.raises(LiteError, match=r"predict failed! .*\[5, 3\]"):
        predict(model, TWO)
    np.testing.assert_allclose(predict(model, FIVE), dense_values(FIVE))


def test_a_run_whose_model_is_closed_before_it_begins_says_so(
    dense: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = opened(dense)
    between(monkeypatch, lambda: model.close(None))
    with pytest.raises(ClosedError, match=r"^predict failed! the model was closed"):
        predict(model, TWO)


def test_lanes_that_resize_and_run_at_once_get_right_answers_or_clear_errors(dense: Path) -> None:
    model = opened(dense)
    right: list[int] = []
    described: list[tuple[int, Description]] = []
    over = threading.Event()

    def run() -> None:
        while not over.is_set():
            for given in (TWO, FIVE):
                try:
                    found = predict(model, given)
                except InputError as exc:
                    assert "data size not equal" in str(exc), exc
                else:
                    np.testing.assert_allclose(found, dense_values(given))
                    right.append(len(given))

    def resize() -> None:
        for number in (5, 2) * 20:
            described.append((number, model.resize([(number, 3)])))

    running = [Client(run) for _ in range(2)]
    wait_for(lambda: 2 in right)
    for client in [Client(resize) for _ in range(2)]:
        assert client.ended().error is None, client.error
    over.set()
    for client in running:
        assert client.ended().error is None, client.error
    for number, description in described:
        assert description.inputs[0].shape == (number, 3)
        assert description.outputs[0].shape == (number, 4)


def test_a_close_waits_for_a_resize(dense: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, goes_on = threading.Event(), threading.Event()
    real = single.resized

    def slow(*arguments: object) -> object:
        begun.set()
        assert goes_on.wait(LIMIT_S)
        return real(*arguments)  # type: ignore[arg-type]

    model = opened(dense)
    monkeypatch.setattr(single, "resized", slow)
    resizing = Client(lambda: model.resize([(5, 3)]))
    assert begun.wait(LIMIT_S)
    closing = Client(lambda: model.close(None))
    goes_on.set()
    assert resizing.ended().error is None
    assert closing.ended().error is None
    for call in (lambda: model.resize([(2, 3)]), lambda: predict(model, TWO), model.description):
        with pytest.raises(ClosedError, match="the model was closed"):
            call()


def test_a_resize_that_makes_no_sense_leaves_the_model_as_it_was(dense: Path) -> None:
    model = opened(dense)
    before = model.description()
    for shapes in ([], [(2, 3), (2, 3)], [(2, 3, 4)], [(0, 3)], [(2**40, 3)]):
        with pytest.raises((LiteError, ValueError)):
            model.resize(shapes)  # type: ignore[arg-type]
    assert model.description() == before
    np.testing.assert_allclose(predict(model, TWO), dense_values(TWO))


# --- deadlines and cancelling ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", [MODEL, RUNNER])
def test_a_run_ends_by_its_deadline_and_leaves_none_behind(kind: int, tmp_path: Path) -> None:
    model = opened(looping(tmp_path / "loop.onnx"), kind, 3)
    with pytest.raises(RequestTimeoutError, match=r"no answer within timeout_s=0.01"):
        predict(model, ENDLESS, X, timeout_s=0.01)
    np.testing.assert_array_equal(predict(model, np.array(3), X, timeout_s=LIMIT_S), X)
    with pytest.raises(LiteError):
        predict(model, X, X, X, timeout_s=1e6)
    model.close(None)
    with pytest.raises(ClosedError):
        predict(model, ENDLESS, X, timeout_s=1e6)
    far_s = time.monotonic() + 1e5
    assert not [due_s for due_s, _, entry in list(WATCHDOG._heap) if due_s > far_s and entry.act]


@pytest.mark.parametrize("kind", [MODEL, RUNNER])
def test_the_limit_may_come_from_the_configuration(kind: int, tmp_path: Path) -> None:
    build = file_build(looping(tmp_path / "loop.onnx"), 3, kind)
    model = built(replace(build, config={"parallel": {"timeout_s": "0.01"}}), [])
    with pytest.raises(RequestTimeoutError, match=r"no answer within timeout_s=0.01"):
        predict(model, ENDLESS, X)
    assert "parallel.timeout_s=0.01\n" in model.info("spec")
    endless = built(replace(build, config={"parallel": {"timeout_s": "inf"}}), [])
    np.testing.assert_array_equal(predict(endless, np.array(3), X), X)


@pytest.mark.parametrize("kind", [MODEL, RUNNER])
@pytest.mark.parametrize("timeout_s", [None, LIMIT_S])
def test_a_run_that_was_cancelled_before_it_began_does_not_begin(
    kind: int, timeout_s: float | None, tmp_path: Path
) -> None:
    model = opened(looping(tmp_path / "loop.onnx"), kind, 3)
    running = Running()
    running.cancel()
    call = Client(lambda: model.predict(Call([ENDLESS, X], timeout_s), running))
    assert isinstance(call.ended().error, CancelledError)
    model.close(0.0)


def test_a_runner_drains_for_as_long_as_it_is_told(tmp_path: Path) -> None:
    runner = opened(looping(tmp_path / "loop.onnx"), RUNNER, 3)
    call = Client(lambda: predict(runner, ENDLESS, X))
    wait_for(lambda: json.loads(runner.statistics())["running"] == 1)
    runner.close(0.01)
    assert isinstance(call.ended().error, ClosedError)


# --- the rest -------------------------------------------------------------------------------------


def test_a_runner_has_neither_resize_nor_facts_nor_new_weights(dense: Path) -> None:
    runner = opened(dense, RUNNER)
    np.testing.assert_allclose(predict(runner, TWO), dense_values(TWO))
    assert json.loads(runner.statistics())["done"] == 1
    with pytest.raises(EngineError, match="has no resize; its requests may have any size"):
        runner.resize([(5, 3)])
    with pytest.raises(ValueError, match="there is no model info 'x'"):
        runner.info("x")
    assert runner.info("weights_version") == "0"
    with pytest.raises(EngineError, match="no weight of this model may change"):
        runner.update_weights([])
    runner.close(None)


def test_a_model_tells_facts_and_counts_nothing(dense: Path) -> None:
    model = opened(dense)
    assert isinstance(model, Served)
    assert model.info("input_shape") == "x:[2,3]"
    assert model.statistics() == "{}"
    assert model.output_names == [info.name for info in model.description().outputs]
    with pytest.raises(EngineError, match="no weight of this model may change"):
        model.update_weights([])


@pytest.mark.parametrize("kind", [MODEL, RUNNER])
def test_both_are_built_from_bytes_as_well(kind: int) -> None:
    hosted = built(Build(kind, 0), [dense_net()])
    np.testing.assert_allclose(predict(hosted, TWO), dense_values(TWO))
    hosted.close(None)


def test_a_runner_does_not_take_an_encrypted_model(dense: Path) -> None:
    with pytest.raises(ModelFileError, match="cannot load an encrypted model"):
        built(Build(RUNNER, 0, str(dense), key=b"0" * 16), [])


def test_the_client_says_what_kind_of_file_a_runner_loads(tmp_path: Path) -> None:
    path = looping(tmp_path / "loop.onnx").rename(tmp_path / "loop.bin")
    runner = built(Build(RUNNER, 3, str(path)), [])
    assert len(runner.description().inputs) == 2
    runner.close(0.0)
