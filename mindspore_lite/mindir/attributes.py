"""Turns one protobuf attribute into a Python value or a type record."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from mindspore_lite.errors import ModelFileError
from mindspore_lite.mindir import legacy
from mindspore_lite.mindir import mindir_pb2 as pb
from mindspore_lite.mindir.quant import quant_of
from mindspore_lite.mindir.records import Monad, OtherType, SequenceType, Tensor, Type
from mindspore_lite.mindir.tensors import dtype_of, tensor, tensor_type

MAX_DEPTH = 32  # nested tuples; real files stay below 5

_A = pb.Attribute
_INTEGERS = {
    _A.INT8, _A.INT16, _A.INT32, _A.INT64, _A.UINT8, _A.UINT16, _A.UINT32, _A.UINT64,
}  # fmt: skip
_MONADS = {_A.UMONAD: Monad.MEMORY, _A.IOMONAD: Monad.IO}


def value(attr: pb.Attribute, depth: int = 0) -> Any:
    """The constant that an attribute holds. Scalars inside tuples use the repeated fields."""
    if attr.ref_attr_name:
        return legacy.value(attr)
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
            return quantised(first)
        return dtype_of(first.data_type, f"dtype attribute {attr.name!r}")
    raise ModelFileError(f"attribute {attr.name!r} has a value of type {_kind_name(kind)}")


def quantised(proto: pb.Tensor, data: memoryview | None = None) -> Tensor:
    """A tensor with its data and, where its numbers stand for others, how to tell those."""
    found = tensor(proto, data)
    # converters leave records at weights that they did not quantise in the end
    if not proto.quant_params or "int" not in found.dtype.name:
        return found
    how = proto.quant_params[0]
    try:
        quant = quant_of(how.quant_algo_name, values(how.attribute), found.shape)
    except ModelFileError as exc:
        raise exc.prefixed(f"tensor {proto.name!r}: ") from None
    return replace(found, quant=quant)


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


def type_of(attr: pb.Attribute, depth: int = 0) -> Type | None:
    """The type record that an attribute describes (the "shape" attribute of nodes, attr_info)."""
    if depth >= MAX_DEPTH:
        raise ModelFileError(f"type {attr.name!r} is nested deeper than {MAX_DEPTH} levels")
    if attr.ref_attr_name:
        return legacy.type_of(attr)
    kind = attr.type
    if kind in (_A.TENSORS, _A.SCALAR) and attr.tensors:
        return tensor_type(attr.tensors[0], is_scalar=kind == _A.SCALAR)
    if kind in (_A.TUPLE, _A.LIST):
        items = tuple(type_of(v, depth + 1) or OtherType("") for v in attr.values)
        return SequenceType(items, attr.seq_info.is_dyn_len)
    return OtherType(_kind_name(kind))


def _kind_name(kind: int) -> str:
    return _A.Type.Name(kind) if kind in _A.Type.values() else str(kind)
