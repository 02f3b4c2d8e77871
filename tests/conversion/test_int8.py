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


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_a_correction_makes_errors_of_a_channel_cancel_out(axis: int | None) -> None:
    others = tuple(a for a in range(4) if axis is None or a != axis % 4)

    def errors(corrected: bool) -> tuple[np.ndarray, np.ndarray]:
        found = quantised(WEIGHT, axis, corrected)
        steps = (found.restored() - WEIGHT).astype(np.float64) / found.scale
        return np.abs(steps.sum(axis=others)), (steps**2).sum(axis=others)

    plain, corrected = errors(False), errors(True)
    assert (corrected[0] <= 0.51).all()  # of a step, however many weights there are
    assert plain[0].max() > 1
    assert (corrected[1] <= plain[1] * 1.3).all()
    assert corrected[1].sum() <= plain[1].sum() * 1.02  # hardly more than of the nearest numbers
    assert np.abs(quantised(WEIGHT, axis, True).numbers.astype(int)).max() == 127


def test_a_correction_leaves_numbers_that_round_clearly() -> None:
    weight = np.full((1, 200), 0.2 / 127, np.float32)
    weight[0, 0] = 1
    found = quantised(weight, 0, True).numbers
    assert found[0, 0] == 127
    assert not found[0, 1:].any()  # a fifth of a step each: 40 of them rounded up would be noise


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
