"""engines/torch/kernels/slice.py, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.torch_nodes import assert_like_onnxruntime

from mindspore_lite.engines.torch.kernels.slice import compress, equal_parts

X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
FAR = 2**62


@pytest.mark.parametrize(
    ("start", "end"),
    [(-FAR, FAR), (FAR, -FAR), (-FAR, -FAR), (FAR, FAR), (-6, 3), (4, -5), (-1, 0), (2, 5), (5, 2)],
)
@pytest.mark.parametrize("step", [1, 2, -1, -3])
def test_starts_and_ends_may_lie_anywhere(start: int, end: int, step: int) -> None:
    assert_like_onnxruntime("Slice", X, [start], [end], [2], [step])


def test_several_axes_are_cut_at_once() -> None:
    assert_like_onnxruntime("Slice", X, [1, -2], [3, -5], [0, -1], [1, -2])
    assert_like_onnxruntime("Slice", X, [1, 2], [3, 4])


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32, np.uint64, np.int8, np.bool_, np.float64])
def test_every_type_can_be_cut_and_joined(dtype: type) -> None:
    x = (X % 2 == 0).astype(dtype) if dtype is np.bool_ else X.astype(dtype)
    assert_like_onnxruntime("Slice", x, [2], [-FAR], [1], [-1])
    assert_like_onnxruntime("Concat", x, x, axis=-1)
    assert_like_onnxruntime("Split", x, [1, 3], axis=1, outputs=2)


def test_the_last_of_equal_parts_is_smaller() -> None:
    assert_like_onnxruntime("Split", X, axis=2, num_outputs=3, outputs=3)
    assert equal_parts(5, 3) == [2, 2, 1]


@pytest.mark.parametrize("kept", [[1, 0, 1, 1, 0], [0, 0], [1], []])
def test_a_condition_keeps_what_it_names_and_may_end_early(kept: list[int]) -> None:
    condition = np.array(kept, np.bool_)
    x = torch.from_numpy(X)
    found = compress(x, condition.tolist(), axis=2)
    np.testing.assert_array_equal(found, np.compress(condition, X, 2))
    if kept:
        assert_like_onnxruntime("Compress", X, condition, axis=2)
        assert_like_onnxruntime("Compress", X, condition)
