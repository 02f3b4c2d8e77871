"""engines/torch/kernels/scatter.py, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from support.torch_nodes import assert_like_onnxruntime

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
REDUCTIONS = ["none", "add", "mul", "max", "min"]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("axis", [0, -1])
def test_elements_are_joined_along_an_axis(reduction: str, axis: int) -> None:
    places = np.array([[[1, -1, 0]]]) if axis else np.array([[[1, 0, 1]]])
    updates = np.array([[[5, -6, 7]]], np.float32)
    assert_like_onnxruntime("ScatterElements", X, places, updates, axis=axis, reduction=reduction)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(
    "places", [[[1], [0]], [[1, -1], [0, 2]], [[1, 2, 3], [-1, -1, -2]], [1], [0, 1]]
)
def test_slices_are_joined_by_their_first_axes(reduction: str, places: list[object]) -> None:
    indices = np.array(places)
    updates = -np.ones(indices.shape[:-1] + X.shape[indices.shape[-1] :], np.float32) * 3
    assert_like_onnxruntime("ScatterND", X, indices, updates, reduction=reduction)


@pytest.mark.parametrize("dtype", [np.uint16, np.uint64, np.int8, np.int64, np.float16, np.bool_])
def test_elements_of_every_type_are_put_in(dtype: type) -> None:
    x = X.astype(dtype)
    assert_like_onnxruntime("ScatterND", x, np.array([[1]]), x[:1])
    assert_like_onnxruntime("ScatterElements", x, np.array([[[1]]]), x[1:, 1:2, 1:2])


def test_updates_of_one_place_are_all_added() -> None:
    indices = np.zeros((5, 1), np.int64)
    updates = np.ones((5, 3, 4), np.float32)
    assert_like_onnxruntime("ScatterND", X, indices, updates, reduction="add")
