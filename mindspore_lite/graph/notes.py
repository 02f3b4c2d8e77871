"""What our own files say beyond MindIR, in an attribute that MindSpore ignores."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError

from mindspore_lite.core.json_text import read_json
from mindspore_lite.errors import ModelFileError
from mindspore_lite.graph.parameters import Parameter

NOTES = "mslite"  # the attribute's name; its value is JSON

DimNames = Mapping[str, Sequence[int | str | None]]


@dataclass(frozen=True)
class Notes:
    """What MindIR has no field for."""

    writer: str = ""
    dims: DimNames = field(default_factory=dict)  # of inputs and outputs with open dims
    types: Mapping[str, str] = field(default_factory=dict)  # of inputs that are no MindIR tensors
    values: DimNames = field(default_factory=dict)  # of nodes, as far as inputs have these dims
    border: str = ""  # the metadata about element types that only the model's border has
    parameters: Mapping[str, Parameter] = field(default_factory=dict)  # of weights, by their names


def write_notes(notes: Notes) -> str:
    """The attribute's value."""
    held = asdict(notes)
    if not held["parameters"]:  # most files need none
        del held["parameters"]
    return json.dumps(held, sort_keys=True)


def read_notes(text: Any) -> Notes:
    """What the attribute says; one that makes no sense says nothing."""
    try:
        found = read_json(text)
        return Notes(
            writer=str(found["writer"]),
            dims={str(key): list(dims) for key, dims in found["dims"].items()},
            types={str(key): str(kind) for key, kind in found["types"].items()},
            values={
                str(key): [None if dim is None else str(dim) for dim in dims]
                for key, dims in found.get("values", {}).items()
            },
            border=str(found["border"]),
            parameters={
                str(key): _parameter(row) for key, row in found.get("parameters", {}).items()
            },
        )
    except (TypeError, ValueError, LookupError, AttributeError):
        return Notes()


def _parameter(row: Mapping[str, Any]) -> Parameter:
    transposed = row["transposed"]
    return Parameter(str(row["name"]), transposed if isinstance(transposed, bool) else None)


def type_text(value: ir.Value) -> str:
    """The ONNX type of a value, to be kept in the notes."""
    held = ir.serde.serialize_value(value).type.SerializeToString()
    return base64.b64encode(held).decode()


def value_of(name: str, text: str) -> ir.Value:
    """A value of the type that the notes say."""
    try:
        kind = onnx.TypeProto.FromString(base64.b64decode(text, validate=True))
        proto = onnx.ValueInfoProto(name=name, type=kind)
        return ir.serde.deserialize_value_info_proto(proto, None)
    except (ValueError, DecodeError, TypeError, KeyError) as exc:
        raise ModelFileError(f"the type of input {name!r} makes no sense") from exc
