"""engines/torch/kernels/types.py: arrays as tensors."""

from __future__ import annotations

import numpy as np
import pytest

from mindspore_lite.engines.torch.kernels.types import of_numpy, to_numpy


@pytest.mark.parametrize("array", [np.arange(1.0)[::-1], np.arange(6.0).reshape(2, 3)[:, ::-1]])
def test_an_array_may_go_backwards(array: np.ndarray) -> None:
    # one element is contiguous to NumPy whichever way it goes, so that nobody copies it before
    np.testing.assert_array_equal(to_numpy(of_numpy(array)), array)
