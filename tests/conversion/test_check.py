"""check.py: what a conversion wrote is run, and compared with its source."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
from support import bombs
from support.models import built, dense_net, written

from mindspore_lite.conversion.check import _apart, difference, run_once
from mindspore_lite.core.budget import Budget
from mindspore_lite.errors import EngineError, ModelFileError, RequestTimeoutError


def dense(rows: int | str = 2, factor: float = 1.0, name: str = "x") -> ir.Model:
    """What dense_net computes, as ONNX."""
    weights = ir.tensor(np.full((3, 4), factor, np.float32), name="w")
    tape = ir.tape.Tape()
    x = ir.val(name, ir.DataType.FLOAT, [rows, 3])
    w = tape.initializer(weights)
    one = tape.initializer(ir.tensor(np.ones(4, np.float32), name="one"))
    y = tape.op("Add", [tape.op("MatMul", [x, w]), one])
    y.name, y.shape, y.type = "y", ir.Shape([rows, 4]), ir.TensorType(ir.DataType.FLOAT)
    graph = ir.Graph(
        [x], [y], nodes=tape.nodes, initializers=tape.initializers, opset_imports={"": 21}
    )
    return ir.Model(graph, ir_version=10)


@pytest.fixture
def result(tmp_path: Path) -> Path:
    return written(tmp_path / "net.mindir", dense_net())


def test_a_result_that_runs_is_fine(result: Path) -> None:
    assert run_once(result, None) == ()


def test_open_sizes_are_not_guessed(tmp_path: Path) -> None:
    path = written(tmp_path / "net.mindir", dense_net(rows=-1))
    assert run_once(path, None) == ("infer was left out: the sizes of x are open",)


def test_a_result_that_cannot_be_built_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path / "net.mindir", b"nonsense")
    with pytest.raises(ModelFileError, match=r"^the result cannot be built: "):
        run_once(path, None)


def test_equal_models_do_not_differ(result: Path) -> None:
    found = difference(named_like(result, dense()), result)
    assert found.relative < 1e-6


def test_a_difference_is_a_share_of_the_largest_value(tmp_path: Path) -> None:
    path = written(tmp_path / "net.mindir", dense_net(factor=1.1))
    found = difference(named_like(path, dense()), path)
    # (s + 1) became (1.1 s + 1) for sums s of three numbers: some hundredths of it
    assert 0.01 < found.relative < 0.1


def test_open_sizes_become_one(tmp_path: Path) -> None:
    path = written(tmp_path / "net.mindir", dense_net(rows=-1))
    assert difference(named_like(path, dense("n")), path).relative < 1e-6


def test_other_inputs_or_outputs_are_an_error(result: Path) -> None:
    with pytest.raises(EngineError, match=r"source has inputs \['z'\], the result \['x'\]"):
        difference(named_like(result, dense(name="z")), result)
    with pytest.raises(EngineError, match=r"the source has outputs \['y'\]"):
        difference(dense(), result)


def named_like(result: Path, model: ir.Model) -> ir.Model:
    """The model with the name that the MindIR gives its output."""
    with built(result) as found:
        model.graph.outputs[0].name = found.get_outputs()[0].name
    return model


@pytest.mark.parametrize(
    ("want", "got", "apart"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0),
        ([1.0, -4.0], [1.0, -3.0], 0.25),
        ([0.0, 0.0], [0.0, 1e-3], 1e-3),
        ([np.nan, 1.0], [np.nan, 1.0], 0.0),
        ([np.inf, 1.0], [np.inf, 0.5], 0.5),
        ([np.nan, 1.0], [1.0, 1.0], np.nan),
        ([True, False], [True, True], 1.0),
        ([2, 4], [2, 3], 0.25),
        ([3 + 4j], [3 + 3j], 0.2),
        (["a", "b"], ["a", "c"], 1.0),
        ([], [], 0.0),
    ],
)
def test_how_far_arrays_lie_apart(want: list[object], got: list[object], apart: float) -> None:
    found = _apart(np.array(want), np.array(got), "y")
    assert found == pytest.approx(apart, nan_ok=True)


def test_another_shape_is_an_error() -> None:
    with pytest.raises(EngineError, match=r"output 'y' has shape \[2\] in the source, \[3\] in"):
        _apart(np.zeros(2), np.zeros(3), "y")


def test_a_result_whose_run_does_not_end_is_an_error(
    result: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mindspore_lite.conversion.check.DEFAULT", Budget(max_run_seconds=1))
    endless = ir.from_proto(bombs.endless_loop())
    endless.graph.inputs[0].shape = ir.Shape([2, 3])
    with pytest.raises(
        RequestTimeoutError, match=r"does not run .* a run of the source did not end"
    ):
        difference(endless, result)
