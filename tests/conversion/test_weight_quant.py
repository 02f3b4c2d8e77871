"""conversion/weight_quant.py: int8 in the file, float32 in the computation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper
from support.quant_nets import FLOAT, cnn, embedding, mlp, model_of, normal
from support.running import op_types, run_graph

from mindspore_lite.conversion.quant_settings import QuantSettings
from mindspore_lite.conversion.weight_quant import quantise_weights

IDS = np.random.default_rng(3).integers(0, 200, (2, 5))
CASES = [(mlp, normal(4, 64)), (cnn, normal(2, 3, 16, 16)), (embedding, IDS)]


def settings(**more: object) -> QuantSettings:
    return QuantSettings("WEIGHT_QUANT", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(("build", "x"), CASES)
@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("bias_correction", [True, False])
def test_weights_take_a_quarter_and_results_stay_near(
    build: Callable[[], ir.Model], x: np.ndarray, per_channel: bool, bias_correction: bool
) -> None:
    (want,) = run_graph(build(), x)
    model = build()
    outcome = quantise_weights(
        model, settings(per_channel=per_channel, bias_correction=bias_correction)
    )
    assert outcome.model is model
    assert outcome.left == {}
    for change in outcome.changes:
        tensor = model.graph.initializers[change.tensor_name].const_value
        assert tensor is not None
        assert tensor.dtype == ir.DataType.INT8
        channels = {"fc1": 48, "fc2": 24, "fc": 18, "conv3": 20, "look": 200, "mix": 32}
        assert len(change.scales) == (channels.get(change.node_name, 24) if per_channel else 1)
        restored = change.after()
        assert np.abs(restored - change.before()).max() < 0.02 * np.abs(change.before()).max()
    assert "Add" not in op_types(model)  # it would hide the numbers from an engine
    onnx.checker.check_model(ir.to_proto(model), full_check=True)
    (got,) = run_graph(model, x)
    assert np.abs(got - want).max() < 0.03 * np.abs(want).max()


def test_the_graph_computes_with_the_restored_numbers() -> None:
    model, x = mlp(), normal(4, 64)
    changes = {c.tensor_name: c.after() for c in quantise_weights(model, settings()).changes}
    hidden = np.maximum(x @ changes["w1"] + normal(48), 0)
    (got,) = run_graph(model, x)
    np.testing.assert_allclose(got, hidden @ changes["w2"], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("limits", "names"),
    [
        ({"min_weight_channels": 0}, {"k1", "k2", "k3", "w"}),
        ({"min_weight_channels": 18}, {"k1", "k2", "k3"}),
        ({"min_weight_channels": 20}, {"k1", "k2"}),
        ({"min_weight_size": 216}, {"k1", "k3", "w"}),
        ({"min_weight_size": 647}, {"k1", "w"}),
        ({"min_weight_size": 648}, {"w"}),
        ({"skip": frozenset({"conv1", "fc"})}, {"k2", "k3"}),
    ],
)
def test_limits_and_names_are_honoured(limits: dict[str, object], names: set[str]) -> None:
    outcome = quantise_weights(cnn(), settings(**limits))
    assert {change.tensor_name for change in outcome.changes} == names
    assert sum(outcome.left.values()) == 4 - len(names)


def test_reasons_are_counted() -> None:
    outcome = quantise_weights(
        cnn(),
        settings(min_weight_size=600, min_weight_channels=18, skip=frozenset({"conv1"})),
    )
    assert outcome.left == {
        "no more numbers than min_quant_weight_size": 2,
        "no more channels than min_quant_weight_channel": 1,
        "named in skip_quant_node": 1,
    }


def test_a_weight_of_two_readers_is_stored_once() -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], "first"),
        helper.make_node("MatMul", ["a", "w"], ["y"], "second"),
    ]
    model = model_of(nodes, {"x": (FLOAT, [2, 32])}, ["y"], {"w": normal(32, 32, scale=0.1)})
    outcome = quantise_weights(model, settings(bias_correction=False))
    assert [change.node_name for change in outcome.changes] == ["first"]
    assert op_types(model) == ["Cast", "Mul", "MatMul", "MatMul"]
    again = model_of(nodes, {"x": (FLOAT, [2, 32])}, ["y"], {"w": normal(32, 32, scale=0.1)})
    assert quantise_weights(again, settings(skip=frozenset({"second"}))).changes == ()


def test_a_transposed_convolution_has_its_channels_second() -> None:
    node = helper.make_node("ConvTranspose", ["x", "k"], ["y"], "up", strides=[2, 2])
    weights = {"k": normal(4, 20, 2, 2)}
    model = model_of([node], {"x": (FLOAT, [1, 4, 5, 5])}, ["y"], weights, ranks=4)
    x = normal(1, 4, 5, 5)
    (want,) = run_graph(model.clone(), x)
    (change,) = quantise_weights(model, settings()).changes
    assert len(change.scales) == 20
    assert np.abs(run_graph(model, x)[0] - want).max() < 0.02 * np.abs(want).max()


def test_weights_in_a_branch_are_quantised_there() -> None:
    def branch(name: str) -> onnx.GraphProto:
        node = helper.make_node("MatMul", ["x", f"w_{name}"], [name], name)
        weight = onnx.numpy_helper.from_array(normal(32, 32, seed=len(name)), f"w_{name}")
        out = helper.make_tensor_value_info(name, FLOAT, [2, 32])
        return helper.make_graph([node], name, [], [out], [weight])

    choice = helper.make_node(
        "If", ["c"], ["y"], then_branch=branch("t"), else_branch=branch("els")
    )
    inputs = {"c": (onnx.TensorProto.BOOL, []), "x": (FLOAT, [2, 32])}
    model = model_of([choice], inputs, ["y"], {})
    before = model.clone()
    assert len(quantise_weights(model, settings()).changes) == 2
    for chosen in (True, False):
        (want,) = run_graph(before.clone(), np.array(chosen), normal(2, 32))
        (got,) = run_graph(model.clone(), np.array(chosen), normal(2, 32))
        assert 0 < np.abs(got - want).max() < 0.02 * np.abs(want).max()
