"""Sessions of the torch engine on the host."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper
from support.fake_engine import Client
from support.sharing import forked
from support.torch_graphs import (
    SIDE,
    LateStop,
    computed,
    dense,
    endless,
    loaded,
    model,
    reshaping,
    rows,
)

from mindspore_lite.core.dtypes import BY_NAME
from mindspore_lite.engines.torch import program
from mindspore_lite.errors import EngineError, InputError, ShapeError, StoppedError


def test_a_static_model_is_lowered_at_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = loaded(tmp_path, dense(rows=2))
    monkeypatch.setattr(program, "lower", lambda *given: pytest.fail("it was lowered again"))
    session.run([rows(2)])


def test_a_graph_that_depends_on_data_runs(tmp_path: Path) -> None:
    session = loaded(tmp_path, reshaping())
    x = np.arange(6, dtype=np.float32)
    for dims in ([2, 3], [6, 1]):
        np.testing.assert_array_equal(session.run([x, np.array(dims)])[0], x.reshape(dims))


@pytest.mark.parametrize("precision", ["preferred_fp16", "preferred_bf16"])
def test_half_precision_computes_products_in_it_and_keeps_the_border(
    tmp_path: Path, precision: str
) -> None:
    session = loaded(tmp_path, dense(), precision=precision)
    (y,) = session.run([rows(4)])
    assert y.dtype == np.float32
    error = np.abs(y - computed(rows(4))).max()
    assert 0 < error < 0.05


def test_bfloat16_and_complex_numbers_pass_the_border(tmp_path: Path) -> None:
    nodes = [helper.make_node("Add", ["x", "x"], ["y"])]
    kinds = {"x": TensorProto.BFLOAT16, "y": TensorProto.BFLOAT16}
    session = loaded(tmp_path, model(nodes, {"x": [3]}, {"y": [3]}, kinds=kinds))
    bfloat16 = BY_NAME["bfloat16"].numpy
    assert session.info.inputs[0].dtype == session.info.outputs[0].dtype == bfloat16
    (y,) = session.run([np.array([1, 2, 3], bfloat16)])
    assert y.dtype == bfloat16 and y.astype(np.float32).tolist() == [2, 4, 6]


def test_wrong_inputs_are_told(tmp_path: Path) -> None:
    session = loaded(tmp_path, dense())
    with pytest.raises(InputError, match=r"given 2 inputs, wanted 1: \['x'\]"):
        session.run([rows(1), rows(1)])
    with pytest.raises(ShapeError, match=r"'x': \[1, 3\].*takes .*'x': \[-1, 16\]"):
        session.run([np.zeros((1, 3), np.float32)])
    with pytest.raises(ShapeError):
        session.run([np.zeros(16, np.float32)])


def test_an_error_of_torch_is_an_engine_error(tmp_path: Path) -> None:
    session = loaded(tmp_path, reshaping())
    with pytest.raises(EngineError, match="torch could not run the model"):
        session.run([np.zeros(6, np.float32), np.array([4, 4])])


def test_a_loop_without_end_is_ended_by_a_stop(tmp_path: Path) -> None:
    session = loaded(tmp_path, endless())
    x = np.ones(2, np.float32)
    with pytest.raises(StoppedError):
        session.run([x, np.array(True)], LateStop())
    assert session.run([x, np.array(False)])[0].tolist() == [1, 1]


def test_a_forked_child_runs_models_of_its_own_on_one_thread(tmp_path: Path) -> None:
    x = rows(5000)  # enough for torch to use all of its threads
    loaded(tmp_path, dense(), threads=2).run([x])

    def child() -> str:
        with pytest.warns(RuntimeWarning, match="1 thread instead of 2: this process was forked"):
            session = loaded(tmp_path, dense(), threads=2)
        return str(session.run([x])[0].shape)

    assert forked(child) == "(5000, 16)"


def test_threads_are_set_for_a_run_and_put_back(tmp_path: Path) -> None:
    session = loaded(tmp_path, dense(), threads=3)
    session.run([rows(1)])
    shapes = ((1, SIDE),)
    plans, seen = session._open_program()._plans, []
    run = plans[shapes].run
    plans[shapes] = replace(
        plans[shapes], run=lambda *given: seen.append(torch.get_num_threads()) or run(*given)
    )

    def call() -> None:
        torch.set_num_threads(2)
        session.run([rows(1)])
        seen.append(torch.get_num_threads())

    Client(call).ended()
    assert seen == [3, 2]


def test_strings_are_refused_at_the_build(tmp_path: Path) -> None:
    nodes = [helper.make_node("Identity", ["x"], ["y"])]
    kinds = {"x": TensorProto.STRING, "y": TensorProto.STRING}
    made: onnx.ModelProto = model(nodes, {"x": [3]}, {"y": [3]}, kinds=kinds)
    with pytest.raises(
        EngineError, match=r"input 'x' holds strings, and tensors hold numbers only"
    ):
        loaded(tmp_path, made)
