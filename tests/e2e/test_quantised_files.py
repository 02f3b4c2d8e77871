"""A quantised model still gets the engine's int8 kernels after its way through a MindIR file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
from support.quant_nets import cnn, conv1d, embedding, kernels, mlp, normal
from support.running import run_graph

from mindspore_lite.conversion.dynamic_quant import quantise_dynamically
from mindspore_lite.conversion.full_quant import quantise_fully
from mindspore_lite.conversion.quant_settings import QuantSettings
from mindspore_lite.conversion.weight_quant import quantise_weights
from mindspore_lite.graph.from_mindir import from_mindir
from mindspore_lite.graph.to_mindir import to_mindir
from mindspore_lite.mindir.read import read_file
from mindspore_lite.mindir.write import write_file
from mindspore_lite.passes.infer_shapes import infer_shapes

PICTURES = [[normal(1, 3, 16, 16, seed=at)] for at in range(6)]
SOUNDS = [[normal(1, 8, 32, seed=at)] for at in range(6)]
ROWS = [[normal(4, 64, seed=at)] for at in range(6)]
IDS = [[np.random.default_rng(at).integers(0, 200, (2, 5))] for at in range(6)]


def through_file(model: ir.Model, folder: Path) -> ir.Model:
    infer_shapes(model)
    (path,) = write_file(to_mindir(model).model, folder / "net.mindir")
    return from_mindir(read_file(path))


@pytest.mark.parametrize(
    ("build", "samples", "wanted"),
    [
        (cnn, PICTURES, {"QLinearConv": 3, "QGemm": 1}),
        (conv1d, SOUNDS, {"QLinearConv": 3}),
        (mlp, ROWS, {"QGemm": 1, "QLinearMatMul": 1}),
        (embedding, IDS, {"QLinearMatMul": 1}),
    ],
    ids=["cnn", "conv1d", "mlp", "embedding"],
)
def test_full_quantisation_keeps_its_kernels(
    build: Callable[[], ir.Model],
    samples: list[list[np.ndarray]],
    wanted: dict[str, int],
    tmp_path: Path,
) -> None:
    outcome = quantise_fully(build(), QuantSettings("FULL_QUANT"), samples, lambda _: None)
    back = through_file(outcome.model.clone(), tmp_path)
    found = kernels(back, tmp_path)
    assert {name: found[name] for name in wanted} == wanted
    for slow in ("Conv", "FusedConv", "Gemm", "FusedGemm", "MatMul"):
        assert found[slow] == 0
    (got,), (want,) = run_graph(back, *samples[0]), run_graph(outcome.model, *samples[0])
    np.testing.assert_allclose(got, want, atol=1e-5 * np.abs(want).max())


def test_dynamic_quantisation_keeps_its_kernels(tmp_path: Path) -> None:
    outcome = quantise_dynamically(mlp(), QuantSettings("DYNAMIC_QUANT"))
    back = through_file(outcome.model.clone(), tmp_path)
    assert kernels(back, tmp_path)["DynamicQuantizeMatMul"] == 2
    (got,), (want,) = run_graph(back, *ROWS[0]), run_graph(outcome.model, *ROWS[0])
    np.testing.assert_array_equal(got, want)


def test_quantised_weights_are_stored_small_and_computed_as_before(tmp_path: Path) -> None:
    outcome = quantise_weights(mlp(), QuantSettings("WEIGHT_QUANT"))
    back = through_file(outcome.model.clone(), tmp_path)
    types = {v.dtype for v in back.graph.initializers.values() if v.name in ("w1", "w2", "w")}
    assert types == {ir.DataType.INT8}
    found = kernels(back, tmp_path)
    assert found["Cast"] == found["Mul"] == 0  # done once, by the compiler
    (got,), (want,) = run_graph(back, *ROWS[0]), run_graph(outcome.model, *ROWS[0])
    np.testing.assert_array_equal(got, want)
