"""conversion/full_quant.py: int8 from one end to the other, on calibrated ranges."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper
from support.quant_nets import FLOAT, cnn, conv1d, embedding, kernels, mlp, model_of, normal
from support.running import op_types, run_graph

from mindspore_lite.conversion.full_quant import quantise_fully
from mindspore_lite.conversion.quant_report import Outcome
from mindspore_lite.conversion.quant_settings import QuantSettings
from mindspore_lite.errors import EngineError

PICTURES = [[normal(1, 3, 16, 16, seed=at)] for at in range(6)]
SOUNDS = [[normal(1, 8, 32, seed=at)] for at in range(6)]
ROWS = [[normal(4, 64, seed=at)] for at in range(6)]
IDS = [[np.random.default_rng(at).integers(0, 200, (2, 5))] for at in range(6)]

Samples = list[list[np.ndarray]]


def full(model: ir.Model, samples: Samples, **more: object) -> Outcome:
    settings = QuantSettings("FULL_QUANT", **more)  # type: ignore[arg-type]
    return quantise_fully(model, settings, samples, lambda _: None)


def worst(model: ir.Model, before: ir.Model, samples: Samples) -> float:
    gap = scale = 0.0
    for inputs in samples:
        (got,), (want,) = run_graph(model.clone(), *inputs), run_graph(before.clone(), *inputs)
        gap, scale = max(gap, np.abs(got - want).max()), max(scale, np.abs(want).max())
    return gap / scale


@pytest.mark.parametrize("method", ["MAX_MIN", "KL", "REMOVAL_OUTLIER"])
@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("bias_correction", [True, False])
def test_results_stay_near(method: str, per_channel: bool, bias_correction: bool) -> None:
    outcome = full(
        cnn(),
        PICTURES,
        method=method,
        per_channel=per_channel,
        bias_correction=bias_correction,
    )
    assert sorted(change.tensor_name for change in outcome.changes) == ["k1", "k2", "k3", "w"]
    assert outcome.left == {}
    onnx.checker.check_model(ir.to_proto(outcome.model), full_check=True)
    assert 0 < worst(outcome.model, cnn(), PICTURES) < (0.05 if method == "MAX_MIN" else 0.3)


@pytest.mark.parametrize(
    ("build", "samples", "wanted"),
    [
        (cnn, PICTURES, {"QLinearConv": 3, "QGemm": 1}),
        (conv1d, SOUNDS, {"QLinearConv": 3}),
        (mlp, ROWS, {"QGemm": 1, "QLinearMatMul": 1}),
        (embedding, IDS, {"QLinearMatMul": 1}),
    ],
)
def test_the_engine_has_int8_kernels_for_it(
    build: Callable[[], ir.Model], samples: Samples, wanted: dict[str, int], tmp_path: Path
) -> None:
    found = kernels(full(build(), samples).model, tmp_path)
    assert {name: count for name, count in found.items() if name[0] == "Q"} == {
        **wanted,
        "QuantizeLinear": 1,  # of what goes in
    }
    for slow in ("Conv", "FusedConv", "Gemm", "FusedGemm", "MatMul", "Relu", "Clip"):
        assert found[slow] == 0


@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("across", [0, 1])
@pytest.mark.parametrize("turned", [0, 1])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (0.5, 1.0), (1.0, 2.0)])
def test_every_form_of_gemm_stays_near(
    across: int, turned: int, alpha: float, beta: float, per_channel: bool
) -> None:
    model = mlp(transA=turned, transB=across, alpha=alpha, beta=beta)
    before = model.clone()
    samples = [[x.T.copy()] for (x,) in ROWS] if turned else ROWS
    outcome = full(model, samples, per_channel=per_channel)
    assert outcome.left == ({} if alpha == beta == 1 else {"scaled by alpha or beta": 1})
    assert worst(outcome.model, before, samples) < 0.03


def test_names_and_weights_that_are_not_quantised_stay() -> None:
    model = embedding()
    table = model.graph.initializers["table"].const_value
    model.producer_name, model.metadata_props["version"] = "maker", "7"
    result = full(model, IDS).model
    assert [value.name for value in result.graph.inputs] == ["ids"]
    assert [value.name for value in result.graph.outputs] == ["y"]
    assert result.graph.initializers["table"].const_value is table  # mapped ones stay mapped
    assert result.producer_name == "maker"
    assert result.metadata_props == {"version": "7"}
    assert "w" not in result.graph.initializers


def test_weights_that_lie_in_files_are_read(tmp_path: Path) -> None:
    onnx.save(
        ir.to_proto(cnn()), tmp_path / "net.onnx", save_as_external_data=True, size_threshold=0
    )
    model = ir.load(tmp_path / "net.onnx")
    result = full(model, PICTURES).model
    assert worst(result, cnn(), PICTURES) < 0.05


def test_bias_correction_takes_the_mean_error_away() -> None:
    node = helper.make_node("Conv", ["x", "k"], ["y"], "conv", pads=[1, 1, 1, 1])
    spread = np.geomspace(0.01, 1, 20, dtype=np.float32).reshape(-1, 1, 1, 1)
    weights = {"k": normal(20, 8, 3, 3) * spread}

    def build() -> ir.Model:
        return model_of([node], {"x": (FLOAT, [1, 8, 6, 6])}, ["y"], weights, ranks=4)

    samples = [[normal(1, 8, 6, 6, seed=at) + np.float32(2)] for at in range(8)]

    def mean_error(bias_correction: bool) -> float:
        result = full(build(), samples, per_channel=False, bias_correction=bias_correction).model
        errors = [run_graph(result.clone(), *s)[0] - run_graph(build(), *s)[0] for s in samples]
        return float(np.abs(np.mean(errors, axis=(0, 1, 3, 4)))[:10].mean())

    assert mean_error(True) < mean_error(False) / 2


def test_a_bias_is_corrected_whether_there_was_one_or_not() -> None:
    result = full(cnn(), PICTURES, bias_correction=True).model
    assert all(len(node.inputs) == 3 for node in result.graph if node.op_type in ("Conv", "Gemm"))
    plain = full(cnn(), PICTURES, bias_correction=False).model
    assert [len(node.inputs) for node in plain.graph if node.op_type == "Conv"] == [3, 2, 2]


def test_named_nodes_stay_float() -> None:
    outcome = full(cnn(), PICTURES, skip=frozenset({"conv2", "fc"}))
    assert sorted(change.tensor_name for change in outcome.changes) == ["k1", "k3"]
    assert outcome.left == {"named in skip_quant_node": 2}
    kept = {n.name: [v.name for v in n.inputs if v is not None] for n in outcome.model.graph}
    assert "k2" in kept["conv2"]


@pytest.mark.parametrize(("low", "high", "stays"), [(0, 6, False), (-1, 1, False), (0.5, 2, True)])
def test_a_clip_goes_only_if_a_range_can_do_its_work(low: float, high: float, stays: bool) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["a"], "conv"),
        helper.make_node("Clip", ["a", "low", "high"], ["y"], "clip"),
    ]
    weights = {
        "k": normal(20, 3, 3, 3, scale=0.2),
        "low": np.float32(low),
        "high": np.float32(high),
    }
    model = model_of(nodes, {"x": (FLOAT, [1, 3, 16, 16])}, ["y"], weights, ranks=4)
    before = model.clone()
    result = full(model, PICTURES).model
    assert ("Clip" in op_types(result)) == stays
    assert worst(result, before, PICTURES) < 0.08
    (got,) = run_graph(result, *PICTURES[0])
    assert low - 0.01 < got.min() < got.max() < high + 0.01


def test_what_does_not_fit_is_counted() -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "stack"], ["y"]),
        helper.make_node("Gemm", ["z", "w", "b"], ["u"]),
        helper.make_node("Gemm", ["z", "w2", "b2"], ["v"]),
        helper.make_node("MatMul", ["w", "w3"], ["t"]),
    ]
    weights = {
        "stack": normal(2, 16, 8),
        "w": normal(16, 8),
        "w2": normal(16, 8, seed=1),
        "b2": normal(1, 8),
        "w3": normal(8, 8),
    }
    inputs = {"x": (FLOAT, [2, 3, 16]), "z": (FLOAT, [3, 16]), "b": (FLOAT, [8])}
    model = model_of(nodes, inputs, ["u", "v", "t"], weights)
    outcome = full(model, [])
    assert outcome.changes == ()
    assert outcome.left == {
        "a stack of matrices": 1,
        "its bias is computed": 1,
        "its bias is not one number for each channel": 1,
        "multiplied by something that is not a float32 activation": 1,
    }


def test_a_weight_that_is_read_along_both_axes_stays() -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], "first"),
        helper.make_node("Gemm", ["a", "w"], ["y"], "second", transB=1),
    ]
    weights = {"w": normal(64, 64, scale=0.1)}
    model = model_of(nodes, {"x": (FLOAT, ["n", 64])}, ["y"], weights)
    assert full(model, ROWS).left == {"read in another way, too": 2}


def test_weights_in_a_branch_stay() -> None:
    def branch(name: str) -> onnx.GraphProto:
        node = helper.make_node("MatMul", ["x", f"w_{name}"], [name], name)
        weight = onnx.numpy_helper.from_array(normal(64, 64), f"w_{name}")
        out = helper.make_tensor_value_info(name, FLOAT, [4, 64])
        return helper.make_graph([node], name, [], [out], [weight])

    choice = helper.make_node("If", ["c"], ["y"], then_branch=branch("t"), else_branch=branch("e"))
    inputs = {"c": (onnx.TensorProto.BOOL, []), "x": (FLOAT, [4, 64])}
    outcome = full(model_of([choice], inputs, ["y"], {}), [])
    assert outcome.left == {"inside of a branch or a loop": 2}


def test_nodes_without_names_or_with_equal_ones_are_told_apart() -> None:
    model = mlp()
    for node in model.graph:
        node.name = None if node.op_type == "Relu" else "same"
    result = full(model, ROWS).model
    assert worst(result, mlp(), ROWS) < 0.05


def test_an_older_opset_is_refused() -> None:
    model = mlp()
    model.opset_imports[""] = 12
    with pytest.raises(ValueError, match="for opset 21 and later, the model has 12"):
        full(model, ROWS)


def test_nothing_is_printed_and_the_root_logger_stays_as_it_is(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    handlers = list(logging.getLogger().handlers)
    for method in ("MAX_MIN", "KL", "REMOVAL_OUTLIER"):
        full(cnn(), PICTURES[:2], method=method)
    assert logging.getLogger().handlers == handlers
    assert capfd.readouterr() == ("", "")
    assert {record.name for record in caplog.records} <= {"mindspore_lite.quantiser"}


def test_a_failure_of_the_quantiser_is_our_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from mindspore_lite.engines.onnxruntime.engine import quantiser

    def fails(*_: object) -> None:
        raise RuntimeError("no such tensor")

    monkeypatch.setattr(quantiser().QDQQuantizer, "quantize_model", fails)
    with pytest.raises(EngineError, match="could not quantise the model: no such tensor"):
        full(mlp(), ROWS)
