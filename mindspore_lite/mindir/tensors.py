"""Turns one protobuf tensor into a record, with its data or only its type."""

from __future__ import annotations

import math

from mindspore_lite.core.dtypes import BY_NAME, BY_ONNX, DType
from mindspore_lite.errors import ModelFileError
from mindspore_lite.mindir import mindir_pb2 as pb
from mindspore_lite.mindir.quant import unpacked_int4
from mindspore_lite.mindir.records import Tensor, TensorType

MAX_RANK = 32
MAX_EMPTY = 2**31  # product of the other dims of an empty tensor; NumPy ends at 2**63 bytes
_INT4 = 18  # two per byte; no type of its own from here on


def utf8(value: str) -> str:
    """A text of the file; protobuf hands out bytes where it is no UTF-8."""
    if not isinstance(value, str):
        raise ModelFileError(f"the text {value!r} in the file is not valid UTF-8")
    return value


def dtype_of(number: int, where: str) -> DType:
    """The element type with this number in the file."""
    dtype = BY_ONNX.get(number)
    if dtype is None:
        raise ModelFileError(f"{where} has element type {number}, which is not one we can read")
    return dtype


def tensor(proto: pb.Tensor, data: memoryview | None = None) -> Tensor:
    """A tensor with its data; `data` stands in for raw_data that was cut out beforehand."""
    name = proto.name
    packed = proto.data_type == _INT4
    dtype = BY_NAME["int8"] if packed else dtype_of(proto.data_type, f"tensor {name!r}")
    shape = checked_shape(proto)
    if proto.compression_type:
        raise ModelFileError(
            f"tensor {name!r} is stored compressed (type {proto.compression_type}); "
            "convert the model without weight compression"
        )
    if data is None:
        data = memoryview(proto.raw_data)
    want = dtype.item_bytes * math.prod(shape)
    if packed and len(data) in (want, (want + 1) // 2):
        numbers, shape = unpacked_int4(data, shape)
        return Tensor(name, dtype, shape, memoryview(numbers.tobytes()))
    if want != len(data):
        raise ModelFileError(
            f"tensor {name!r} of shape {list(shape)} and type {dtype.name} needs {want} bytes, "
            f"the file holds {len(data)}"
        )
    return Tensor(name, dtype, shape, data)


def checked_shape(proto: pb.Tensor) -> tuple[int, ...]:
    """The dims of a tensor that has data: none negative, not absurdly many or large."""
    shape = tuple(proto.dims)
    if impossible(shape):
        raise ModelFileError(f"tensor {proto.name!r} has the impossible shape {list(shape)[:40]}")
    return shape


def impossible(shape: tuple[int, ...]) -> bool:
    """Whether no array can have this shape.

    A 0 among the dims makes any others possible on disk, but not as an array.
    """
    if len(shape) > MAX_RANK or any(d < 0 for d in shape):
        return True
    return 0 in shape and math.prod(d for d in shape if d) > MAX_EMPTY


def tensor_type(proto: pb.Tensor, *, is_scalar: bool = False) -> TensorType:
    """The type of a tensor value; [-2] is an unknown rank."""
    dtype = dtype_of(proto.data_type, f"value {proto.name!r}")
    if is_scalar:
        return TensorType(dtype, (), is_scalar=True)
    dims = tuple(proto.dims)
    if dims == (-2,):
        return TensorType(dtype, None, ref_key=proto.ref_key)
    if len(dims) > MAX_RANK or any(d < -1 for d in dims):
        raise ModelFileError(f"value {proto.name!r} has the impossible shape {list(dims)[:40]}")
    return TensorType(dtype, dims, ref_key=proto.ref_key)
