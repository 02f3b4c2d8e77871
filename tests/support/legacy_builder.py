"""Writes files as MindSpore 1.1 to 1.6 did, from the records that mindir_builder makes.

What differs from later files: no table of primitives, operators named on their nodes with their
attributes beside them, and `ref_attr_name` saying how each attribute is to be read.
"""

from __future__ import annotations

import itertools
from typing import Any

from mindspore_lite.core import dtypes
from mindspore_lite.mindir import mindir_pb2 as pb
from mindspore_lite.mindir import records as r

_A = pb.Attribute


def encode_legacy(model: r.Model, version: str = "1.5.0") -> bytes:
    """The bytes that an old release would have written."""
    proto = pb.Model(ir_version="0.1.0", producer_name="MindSpore", model_version=version)
    _fill_graph(proto.graph, model.graph)
    for graph in model.functions.values():
        _fill_graph(proto.functions.add(), graph)
    return proto.SerializeToString()


def _fill_graph(proto: pb.Graph, graph: r.Graph) -> None:
    proto.name = graph.name
    for weight in graph.parameters:
        added = proto.parameter.add(name=weight.name, raw_data=bytes(weight.data))
        added.data_type = weight.dtype.onnx
        added.dims.extend(weight.shape)
    for declared in graph.inputs:
        info = proto.input.add(name=declared.name)
        if isinstance(declared.type, r.TensorType):
            info.tensor.add(data_type=declared.type.dtype.onnx, dims=_dims(declared.type))
        elif isinstance(declared.type, r.SequenceType):
            info.denotation = f"Tuple:{len(declared.type.items)}"
        else:
            info.denotation = declared.type.kind
    for node in graph.nodes:
        made = proto.node.add(name=node.name, output=[node.name])
        if isinstance(node, r.Constant):
            made.op_type = "Constant"
            legacy_value(made.attribute.add(name="value"), node.value)
        else:
            _fill_call(made, node)
    for name in graph.outputs:
        proto.output.add(name=name)


def _fill_call(proto: pb.Node, node: r.Call) -> None:
    proto.input.extend(node.inputs)
    proto.domain = node.scope
    is_primitive = isinstance(node.target, r.Primitive)
    proto.op_type = node.target.op if is_primitive else f"REF::{node.target.name}"
    if node.type is not None:
        shape = proto.attribute.add()  # it has no name
        shape.ref_attr_name = "shape:" + _shape_text(shape, node.type, itertools.count(1))
    if is_primitive:
        for name, value in node.target.attributes.items():
            legacy_value(proto.attribute.add(name=name), value)


def _shape_text(attr: pb.Attribute, kind: r.Type, numbers: Any) -> str:
    if isinstance(kind, r.SequenceType):
        return f"Tuple[{''.join(_shape_text(attr, item, numbers) for item in kind.items)}],"
    if isinstance(kind, r.OtherType):
        return f"{kind.kind},"
    if kind.is_scalar and kind.dtype.name == "bool":  # leaves no trace but this
        attr.type = _A.BOOL
        return ""
    name = f"shape{next(numbers)}"
    if kind.is_scalar:  # a number of any type
        attr.tensors.add(name=name, data_type=dtypes.BY_NAME["uint64"].onnx, dims=[1])
    else:
        attr.tensors.add(name=name, data_type=kind.dtype.onnx, dims=_dims(kind))
    return f"{name},"


def _dims(kind: r.TensorType) -> tuple[int, ...]:
    return (-2,) if kind.shape is None else kind.shape


def legacy_value(attr: pb.Attribute, value: Any) -> None:
    """One constant or attribute."""
    if value is None:
        attr.ref_attr_name = "none"
    elif isinstance(value, r.Monad):
        attr.ref_attr_name = f"Monad:{value.value}"
    elif isinstance(value, r.Tensor | dtypes.DType):
        attr.ref_attr_name = "tensor:value0" if isinstance(value, r.Tensor) else "type:value0"
        _add_tensor(attr, value)
    elif isinstance(value, tuple | list):
        attr.type = _A.TENSORS
        attr.ref_attr_name = "scalar:" + _sequence_text(attr, value, itertools.count(1))
    else:
        attr.ref_attr_name = "scalar:value0"
        kind, single, _ = _scalar(value)
        attr.type = kind
        setattr(attr, single, _raw(value))


def _sequence_text(attr: pb.Attribute, values: tuple[Any, ...] | list[Any], numbers: Any) -> str:
    text = "Tuple[" if isinstance(values, tuple) else "List["
    for value in values:
        if type(value) is type(values):
            text += _sequence_text(attr, value, numbers)
            continue
        text += f"value{next(numbers)},"
        if isinstance(value, r.Tensor | dtypes.DType):
            _add_tensor(attr, value)
        else:
            kind, _, repeated = _scalar(value)
            attr.type = kind  # each item overwrites that of the one before
            getattr(attr, repeated).append(_raw(value))
    return text + "],"


def _add_tensor(attr: pb.Attribute, value: r.Tensor | dtypes.DType) -> None:
    attr.type = _A.TENSORS
    if isinstance(value, r.Tensor):
        added = attr.tensors.add(name="value0", raw_data=bytes(value.data))
        added.data_type = value.dtype.onnx
        added.dims.extend(value.shape)
    else:
        attr.tensors.add(name="value0", data_type=value.onnx)


_SCALARS = {
    bool: (_A.BOOL, "i", "ints"),
    int: (_A.INT64, "i", "ints"),
    float: (_A.FLOAT, "f", "floats"),
    str: (_A.STRING, "s", "strings"),
}


def _scalar(value: Any) -> tuple[int, str, str]:
    return _SCALARS[type(value)]


def _raw(value: bool | int | float | str) -> int | float | bytes:
    if isinstance(value, str):
        return value.encode()
    return int(value) if isinstance(value, bool) else value
