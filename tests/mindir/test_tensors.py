"""mindir/tensors.py: tensors and their types, and everything that can be wrong with them."""

from __future__ import annotations

import numpy as np
import pytest

from mindspore_lite.core.dtypes import BY_NAME
from mindspore_lite.errors import ModelFileError
from mindspore_lite.mindir import mindir_pb2 as pb
from mindspore_lite.mindir.tensors import tensor, tensor_type


def test_the_second_name_of_float64_is_read() -> None:
    proto = pb.Tensor(data_type=17, dims=[], raw_data=np.float64(0.5).tobytes())
    found = tensor(proto)
    assert (found.numpy().item(), found.shape) == (0.5, ())


WRONG_TENSORS = [
    (pb.Tensor(data_type=1, dims=[2, 3], raw_data=b"\0" * 23),
     "tensor 't' of shape [2, 3] and type float32 needs 24 bytes, the file holds 23"),
    (pb.Tensor(data_type=1, dims=[2, 3], raw_data=b"\0" * 25), "needs 24 bytes, the file holds 25"),
    (pb.Tensor(data_type=1, dims=[], raw_data=b""), "needs 4 bytes, the file holds 0"),
    (pb.Tensor(data_type=1, dims=[0], raw_data=b"\0"), "needs 0 bytes, the file holds 1"),
    (pb.Tensor(data_type=1, dims=[-1, 3], raw_data=b""), "impossible shape [-1, 3]"),
    (pb.Tensor(data_type=1, dims=[-2], raw_data=b""), "impossible shape [-2]"),
    (pb.Tensor(data_type=1, dims=[1] * 33, raw_data=b"\0" * 4), "impossible shape [1, 1"),
    (pb.Tensor(data_type=1, dims=[1] * 100_000, raw_data=b"\0" * 4), "impossible shape [1, 1"),
    (pb.Tensor(data_type=1, dims=[2**62, 2**62], raw_data=b"\0" * 16), "the file holds 16"),
    (pb.Tensor(data_type=11, dims=[2**61], raw_data=b""), f"needs {2**64} bytes"),
    (pb.Tensor(data_type=1, dims=[0, 2**62], raw_data=b""), "impossible shape [0, 4611686018"),
    (pb.Tensor(data_type=99, dims=[1], raw_data=b"\0"), "tensor 't' has element type 99"),
    (pb.Tensor(data_type=0, dims=[1], raw_data=b"\0"), "tensor 't' has element type 0"),
    (pb.Tensor(data_type=18, dims=[3], raw_data=b"\0"), "needs 3 bytes, the file holds 1"),
    (pb.Tensor(data_type=18, dims=[2**62], raw_data=b"\0" * 4), "the file holds 4"),
    (pb.Tensor(data_type=1, dims=[1], raw_data=b"\0" * 4, compression_type=3),
     "stored compressed (type 3); convert the model without weight compression"),
]  # fmt: skip


@pytest.mark.parametrize(("proto", "words"), WRONG_TENSORS, ids=[w for _, w in WRONG_TENSORS])
def test_a_tensor_that_cannot_be_right_is_refused(proto: pb.Tensor, words: str) -> None:
    proto.name = "t"
    with pytest.raises(ModelFileError) as caught:
        tensor(proto)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("proto", "words"),
    [
        (pb.Tensor(name="v", data_type=1, dims=[-3]), "value 'v' has the impossible shape [-3]"),
        (pb.Tensor(name="v", data_type=1, dims=[-2, 1]), "impossible shape [-2, 1]"),
        (pb.Tensor(name="v", data_type=1, dims=[1] * 33), "impossible shape"),
        (pb.Tensor(name="v", data_type=77), "value 'v' has element type 77"),
    ],
)
def test_a_type_that_cannot_be_right_is_refused(proto: pb.Tensor, words: str) -> None:
    with pytest.raises(ModelFileError) as caught:
        tensor_type(proto)
    assert words in str(caught.value)


INT4 = bytes([0x10, 0xF2, 0x8F])  # 0 1, 2 -1, -1 -8


@pytest.mark.parametrize(
    ("dims", "shape", "wanted"),
    [
        ([1, 3], (1, 6), [0, 1, 2, -1, -1, -8]),  # dims count bytes
        ([2, 3], (2, 3), [0, 1, 2, -1, -1, -8]),  # dims count numbers
        ([5], (5,), [0, 1, 2, -1, -1]),
    ],
)
def test_packed_int4_becomes_int8(
    dims: list[int], shape: tuple[int, ...], wanted: list[int]
) -> None:
    found = tensor(pb.Tensor(data_type=18, dims=dims, raw_data=INT4))
    assert found.dtype is BY_NAME["int8"]
    assert found.shape == shape
    assert found.numpy().reshape(-1).tolist() == wanted
