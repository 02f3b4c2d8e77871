"""Turns one protobuf attribute into a Python value or a type record."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from mindspore_lite.dtypes import BY_ONNX, DType
from mindspore_lite.errors import ModelFileError
from mindspore_lite.mindir import mindir_pb2 as pb
from mindspore_lite.mindir.records import (
    Monad,
    OtherType,
    SequenceType,
    Tensor,
    TensorType,
    Type,
)

MAX_DEPTH = 32  # nested tuples; real files stay below 5
MAX_RANK = 32
MAX_EMPTY = 2**31  # product of the other dims of an empty tensor; NumPy ends at 2**63 bytes

_A = pb.Attribute
_INTEGERS = {
    _A.INT8, _A.INT16, _A.INT32, _A.INT64, _A.UINT8, _A.UINT16, _A.UINT32, _A.UINT64,
}  # fmt: skip
_MONADS = {_A.UMONAD: Monad.MEMORY, _A.IOMONAD: Monad.IO}


def dtype_of(number: int, where: str) -> DType:
    """The element type with this number in the file."""
    dtype = BY_ONNX.get(number)
    if dtype is None:
        raise ModelFileError(f"{where} has element type {number}, which is not one we can read")
    return dtype


def tensor(proto: pb.Tensor, data: memoryview | None = None) -> Tensor:
    """A tensor with its data; `data` stands in for raw_data that was cut out beforehand."""
    name = proto.name
    dtype, shape = dtype_of(proto.data_type, f"tensor {name!r}"), checked_shape(proto)
    if proto.compression_type:
        raise ModelFileError(
            f"tensor {name!r} is stored compressed (type {proto.compression_type}); "
            "convert the model without weight compression"
        )
    if data is None:
        data = memoryview(proto.raw_data)
    want = dtype.item_bytes
    for dim in shape:
        want *= dim
    if want != len(data):
        raise ModelFileError(
            f"tensor {name!r} of shape {list(shape)} and type {dtype.name} needs {want} bytes, "
            f"the file holds {len(data)}"
        )
    return Tensor(name, dtype, shape, data)


def checked_shape(proto: pb.Tensor) -> tuple[int, ...]:
    """The dims of a tensor that has data: none negative, not absurdly many or large.

    A 0 among them makes any others possible on disk, but not as an array.
    """
    shape = tuple(proto.dims)
    absurd = len(shape) > MAX_RANK or any(d < 0 for d in shape)
    if absurd or (0 in shape and math.prod(d for d in shape if d) > MAX_EMPTY):
        raise ModelFileError(f"tensor {proto.name!r} has the impossible shape {list(shape)[:40]}")
    return shape


def value(attr: pb.Attribute, depth: int = 0) -> Any:
    """The constant that an attribute holds. Scalars inside tuples use the repeated fields."""
    kind = attr.type
    if kind == _A.BOOL:
        return bool(_scalar(attr, attr.ints, "i"))
    if kind in _INTEGERS:
        return int(_scalar(attr, attr.ints, "i"))
    if kind == _A.FLOAT:
        return float(_scalar(attr, attr.floats, "f"))
    if kind == _A.DOUBLE:
        return float(_scalar(attr, attr.doubles, "d"))
    if kind == _A.STRING:
        return _scalar(attr, attr.strings, "s").decode("utf-8", "replace")
    if kind in (_A.TUPLE, _A.LIST, _A.DICT):
        return _container(attr, depth)
    if kind in _MONADS:
        return _MONADS[kind]
    if kind in (_A.NONE, _A.TYPE_NULL):
        return None
    if kind == _A.TENSORS and (record := _quant_record(attr)) is not None:
        return record
    if kind == _A.TENSORS and len(attr.tensors) == 1:
        first = attr.tensors[0]
        if first.HasField("raw_data") or 0 in first.dims:
            return tensor(first)
        return dtype_of(first.data_type, f"dtype attribute {attr.name!r}")
    if attr.ref_attr_name and not kind:
        raise ModelFileError(
            f"attribute {attr.ref_attr_name!r} uses the encoding of MindSpore 1.6 and older; "
            "load the model with MindSpore 1.7 or newer and export it again"
        )
    raise ModelFileError(f"attribute {attr.name!r} has a value of type {_kind_name(kind)}")


def _scalar(attr: pb.Attribute, repeated: Any, single: str) -> Any:
    if len(repeated) > 1:
        raise ModelFileError(f"attribute {attr.name!r} holds {len(repeated)} scalars, wanted one")
    return repeated[0] if repeated else getattr(attr, single)


def _container(attr: pb.Attribute, depth: int) -> Any:
    if depth >= MAX_DEPTH:
        raise ModelFileError(f"attribute {attr.name!r} is nested deeper than {MAX_DEPTH} levels")
    if attr.type == _A.DICT:
        return {v.name: value(v.values[0], depth + 1) for v in attr.values if v.values}
    items = (value(v, depth + 1) for v in attr.values)
    return tuple(items) if attr.type == _A.TUPLE else list(items)


def _quant_record(attr: pb.Attribute) -> dict[str, Any] | None:
    """How an activation is quantised: hung on a tensor of no type and no data."""
    held = [t for t in attr.tensors if t.quant_params and not t.HasField("raw_data")]
    return values(held[0].quant_params[0].attribute) if held else None


def values(attrs: Iterable[pb.Attribute]) -> dict[str, Any]:
    """The readable ones of many attributes by name.

    Primitives and graphs carry bookkeeping that inference never looks at; what cannot be read is
    left out, and an operator that needs it will say that it is missing.
    """
    out = {}
    for attr in attrs:
        try:
            out[attr.name] = value(attr)
        except ModelFileError:
            continue
    return out


def type_of(attr: pb.Attribute, depth: int = 0) -> Type:
    """The type record that an attribute describes (the "shape" attribute of nodes, attr_info)."""
    if depth >= MAX_DEPTH:
        raise ModelFileError(f"type {attr.name!r} is nested deeper than {MAX_DEPTH} levels")
    kind = attr.type
    if kind in (_A.TENSORS, _A.SCALAR) and attr.tensors:
        return tensor_type(attr.tensors[0], is_scalar=kind == _A.SCALAR)
    if kind in (_A.TUPLE, _A.LIST):
        items = tuple(type_of(v, depth + 1) for v in attr.values)
        return SequenceType(items, attr.seq_info.is_dyn_len)
    return OtherType(_kind_name(kind))


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


def _kind_name(kind: int) -> str:
    return _A.Type.Name(kind) if kind in _A.Type.values() else str(kind)
