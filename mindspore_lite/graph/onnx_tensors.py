"""Checks the sizes and places of an ONNX file's tensors before anything relies on them."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from mindspore_lite.core.snapshot import Unread, excerpt
from mindspore_lite.errors import ModelFileError
from mindspore_lite.graph import onnx_places
from mindspore_lite.graph.onnx_scan import Split
from mindspore_lite.mindir.scan import Data, Span
from mindspore_lite.mindir.tensors import impossible
from mindspore_lite.ops.unread import UnreadTensor

_COMPLEX = (ir.DataType.COMPLEX64, ir.DataType.COMPLEX128)


def check_tensors(
    model: onnx.ModelProto, split: Split, side: Mapping[str, Data]
) -> dict[int, memoryview | Unread]:
    """Refuse tensors whose bytes do not fill their shape, and what onnx-ir would leave out.

    Args:
        model: The model; afterwards no tensor in it names a file.
        split: What was cut out of it.
        side: The content of its data files.

    Returns:
        The bytes of weights that lie in data files, by their number.
    """
    for part in onnx_places.structure(model):
        if isinstance(part, onnx.GraphProto):
            _check_names(part)
        else:
            _check_attribute(part)
    outside: dict[int, memoryview | Unread] = {}
    used = _Used()
    for number, (tensor, is_weight, span) in enumerate(onnx_places.tensors(model, split)):
        dtype = _check_type(tensor)
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            _check_size(tensor, dtype, span)
            continue
        if not is_weight:
            raise ModelFileError(
                f"tensor {tensor.name!r} lies in a data file, but is no weight of the main graph; "
                "only those may: save the model with its other tensors inside"
            )
        outside[number] = _outside(tensor, dtype, side, used)
        tensor.ClearField("external_data")
        tensor.ClearField("data_location")
    used.check()
    return outside


def put_back(
    model: ir.Model,
    proto: onnx.ModelProto,
    split: Split,
    data: Data,
    outside: Mapping[int, memoryview | Unread],
) -> None:
    """Give the tensors that were cut out of the file, or lie outside of it, their bytes."""
    found = {n: excerpt(data, *span) for n, span in split.weights.items()} | dict(outside)
    for number, raw in found.items():
        weight = proto.graph.initializer[number]
        model.graph.initializers[weight.name].const_value = _tensor(weight, raw)
    if not split.constants:
        return
    nodes = list(model.graph)
    for (number, index), span in split.constants.items():
        attribute = proto.graph.node[number].attribute[index]
        if attribute.type == onnx.AttributeProto.TENSOR:
            held = ir.AttrTensor(attribute.name, _tensor(attribute.t, excerpt(data, *span)))
            nodes[number].attributes[attribute.name] = held


def _tensor(proto: onnx.TensorProto, raw: memoryview | Unread) -> ir.TensorProtocol:
    dtype, dims = ir.DataType(proto.data_type), list(proto.dims)
    words: dict[str, Any] = {
        "name": proto.name,
        "doc_string": proto.doc_string or None,
        "metadata_props": {entry.key: entry.value for entry in proto.metadata_props},
    }
    if isinstance(raw, Unread):
        if dtype.bitwidth >= 8:
            return UnreadTensor(raw, dtype, dims, **words)
        raw = raw.read()
    if dtype.bitwidth < 8:
        return ir.PackedTensor(np.frombuffer(raw, np.uint8), dtype, shape=dims, **words)
    return ir.Tensor(np.frombuffer(raw, dtype.numpy()).reshape(dims), dtype, **words)


def _check_type(proto: onnx.TensorProto) -> ir.DataType:
    shape = tuple(proto.dims)
    if impossible(shape):
        raise ModelFileError(f"tensor {proto.name!r} has the impossible shape {list(shape)[:40]}")
    try:
        onnx.helper.tensor_dtype_to_field(proto.data_type)
        return ir.DataType(proto.data_type)
    except (KeyError, ValueError):
        raise ModelFileError(
            f"tensor {proto.name!r} has element type {proto.data_type}, which is not one of ONNX"
        ) from None


def _check_size(proto: onnx.TensorProto, dtype: ir.DataType, span: Span | None) -> None:
    raw = span is not None or proto.HasField("raw_data")
    want = _wanted(dtype, math.prod(proto.dims), raw)
    field = "raw_data" if raw else onnx.helper.tensor_dtype_to_field(proto.data_type)
    got = span[1] - span[0] if span else len(getattr(proto, field))
    if got != want:
        raise ModelFileError(
            f"tensor {proto.name!r} of shape {list(proto.dims)} and type {dtype.name} needs {want} "
            f"{'bytes' if raw else 'numbers'}, the file holds {got}"
        )


def _outside(
    proto: onnx.TensorProto, dtype: ir.DataType, side: Mapping[str, Data], used: _Used
) -> memoryview | Unread:
    """The bytes of a weight that lies in a data file."""
    if dtype == ir.DataType.STRING:
        raise ModelFileError(f"tensor {proto.name!r} holds texts, which no external data can")
    entries: dict[str, str] = {}
    for entry in proto.external_data:
        if entry.key in entries:
            raise ModelFileError(f"tensor {proto.name!r} says twice what its {entry.key!r} is")
        entries[entry.key] = entry.value
    for key in ("offset", "length"):
        if not re.fullmatch(r"[0-9]{1,19}", entries.setdefault(key, "0"), re.ASCII):
            raise ModelFileError(
                f"tensor {proto.name!r} has external data of {key} {entries[key][:40]!r}, "
                "wanted a whole number"
            )
    location = entries.get("location", "")
    data = side.get(location)
    if data is None:  # the scan has seen other names: the file is not what it seems
        raise ModelFileError(f"tensor {proto.name!r} lies in {location[:200]!r}, which is not open")
    need = _wanted(dtype, math.prod(proto.dims), raw=True)
    offset, length = int(entries["offset"]), int(entries["length"]) or need
    if length != need or offset + length > len(data):
        raise ModelFileError(
            f"{proto.name!r} wants {need} bytes at {offset} of a data file of {len(data)} bytes, "
            f"and says {length}"
        )
    used.add(location, offset, length, proto.name)
    return excerpt(data, offset, offset + length)


class _Used:
    """Which parts of data files are weights: two may share one, but none may reach into another."""

    def __init__(self) -> None:
        self._parts: list[tuple[str, int, int, str]] = []

    def add(self, location: str, start: int, length: int, name: str) -> None:
        """Note the place of a weight."""
        if length:
            self._parts.append((location, start, start + length, name))

    def check(self) -> None:
        """Compare all of them."""
        self._parts.sort()
        for before, after in itertools.pairwise(self._parts):
            apart = before[0] != after[0] or before[2] <= after[1]
            if not apart and before[1:3] != after[1:3]:
                raise ModelFileError(
                    f"weights {before[3]!r} and {after[3]!r} overlap in the data file "
                    f"{after[0][:200]!r}; the offsets of the model are wrong"
                )


def _wanted(dtype: ir.DataType, count: int, raw: bool) -> int:
    """How many bytes, or else numbers of a typed field, so many elements take."""
    if dtype == ir.DataType.STRING:
        return 0 if raw else count
    if raw or dtype.bitwidth in (2, 4):  # also in a typed field several share a number of 8 bits
        return (count * dtype.bitwidth + 7) // 8
    return count * (2 if dtype in _COMPLEX else 1)


# the field that must be there for an attribute of a type
_FIELDS = {
    onnx.AttributeProto.TENSOR: "t",
    onnx.AttributeProto.GRAPH: "g",
    onnx.AttributeProto.SPARSE_TENSOR: "sparse_tensor",
    onnx.AttributeProto.TYPE_PROTO: "tp",
}


def _check_attribute(attribute: onnx.AttributeProto) -> None:
    """onnx-ir makes an empty tensor or graph where there is none."""
    field = _FIELDS.get(attribute.type)
    if field is not None and not attribute.ref_attr_name and not attribute.HasField(field):
        kind = onnx.AttributeProto.AttributeType.Name(attribute.type)
        raise ModelFileError(f"attribute {attribute.name[:200]!r} of type {kind} holds none")


def _check_names(graph: onnx.GraphProto) -> None:
    """onnx-ir leaves out what has no name or is sparse, and takes the last of two."""
    if graph.sparse_initializer:
        name = graph.sparse_initializer[0].values.name
        raise ModelFileError(f"weight {name!r} is stored sparse, which is not supported")
    seen: set[str] = set()
    for weight in graph.initializer:
        if not weight.name:
            raise ModelFileError("a weight has no name")
        if weight.name in seen:
            raise ModelFileError(f"two weights have the name {weight.name!r}")
        seen.add(weight.name)
