"""kernels/recurrent.py, against ONNX Runtime: all that an RNN, a GRU and an LSTM may be told."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
import torch
from support.onnx_graphs import F32, model, node
from support.torch_nodes import CPU, assert_like_onnxruntime

from mindspore_lite.engines.torch.kernels.lower import lower
from mindspore_lite.engines.torch.kernels.table import KERNELS

STEPS, BATCH, FEATURES, HIDDEN = 4, 3, 2, 5
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}


def random(*shape: int) -> np.ndarray:
    generator = np.random.default_rng(sum(shape))
    return generator.normal(0, 0.7, shape).astype(np.float32)


def given(op_type: str, directions: int, **left_out: bool) -> list[Any]:
    """x, W, R, B, the lengths and the first states; of an LSTM the peepholes, too."""
    rows = GATES[op_type] * HIDDEN
    named = {
        "x": random(STEPS, BATCH, FEATURES),
        "w": random(directions, rows, FEATURES),
        "r": random(directions, rows, HIDDEN),
        "b": random(directions, 2 * rows),
        "lens": np.array([4, 1, 2], np.int32),
        "h": random(directions, BATCH, HIDDEN),
    }
    if op_type == "LSTM":
        named["c"] = random(directions, BATCH, HIDDEN)
        named["p"] = random(directions, 3 * HIDDEN)
    return [None if left_out.get(name) else array for name, array in named.items()]


def check(op_type: str, inputs: list[Any], **attributes: Any) -> None:
    outputs = 3 if op_type == "LSTM" else 2
    assert_like_onnxruntime(op_type, *inputs, outputs=outputs, hidden_size=HIDDEN, **attributes)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("op_type", GATES)
def test_plain_layers_are_computed_in_each_direction(op_type: str, direction: str) -> None:
    inputs = given(op_type, DIRECTIONS[direction], lens=True, p=True)
    check(op_type, inputs, direction=direction)


@pytest.mark.parametrize("op_type", GATES)
def test_biases_and_first_states_may_be_left_out(op_type: str) -> None:
    inputs = given(op_type, 2, b=True, lens=True, h=True, c=True, p=True)
    check(op_type, inputs, direction="bidirectional")


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("op_type", GATES)
def test_items_end_at_their_lengths(op_type: str, direction: str) -> None:
    check(op_type, given(op_type, DIRECTIONS[direction]), direction=direction)


@pytest.mark.parametrize("linear_before_reset", [0, 1])
@pytest.mark.parametrize("lens", [True, False])
def test_a_gru_resets_before_or_after_the_product(linear_before_reset: int, lens: bool) -> None:
    inputs = given("GRU", 2, lens=lens)
    check("GRU", inputs, direction="bidirectional", linear_before_reset=linear_before_reset)


@pytest.mark.parametrize("op_type", GATES)
def test_what_goes_into_activations_is_clipped(op_type: str) -> None:
    check(op_type, given(op_type, 1, lens=True), clip=0.3)


def test_an_lstm_may_couple_its_gates() -> None:
    check("LSTM", given("LSTM", 1, lens=True), input_forget=1)


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("Relu", {}),
        ("Softsign", {}),
        ("Softplus", {}),
        ("LeakyRelu", {"activation_alpha": [0.3]}),
        ("ThresholdedRelu", {"activation_alpha": [0.2]}),
        ("Elu", {"activation_alpha": [0.4]}),
        ("ScaledTanh", {"activation_alpha": [0.4], "activation_beta": [0.6]}),
        ("HardSigmoid", {"activation_alpha": [0.4], "activation_beta": [0.6]}),
        ("Affine", {"activation_alpha": [0.4], "activation_beta": [0.6]}),
    ],
)
def test_every_activation_is_known(name: str, numbers: dict[str, Any]) -> None:
    check("RNN", given("RNN", 1, lens=True), activations=[name], **numbers)


def test_activations_differ_by_direction_and_take_their_numbers_in_order() -> None:
    names = ["HardSigmoid", "Tanh", "Sigmoid", "Affine"]
    numbers = {"activation_alpha": [0.3, 0.8], "activation_beta": [0.4, 0.1]}
    inputs = given("GRU", 2, lens=True)
    check("GRU", inputs, direction="bidirectional", activations=names, **numbers)


@pytest.mark.parametrize("op_type", GATES)
def test_the_batch_may_come_first(op_type: str) -> None:
    """ONNX Runtime does not know this layout: the same with transposed tensors."""
    compute = KERNELS["", op_type].compute
    inputs = [
        None if one is None else torch.from_numpy(one) for one in given(op_type, 2, lens=True)
    ]
    outputs = 3 if op_type == "LSTM" else 2
    wanted = compute(*inputs, direction="bidirectional", outputs=outputs)
    x, w, r, b, lens, *states = inputs
    turned = [s.transpose(0, 1) if s.dim() == 3 else s for s in states]
    found = compute(
        x.transpose(0, 1), w, r, b, lens, *turned,
        direction="bidirectional", layout=1, outputs=outputs,
    )  # fmt: skip
    torch.testing.assert_close(found[0].permute(1, 2, 0, 3), wanted[0])
    for got, want in zip(found[1:], wanted[1:], strict=True):
        torch.testing.assert_close(got.transpose(0, 1), want)


def test_plain_layers_are_one_call_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mindspore_lite.engines.torch.kernels.recurrent._run", None)
    for op_type in GATES:
        x, w, r, *_ = given(op_type, 1)
        more = {"linear_before_reset": 1} if op_type == "GRU" else {}
        made = node(op_type, ["x", "w", "r"], ["y"], hidden_size=HIDDEN, **more)
        proto = model([made], [("x", F32, x.shape)], ["y"], w=w, r=r)
        assert lower(ir.from_proto(proto), [x.shape], CPU).dynamic == []


def test_an_unknown_activation_is_refused() -> None:
    x, w, r, *_ = given("RNN", 1)
    made = node("RNN", ["x", "w", "r"], ["y"], hidden_size=HIDDEN, activations=["Wild"])
    proto = model([made], [("x", F32, x.shape)], ["y"], w=w, r=r)
    with pytest.raises(RuntimeError, match="activation 'Wild' is not one of ONNX"):
        lower(ir.from_proto(proto), [x.shape], CPU)
