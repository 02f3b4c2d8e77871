"""conversion/layer_loss.py: which layers lose most by being rounded."""

from __future__ import annotations

from functools import partial

import numpy as np
import onnx_ir as ir
import pytest
from support.quant_nets import cnn, mlp, normal

from mindspore_lite.conversion.layer_loss import layer_losses
from mindspore_lite.conversion.measure import inputs_of, made_up_inputs
from mindspore_lite.conversion.quant_report import Change, Rounding

SAMPLES = [[normal(3, 64, seed=seed)] for seed in range(3)]


def changed(name: str, weight: np.ndarray, by: float) -> Change:
    """A weight that became larger by a share of itself."""
    before, after = partial(np.asarray, weight), partial(np.multiply, weight, 1 + by)
    return Change("", "", name, "Weight", "Input", (1.0,), (0,), before, after)


def weights(model: ir.Model) -> dict[str, np.ndarray]:
    return {
        name: value.const_value.numpy()
        for name, value in model.graph.initializers.items()
        if value.const_value is not None
    }


def test_the_layer_that_moved_most_comes_first_and_others_are_exact() -> None:
    model = mlp()
    array = weights(model)
    model.graph.initializers["b1"].const_value = ir.Tensor(np.zeros(48, np.float32), name="b1")
    moved = [changed("w1", array["w1"], 0.02), changed("w2", array["w2"], 0.5)]
    first, second = layer_losses(model, moved, {}, SAMPLES)
    assert (first.name, first.operator) == ("fc2", "MatMul")
    assert first.loss == pytest.approx(0.5, rel=1e-3)
    assert second.name == "fc1"
    assert second.loss == pytest.approx(0.02, rel=1e-3)  # not what fc2 makes of it


def test_rounded_values_count_where_the_result_rounds_them() -> None:
    def loss(**roundings: Rounding) -> float:
        model = mlp()
        exact = [changed("w1", weights(model)["w1"], 0.0)]
        return layer_losses(model, exact, roundings, SAMPLES)[0].loss

    assert loss() == 0
    fine, coarse = loss(x=Rounding(0.03, 128)), loss(x=Rounding(0.3, 128))
    assert 0 < fine < coarse
    assert loss(h=Rounding(0.3, 128)) > 0
    assert loss(x=Rounding(0.001, 128)) > 0.5  # nearly everything is cut off


def test_convolutions_are_layers_too() -> None:
    model = cnn()
    moved = [changed(n, a, 0.1) for n, a in weights(model).items() if a.ndim == 4]
    samples = [made_up_inputs(inputs_of(model), 0)]
    found = layer_losses(model, moved, {}, samples)
    assert found
    assert all(one.operator == "Conv" and one.loss > 0 for one in found)


def test_a_model_without_such_layers_has_no_losses() -> None:
    assert layer_losses(mlp(), [], {}, SAMPLES) == ()
