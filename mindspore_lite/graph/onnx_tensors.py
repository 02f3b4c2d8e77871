"""Tensors of an ONNX file, before anything relies on them: their sizes checked, big ones mapped."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from mindspore_lite.errors import ModelFileError
from mindspore_lite.graph.onnx_scan import Split
from mindspore_lite.mindir.scan import Span
from mindspore_lite.mindir.tensors import impossible

_COMPLEX = (ir.DataType.COMPLEX64, ir.DataType.COMPLEX128)


def check_tensors(model: onnx.ModelProto, split: Split) -> None:
    """Refuse tensors whose bytes do not fill their shape, and what onnx-ir would leave out."""
    _check_names(model.graph)
    for number, weight in enumerate(model.graph.initializer):
        _check(weight, split.weights.get(number))
    for number, node in enumerate(model.graph.node):
        for index, attribute in enumerate(node.attribute):
            for tensor in _tensors(attribute):
                _check(tensor, split.constants.get((number, index)))
    for function in model.functions:
        for node in function.node:
            for attribute in node.attribute:
                for tensor in _tensors(attribute):
                    _check(tensor)


def put_back(model: ir.Model, proto: onnx.ModelProto, split: Split, data: memoryview) -> None:
    """Give the tensors that were cut out of the file their bytes, which stay mapped."""
    for number, span in split.weights.items():
        weight = proto.graph.initializer[number]
        if not _is_external(weight):
            model.graph.initializers[weight.name].const_value = _mapped(weight, data, span)
    if not split.constants:
        return
    nodes = list(model.graph)
    for (number, index), span in split.constants.items():
        attribute = proto.graph.node[number].attribute[index]
        if attribute.type == onnx.AttributeProto.TENSOR and not _is_external(attribute.t):
            held = ir.AttrTensor(attribute.name, _mapped(attribute.t, data, span))
            nodes[number].attributes[attribute.name] = held


def _mapped(proto: onnx.TensorProto, data: memoryview, span: Span) -> ir.TensorProtocol:
    dtype, dims = ir.DataType(proto.data_type), list(proto.dims)
    raw = data[span[0] : span[1]]
    words: dict[str, Any] = {
        "name": proto.name,
        "doc_string": proto.doc_string or None,
        "metadata_props": {entry.key: entry.value for entry in proto.metadata_props},
    }
    if dtype.bitwidth < 8:
        return ir.PackedTensor(np.frombuffer(raw, np.uint8), dtype, shape=dims, **words)
    return ir.Tensor(np.frombuffer(raw, dtype.numpy()).reshape(dims), dtype, **words)


def _check(proto: onnx.TensorProto, span: Span | None = None) -> None:
    shape = tuple(proto.dims)
    if impossible(shape):
        raise ModelFileError(f"tensor {proto.name!r} has the impossible shape {list(shape)[:40]}")
    try:
        dtype = ir.DataType(proto.data_type)
        field = onnx.helper.tensor_dtype_to_field(proto.data_type)
    except (KeyError, ValueError):
        raise ModelFileError(
            f"tensor {proto.name!r} has element type {proto.data_type}, which is not one of ONNX"
        ) from None
    if _is_external(proto):  # its file is looked at where the folder is known
        _check_place(proto, dtype)
        return
    raw = span is not None or proto.HasField("raw_data")
    want = _wanted(dtype, math.prod(shape), raw)
    got = span[1] - span[0] if span else len(proto.raw_data if raw else getattr(proto, field))
    if got != want:
        raise ModelFileError(
            f"tensor {proto.name!r} of shape {list(shape)} and type {dtype.name} needs {want} "
            f"{'bytes' if raw else 'numbers'}, the file holds {got}"
        )


def _check_place(proto: onnx.TensorProto, dtype: ir.DataType) -> None:
    """What onnx-ir would stumble over; where the place is, is looked at later."""
    if dtype == ir.DataType.STRING:
        raise ModelFileError(f"tensor {proto.name!r} holds texts, which no external data can")
    for entry in proto.external_data:
        if entry.key in ("offset", "length") and not re.fullmatch(r"[0-9]{1,19}", entry.value):
            raise ModelFileError(
                f"tensor {proto.name!r} has external data of {entry.key} {entry.value[:40]!r}, "
                "wanted a whole number"
            )


def _wanted(dtype: ir.DataType, count: int, raw: bool) -> int:
    """How many bytes, or else numbers of a typed field, so many elements take."""
    if dtype == ir.DataType.STRING:
        return 0 if raw else count
    if raw or dtype.bitwidth in (2, 4):  # also in a typed field several share a number of 8 bits
        return (count * dtype.bitwidth + 7) // 8
    return count * (2 if dtype in _COMPLEX else 1)


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


def _tensors(attribute: onnx.AttributeProto) -> Iterator[onnx.TensorProto]:
    """The tensors in an attribute, those of graphs inside of it included."""
    if attribute.HasField("t"):
        yield attribute.t
    yield from attribute.tensors
    for graph in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
        _check_names(graph)
        yield from graph.initializer
        for node in graph.node:
            for inner in node.attribute:
                yield from _tensors(inner)


def _is_external(proto: onnx.TensorProto) -> bool:
    return bool(proto.data_location == onnx.TensorProto.EXTERNAL)
