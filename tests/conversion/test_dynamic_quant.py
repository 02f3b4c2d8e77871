"""conversion/dynamic_quant.py: products of whole numbers without calibration."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper
from support.quant_nets import FLOAT, cnn, embedding, kernels, mlp, model_of, normal
from support.running import op_types, run_graph

from mindspore_lite.conversion.dynamic_quant import quantise_dynamically
from mindspore_lite.conversion.quant_settings import QuantSettings

DYNAMIC = QuantSettings("DYNAMIC_QUANT")


def near(got: np.ndarray, want: np.ndarray, share: float = 0.03) -> None:
    assert got.shape == want.shape
    assert 0 < np.abs(got - want).max() < share * np.abs(want).max()


@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"transB": 1},
        {"transA": 1, "transB": 1},
        {"alpha": 0.5, "beta": 2.0},
        {"transB": 1, "alpha": -2.0, "beta": 0.0},
    ],
)
def test_products_stay_near(attributes: dict[str, object], per_channel: bool) -> None:
    x = normal(64, 4) if attributes.get("transA") else normal(4, 64)
    (want,) = run_graph(mlp(**attributes), x)
    model = mlp(**attributes)
    outcome = quantise_dynamically(model, QuantSettings("DYNAMIC_QUANT", per_channel=per_channel))
    assert [change.tensor_name for change in outcome.changes] == ["w1", "w2"]
    assert op_types(model).count("MatMulInteger") == 2
    assert "w1" not in model.graph.initializers
    onnx.checker.check_model(ir.to_proto(model), full_check=True)
    near(run_graph(model, x)[0], want)


def test_the_engine_has_int8_kernels_for_it(tmp_path: Path) -> None:
    model = quantise_dynamically(mlp(), DYNAMIC).model
    found = kernels(model, tmp_path)
    assert found["DynamicQuantizeMatMul"] == 2
    assert found["MatMul"] == found["Gemm"] == 0


@pytest.mark.parametrize("per_channel", [True, False])
def test_tables_become_int8_and_rows_are_restored(per_channel: bool, tmp_path: Path) -> None:
    ids = np.random.default_rng(3).integers(0, 200, (2, 5))
    (want,) = run_graph(embedding(), ids)
    settings = QuantSettings("DYNAMIC_QUANT", per_channel=per_channel)
    model = quantise_dynamically(embedding(), settings).model
    near(run_graph(model.clone(), ids)[0], want)
    table = model.graph.initializers["table:int8"].const_value
    assert table is not None
    assert (table.dtype, list(table.shape)) == (ir.DataType.INT8, [200, 40])
    assert kernels(model, tmp_path)["DynamicQuantizeMatMul"] == 1


def test_an_input_of_many_products_is_quantised_once() -> None:
    nodes = [helper.make_node("MatMul", ["x", n], [f"y_{n}"], n) for n in "qkv"]
    weights = {n: normal(32, 32, seed=ord(n)) for n in "qkv"}
    model = model_of(nodes, {"x": (FLOAT, [2, 32])}, [f"y_{n}" for n in "qkv"], weights)
    quantise_dynamically(model, DYNAMIC)
    assert op_types(model).count("DynamicQuantizeLinear") == 1
    assert [value.name for value in model.graph.outputs] == ["y_q", "y_k", "y_v"]


def test_one_weight_of_two_products_is_stored_once() -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], "first"),
        helper.make_node("Gemm", ["a", "w"], ["y"], "second", transB=1),
    ]
    model = model_of(nodes, {"x": (FLOAT, [2, 32])}, ["y"], {"w": normal(32, 32, scale=0.2)})
    (want,) = run_graph(model.clone(), normal(2, 32))
    quantise_dynamically(model, DYNAMIC)
    near(run_graph(model, normal(2, 32))[0], want)


def test_convolutions_and_named_nodes_stay() -> None:
    outcome = quantise_dynamically(cnn(), DYNAMIC)
    assert [change.tensor_name for change in outcome.changes] == ["w"]
    skipping = QuantSettings("DYNAMIC_QUANT", skip=frozenset({"fc1"}))
    outcome = quantise_dynamically(mlp(), skipping)
    assert [change.tensor_name for change in outcome.changes] == ["w2"]
    assert outcome.left == {"named in skip_quant_node": 1}
    assert op_types(outcome.model)[0] == "Gemm"


def test_what_does_not_fit_is_counted() -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "stack"], ["y"], "stacked"),
        helper.make_node("Gather", ["table", "at"], ["z"], "across", axis=1),
    ]
    weights = {"stack": normal(2, 16, 8), "table": normal(20, 20), "at": np.array([[1, 2]])}
    model = model_of(nodes, {"x": (FLOAT, [2, 3, 16])}, ["y", "z"], weights, ranks=3)
    assert quantise_dynamically(model, DYNAMIC).left == {
        "a stack of matrices": 1,
        "a table along another axis": 1,
    }
