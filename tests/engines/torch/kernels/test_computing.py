"""Kernels that compute, against ONNX Runtime: types, numbers in place of tensors, quantisation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from support.torch_kernels import assert_as_onnxruntime, f32, lowered, one_node, whole
from support.torch_nodes import run_lowered

from mindspore_lite.engines.torch.kernels.norm import lrn

I64 = np.int64
NO_ROWS = np.zeros((0, 4, 6, 6), np.float32)
CASES: dict[str, tuple[str, list[np.ndarray], tuple[int, ...], dict[str, Any]]] = {
    "quotients towards zero": ("Div", [whole(-9, 9, I64, 3, 4), np.array(2)], (1,), {}),
    "a number by integers": ("Div", [np.array(-7), whole(1, 4, I64, 3)], (0,), {}),
    "a power in the type of its base": (
        "Pow", [np.array(2, np.int32), whole(0, 9, I64, 3)], (0,), {},
    ),
    "integers to a power that is none": (
        "Pow", [whole(1, 5, np.int32, 3), np.array(1.5, np.float32)], (1,), {},
    ),
    "integers to a power below zero": (
        "Pow", [np.array([1, -1, 2, -3]), np.array(-2)], (1,), {},
    ),
    "an image of no rows": (
        "Resize",
        [NO_ROWS, None, np.array([1, 1, 2, 2], np.float32)], (2,), {},
    ),
    "an image of no rows, by sizes": (
        "Resize", [NO_ROWS, None, None, np.array([0, 4, 3, 9])], (3,), {"mode": "cubic"},
    ),
    "the channels around no rows": ("LRN", [NO_ROWS], (), {"size": 3}),
    "a mean of integers": ("ReduceMean", [whole(-9, 9, np.int32, 3, 4)], (), {"keepdims": 0}),
    "one end of a range": ("Clip", [f32(9), np.array(0.2, np.float32)], (1,), {}),
    "ends that are crossed": (
        "Clip", [f32(9), np.array(0.2, np.float32), np.array(-0.2, np.float32)], (1,), {},
    ),
    "a number between a number and an input": (
        "Clip", [np.array(n, np.float32) for n in (3, 0, 2)], (0, 1), {},
    ),
    "products of integers": (
        "MatMul", [whole(-9, 9, np.int32, 3, 2), whole(-9, 9, np.int32, 2, 2)], (1,), {},
    ),
    "less at both ends": ("Pad", [f32(4, 5), np.array([-1, 2, 1, -2])], (1,), {}),
    "more than there is to mirror": (
        "Pad", [f32(2, 3), np.array([0, 2, 1, 2])], (1,), {"mode": "reflect"},
    ),
    "scales by column": (
        "QLinearMatMul",
        [whole(0, 255, np.uint8, 3, 4), np.array(0.02, "f"), np.array(120, np.uint8),
         whole(-127, 127, np.int8, 4, 5), np.linspace(0.01, 0.03, 5, dtype="f"),
         np.zeros(5, np.int8), np.array(0.1, "f"), np.array(128, np.uint8)],
        (3, 4), {},
    ),
    "scales by channel": (
        "QLinearConv",
        [whole(0, 255, np.uint8, 1, 2, 6, 6), np.array(0.02, "f"), np.array(120, np.uint8),
         whole(-127, 127, np.int8, 3, 2, 3, 3), np.linspace(0.01, 0.03, 3, dtype="f"),
         np.zeros(3, np.int8), np.array(0.2, "f"), np.array(128, np.uint8),
         whole(-500, 500, np.int32, 3)],
        (3, 8), {"pads": [1, 0, 0, 1]},
    ),
    "scales by block": (
        "QuantizeLinear",
        [f32(4, 6) * 20, np.linspace(0.1, 0.5, 8, dtype="f").reshape(4, 2),
         whole(-9, 9, np.int8, 4, 2)],
        (1, 2), {"axis": 1, "block_size": 3},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_kernels_compute_what_onnxruntime_does(name: str) -> None:
    op_type, inputs, constant, attributes = CASES[name]
    assert_as_onnxruntime(op_type, inputs, constant, **attributes)


def test_nothing_is_quantised_to_nothing() -> None:
    assert_as_onnxruntime("DynamicQuantizeLinear", [NO_ROWS], outputs=3)


def test_norms_of_halves_tell_what_they_measured_in_float32() -> None:
    inputs = [f32(2, 3, 4).astype(np.float16) for _ in range(3)]
    assert_as_onnxruntime("LayerNormalization", inputs, (1, 2), outputs=3, axis=0)


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_products_are_halves_and_large_sums_are_not(half: torch.dtype) -> None:
    product = one_node("MatMul", [f32(2, 3), f32(3, 4)], constant=(1,))
    assert [w.dtype for w in lowered(product, half=half).weights.values()] == [half]
    x = np.full((4, 100), 1000, np.float32)
    total = lowered(one_node("ReduceSum", [x], keepdims=0), half=half)
    assert [y.tolist() for y in run_lowered(total, [x])] == [400_000]


def test_weights_of_products_are_transposed_on_a_card_unless_they_are() -> None:
    inputs = [f32(2, 3), f32(3, 3)]
    for transposed, layout in ((0, "transposed"), (1, "")):
        model = one_node("Gemm", inputs, constant=(1,), transB=transposed)
        assert [w.layout for w in lowered(model, "cuda").weights.values()] == [layout]


def test_a_half_mask_that_hides_all_keys_gives_no_nan() -> None:
    q, mask = f32(1, 1, 2, 8), np.full((2, 2), np.finfo(np.float32).min, np.float32)
    model = one_node(
        "ScaledDotProductAttention", [q, q, q, mask], constant=(3,), domain="mslite", scale=1.0
    )
    (y,) = run_lowered(lowered(model, half=torch.float16), [q, q, q])
    assert bool(y.isfinite().all())


def test_an_even_window_of_channels_reaches_further_up() -> None:
    x = torch.tensor([[[1.0], [2.0], [4.0]]], dtype=torch.float64)
    y = lrn(x, size=2, alpha=2.0, beta=1.0, bias=0.0)
    assert y.flatten().tolist() == [1 / 5, 2 / 20, 4 / 16]  # ONNX Runtime has no even windows
