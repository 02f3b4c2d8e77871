"""engines/torch/kernels/cast.py: what the node tests of onnx leave out."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.torch_nodes import assert_like_onnxruntime

from mindspore_lite.core.dtypes import BY_NAME
from mindspore_lite.engines.torch.kernels.cast import bit_cast, cast
from mindspore_lite.errors import UnsupportedOpError

NUMBERS = np.array([0, 1, 2.5, 3.999, 100])
TYPES = ["bool", "int8", "uint8", "uint16", "uint32", "uint64", "int32", "int64", "float16"]


@pytest.mark.parametrize("to", ["bool", "uint16", "uint64", "float16"])
@pytest.mark.parametrize("dtype", [*TYPES, "float32", "float64"])
def test_each_type_becomes_another(dtype: str, to: str) -> None:
    assert_like_onnxruntime("Cast", NUMBERS.astype(dtype), to=BY_NAME[to].onnx)


def test_integers_are_cut_to_their_last_bits() -> None:
    assert_like_onnxruntime("Cast", np.array([300, -1, 65536]), to=BY_NAME["uint8"].onnx)


def test_bits_are_read_as_another_type_of_the_same_size() -> None:
    assert bit_cast(torch.tensor([1.0]), to=BY_NAME["int32"].onnx).tolist() == [0x3F800000]
    with pytest.raises(UnsupportedOpError, match="another size"):
        bit_cast(torch.tensor([1.0]), to=BY_NAME["int64"].onnx)


def test_a_type_that_torch_lacks_is_refused() -> None:
    with pytest.raises(UnsupportedOpError, match="no element type for ONNX type 8"):
        cast(torch.tensor([1.0]), to=8)
