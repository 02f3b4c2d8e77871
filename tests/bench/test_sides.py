from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.conversion import dense_onnx
from support.models import DIGITS

from mindspore_lite.bench.burst import Load
from mindspore_lite.bench.sides import OtherFile, Ours, Wish, threaded
from mindspore_lite.errors import CancelledError, InputError, LiteError

FEED = {"x": np.zeros((1, 1, 8, 8), np.float32)}
LIMIT_S = 120.0


def test_our_side_is_a_runner_with_the_settings_that_were_wished_for() -> None:
    context = Wish("gpu", 3, "torch", 2, 1, 8).context()
    assert context.target == ["gpu"]
    assert context.gpu.device_id == 3
    assert context.parallel.config_info == {"common_context": {"engine": "torch"}}
    side = Ours(DIGITS, Wish(workers=2, threads=1))
    assert (side.layout.workers, side.layout.threads) == (2, 1)
    assert [tensor.name for tensor in side.inputs] == ["x"]
    done = threading.Event()
    with side.desk(Load(clients=1), FEED) as desk:
        (output,) = desk.call()
        desk.submit(lambda error: done.set() if error is None else None)
        assert done.wait(LIMIT_S)
    side.close()
    assert output.shape == (1, 10)
    with pytest.raises(LiteError, match="closed"):
        desk.call()


def test_an_engine_that_is_not_known_is_refused() -> None:
    with pytest.raises(LiteError, match="engine is 'magic', wanted one of"):
        Ours(DIGITS, Wish(engine="magic"))


def test_a_side_that_waits_gets_threads_of_its_own() -> None:
    together = threading.Barrier(3)
    ended: list[BaseException | None] = []

    def call() -> list[np.ndarray]:
        together.wait(LIMIT_S)
        return []

    with threaded(call, callers=2) as desk:
        desk.submit(ended.append)
        desk.submit(ended.append)  # returns at once, as the one before
        together.wait(LIMIT_S)
    assert ended == [None, None]


def test_what_waits_can_be_given_up() -> None:
    gate, began = threading.Event(), threading.Event()
    ended: list[BaseException | None] = []

    def call() -> list[np.ndarray]:
        began.set()
        assert gate.wait(LIMIT_S)
        return []

    with threaded(call, callers=1) as desk:
        for _ in range(4):
            desk.submit(ended.append)
        assert began.wait(LIMIT_S)
        desk.drop()
        assert [type(error) for error in ended] == [CancelledError] * 3
        gate.set()
    assert ended[3] is None


def test_what_still_waits_at_the_end_has_no_answer() -> None:
    gate, began = threading.Event(), threading.Event()
    ended: list[BaseException | None] = []

    def call() -> list[np.ndarray]:
        began.set()
        assert gate.wait(LIMIT_S)
        raise ValueError("no")

    with threaded(call, callers=1) as desk:
        desk.submit(ended.append)
        desk.submit(lambda error: (ended.append(error), gate.set())[0])
        assert began.wait(LIMIT_S)
    assert sorted(type(error).__name__ for error in ended) == ["CancelledError", "ValueError"]


def test_another_file_takes_the_same_requests_by_the_places_of_its_inputs(tmp_path: Path) -> None:
    dense_onnx(tmp_path / "a.onnx")
    model = onnx.load(tmp_path / "a.onnx")
    for node in model.graph.node:
        node.input[:] = ["pixels" if name == "x" else name for name in node.input]
    model.graph.input[0].name = "pixels"
    onnx.save(model, tmp_path / "b.onnx")
    ours = Ours(tmp_path / "a.onnx", Wish())
    shape = [abs(dim) for dim in ours.inputs[0].shape]
    feed = {"x": np.ones(shape, np.float32)}
    other = OtherFile(tmp_path / "b.onnx", Wish(), "b.onnx", ours.inputs)
    with ours.desk(Load(clients=1), feed) as a, other.desk(Load(clients=1), feed) as b:
        for mine, theirs in zip(a.call(), b.call(), strict=True):
            np.testing.assert_array_equal(mine, theirs)
    assert len(other.outputs()) == 1
    other.close()
    with pytest.raises(InputError, match=r"digits cannot be compared: it has the inputs x float32"):
        OtherFile(DIGITS, Wish(), "digits", ours.inputs)
    ours.close()
