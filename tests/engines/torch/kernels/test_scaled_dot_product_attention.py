"""engines/torch/kernels/attention.py: our own operator, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.attention import attend

from mindspore_lite.engines.torch.kernels.attention import scaled_dot_product_attention

RANDOM = np.random.default_rng(2)


def f32(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


HIDDEN = np.array([[0, -np.inf, 0], [-np.inf] * 3], np.float32)
SHAPES = {
    "rank 4": [(2, 2, 2, 4), (2, 2, 3, 4), (2, 2, 3, 5)],
    "rank 3": [(2, 2, 4), (2, 3, 4), (2, 3, 5)],
    "keys that heads share": [(2, 2, 2, 4), (2, 1, 3, 4), (2, 1, 3, 5)],
    "a mask of one axis": [(2, 2, 2, 4), (2, 2, 3, 4), (2, 2, 3, 5), (3,)],
    "a mask of two axes": [(2, 2, 4), (2, 3, 4), (2, 3, 5), (2, 3)],
    "a mask of rows": [(2, 2, 4), (2, 3, 4), (2, 3, 5), (2, 2, 3)],
    "a mask of more rows": [(1, 2, 2, 4), (1, 2, 3, 4), (1, 2, 3, 5), (3, 1, 1, 3)],
    "a mask of more queries": [(1, 2, 1, 4), (1, 2, 3, 4), (1, 2, 3, 5), (2, 3)],
}


@pytest.mark.parametrize("name", SHAPES)
def test_it_broadcasts_as_its_parts_do(name: str) -> None:
    q, k, v, *mask = (f32(*shape) for shape in SHAPES[name])
    got = scaled_dot_product_attention(*map(torch.from_numpy, (q, k, v, *mask)), scale=0.3)
    np.testing.assert_allclose(got, attend(q, k, v, *mask, scale=0.3), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("low", [-np.inf, -1e30, np.finfo(np.float32).min])
def test_keys_that_are_hidden_count_nothing(low: float) -> None:
    q, k, v = f32(2, 2, 4), f32(2, 3, 4), f32(2, 3, 4)
    mask = np.where(np.isinf(HIDDEN), np.float32(low), 0).astype(np.float32)
    got = scaled_dot_product_attention(*map(torch.from_numpy, (q, k, v, mask)), scale=0.3).numpy()
    np.testing.assert_allclose(got, attend(q, k, v, mask, scale=0.3), rtol=1e-4, atol=1e-5)
    wanted = np.zeros((2, 4)) if np.isinf(low) else v.mean(axis=1)
    np.testing.assert_allclose(got[:, 1], wanted, rtol=1e-4, atol=1e-6)


def test_a_query_sees_no_later_keys_when_it_is_causal() -> None:
    q, k, v = f32(2, 3, 4), f32(2, 3, 4), f32(2, 3, 4)
    got = scaled_dot_product_attention(*map(torch.from_numpy, (q, k, v)), scale=0.3, is_causal=1)
    wanted = attend(q, k, v, scale=0.3, is_causal=1)
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
