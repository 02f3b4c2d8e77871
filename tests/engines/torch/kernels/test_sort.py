"""engines/torch/kernels/sort.py, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from support.torch_nodes import assert_like_onnxruntime

TIED = np.array([[3, 1, 3, 2, 1], [0, 0, 0, 5, 5]], np.float32)


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32])
def test_of_equals_the_first_is_taken(largest: int, axis: int, dtype: type) -> None:
    x = TIED.astype(dtype)
    assert_like_onnxruntime("TopK", x, [2], axis=axis, largest=largest, outputs=2)


@pytest.mark.parametrize("op_type", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_the_first_or_the_last_of_equals_is_found(op_type: str, last: int, keepdims: int) -> None:
    attributes = {"axis": 1, "select_last_index": last, "keepdims": keepdims}
    assert_like_onnxruntime(op_type, TIED, **attributes)
    assert_like_onnxruntime(op_type, TIED.astype(np.uint8), **attributes)


@pytest.mark.parametrize("is_sorted", [0, 1])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_what_occurs_is_told_with_all_that_is_known_of_it(is_sorted: int, axis: int | None) -> None:
    x = np.array([[2, 1, 1, 2], [2, 0, 0, 2], [2, 1, 1, 2]], np.float32)
    attributes = {} if axis is None else {"axis": axis}
    assert_like_onnxruntime("Unique", x, sorted=is_sorted, outputs=4, **attributes)


def test_one_of_the_largest_is_one() -> None:
    assert_like_onnxruntime("Hardmax", TIED, axis=0)
