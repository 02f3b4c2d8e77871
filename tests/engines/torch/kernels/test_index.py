"""engines/torch/kernels/index.py, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.torch_nodes import assert_like_onnxruntime

X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
TYPES = [np.uint16, np.uint64, np.int8, np.float16, np.float64, np.bool_]


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (0,)])
def test_places_of_any_rank_are_gathered(axis: int, shape: tuple[int, ...]) -> None:
    places = np.random.default_rng(0).integers(-3, 3, shape)
    assert_like_onnxruntime("Gather", X, places, axis=axis)
    assert_like_onnxruntime("Gather", X, places.astype(np.int32), axis=axis)


@pytest.mark.parametrize("dtype", TYPES)
def test_elements_of_every_type_are_gathered(dtype: type) -> None:
    x = X.astype(dtype)
    assert_like_onnxruntime("Gather", x, np.array([2, -1]), axis=1)
    assert_like_onnxruntime("GatherElements", x, np.array([[[2, -1]], [[0, -5]]]), axis=2)
    assert_like_onnxruntime("GatherND", x, np.array([[2, -1], [0, 1]]))


@pytest.mark.parametrize(
    ("places", "batch_dims"),
    [
        ([1, -2], 0),
        ([[1], [-1]], 0),
        ([[0, 1, 2], [-1, -1, -1]], 0),
        ([[1], [-1], [0]], 1),
        ([[[1], [2]], [[0], [-1]], [[3], [3]]], 1),
        ([[[1], [2], [0], [3]]] * 3, 2),
    ],
)
def test_slices_are_gathered_by_their_first_axes(places: list[object], batch_dims: int) -> None:
    assert_like_onnxruntime("GatherND", X, np.array(places), batch_dims=batch_dims)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_ones_stand_where_indices_say_and_nowhere_if_outside(axis: int) -> None:
    indices = np.array([[0, 2, -1], [5, -5, 3]])
    assert_like_onnxruntime("OneHot", indices, [4], np.array([-1, 7], np.float32), axis=axis)


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [None, 1, -2, 9])
def test_triangles_are_cut(upper: int, k: int | None) -> None:
    diagonal = None if k is None else np.array(k)
    assert_like_onnxruntime("Trilu", X, diagonal, upper=upper)


@pytest.mark.parametrize(("batch_axis", "time_axis"), [(0, 1), (1, 0)])
def test_sequences_are_reversed_up_to_their_lengths(batch_axis: int, time_axis: int) -> None:
    x = np.arange(32, dtype=np.float32).reshape(4, 4, 2)
    lens = np.array([4, 1, 3, 2])
    assert_like_onnxruntime("ReverseSequence", x, lens, batch_axis=batch_axis, time_axis=time_axis)


def test_where_broadcasts() -> None:
    condition = torch.tensor([[True], [False]]).numpy()
    assert_like_onnxruntime("Where", condition, X[0, 0], np.float32([[1], [2]]))


def test_the_places_of_what_is_not_zero_are_found() -> None:
    assert_like_onnxruntime("NonZero", X)
