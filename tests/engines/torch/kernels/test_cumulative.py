"""engines/torch/kernels/cumulative.py, against ONNX Runtime and NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.torch_nodes import assert_like_onnxruntime

from mindspore_lite.engines.torch.kernels.table import KERNELS

X = np.array([[1, 2, 3], [4, 5, 6]])


@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
def test_sums_go_from_either_end_with_and_without_the_element(
    reverse: int, exclusive: int, dtype: type
) -> None:
    for axis in (0, -1):
        assert_like_onnxruntime(
            "CumSum", X.astype(dtype), np.array(axis), reverse=reverse, exclusive=exclusive
        )


def test_an_empty_axis_has_no_sums() -> None:
    assert_like_onnxruntime("CumSum", np.zeros((2, 0), np.float32), np.array(1), exclusive=1)


def test_products_begin_with_one() -> None:
    compute = KERNELS["", "CumProd"].compute
    assert compute(torch.tensor([2, 3, 4]), 0).tolist() == [2, 6, 24]
    assert compute(torch.tensor([2, 3, 4]), [0], exclusive=1, reverse=1).tolist() == [12, 4, 1]
