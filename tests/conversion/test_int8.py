"""conversion/int8.py: weights as whole numbers, and where nodes have them."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from support.quant_nets import cnn, embedding, mlp, normal

from mindspore_lite.conversion.int8 import place_of, quantised, why_not

WEIGHT = normal(24, 5, 3, 3) * np.linspace(0.01, 10, 24, dtype=np.float32).reshape(-1, 1, 1, 1)


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_no_number_is_further_off_than_half_a_step(axis: int | None) -> None:
    found = quantised(WEIGHT, axis)
    assert found.numbers.dtype == np.int8
    assert found.scale.dtype == np.float32
    assert found.scale.size == (1 if axis is None else WEIGHT.shape[axis])
    assert np.abs(found.numbers.astype(int)).max() == 127
    assert (np.abs(found.restored() - WEIGHT) <= found.scale * 0.5001).all()


def test_channels_of_different_size_have_their_own_scales() -> None:
    def error(axis: int | None) -> float:
        return float(np.abs(quantised(WEIGHT, axis).restored() - WEIGHT)[0].max())

    assert error(0) < error(None) / 100


@pytest.mark.parametrize("axis", [0, None])
def test_a_correction_makes_the_error_of_each_channel_smaller(axis: int | None) -> None:
    def squares(corrected: bool) -> np.ndarray:
        error = quantised(WEIGHT, axis, corrected).restored() - WEIGHT
        return np.asarray(
            (error.astype(np.float64) ** 2).sum(axis=(1, 2, 3) if axis == 0 else None)
        )

    assert (squares(True) <= squares(False) * (1 + 1e-6)).all()
    mean = (quantised(WEIGHT, axis, True).restored() - WEIGHT).mean(axis=None)
    assert abs(mean) < 1e-6


@pytest.mark.parametrize("corrected", [True, False])
def test_zeros_and_channels_of_one_number_are_exact(corrected: bool) -> None:
    weight = np.zeros((3, 4), np.float32)
    weight[1], weight[2] = 0.3, -7
    np.testing.assert_allclose(quantised(weight, 0, corrected).restored(), weight, rtol=1e-6)


@pytest.mark.parametrize(
    ("model", "found"),
    [
        (mlp(), {"w1": 1, "w2": 1}),
        (mlp(transB=1), {"w1": 0, "w2": 1}),
        (cnn(), {"k1": 0, "k2": 0, "k3": 0, "w": 0}),
        (embedding(), {"table": 0, "w": 1}),
    ],
)
def test_places_of_weights(model: ir.Model, found: dict[str, int]) -> None:
    places = [place for node in model.graph if (place := place_of(node))]
    assert {place.name: place.axis for place in places} == found


def test_what_has_no_constant_weight_has_no_place() -> None:
    model = mlp()
    (fc1, relu, _) = list(model.graph)
    assert place_of(relu) is None
    weight = model.graph.initializers["w1"]
    model.graph.inputs.append(weight)  # a default, which callers may replace
    assert place_of(fc1) is None
    model.graph.inputs.pop()
    fc1.domain = "com.example"
    assert place_of(fc1) is None
    fc1.domain = ""
    assert place_of(fc1) is not None
    weight.const_value = ir.Tensor(normal(64, 48).astype(np.float16))
    assert place_of(fc1) is None


def test_why_a_weight_stays() -> None:
    model = mlp()
    place = place_of(model.graph[0])
    assert place is not None
    assert why_not(place, frozenset()) == ""
    assert why_not(place, frozenset({"fc1"})) == "named in skip_quant_node"
    model.graph.outputs.append(place.value)
    assert why_not(place, frozenset()) == "is an output of the model"
    model.graph.outputs.pop()
    place.value.const_value = ir.Tensor(np.full((64, 48), np.nan, np.float32))
    assert why_not(place, frozenset()) == "holds numbers that are not finite"
