"""Turns records into the protobuf messages of a MindIR file, as MindSpore 2.10 reads them.

The weights of the main graph are left out: mindir/write.py streams those past protobuf.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mindspore_lite.core.dtypes import DType
from mindspore_lite.mindir import mindir_pb2 as pb
from mindspore_lite.mindir.records import (
    Call,
    Constant,
    Graph,
    Input,
    Model,
    Monad,
    Node,
    OtherType,
    Primitive,
    SequenceType,
    Tensor,
    TensorType,
    Type,
)

_A = pb.Attribute
_MONADS = {Monad.MEMORY: _A.UMONAD, Monad.IO: _A.IOMONAD}
_SCALARS: dict[type, tuple[_A.Type, str, str]] = {  # type number, its field, and that in a tuple
    bool: (_A.BOOL, "i", "ints"),
    int: (_A.INT64, "i", "ints"),
    float: (_A.FLOAT, "f", "floats"),
    str: (_A.STRING, "s", "strings"),
}


def skeleton(model: Model) -> pb.Model:
    """The whole model but for the weights of its main graph."""
    proto = pb.Model(
        ir_version=model.ir_version,
        producer_name=model.producer,
        model_version=model.producer_version,
        little_endian=True,
        mind_ir_version=model.mind_ir_version,
        user_info=dict(model.user_info),
    )
    names = _PrimitiveNames(proto)
    _fill_graph(proto.graph, model.graph, names)
    for graph in model.functions.values():
        _fill_graph(proto.functions.add(), graph, names)
    return proto


def tensor(proto: pb.Tensor, value: Tensor, *, with_data: bool = True) -> pb.Tensor:
    """Fill in a weight or constant; without its data where that is written elsewhere."""
    proto.name = value.name
    proto.data_type = value.dtype.onnx
    proto.dims.extend(value.shape)
    if with_data:
        proto.raw_data = bytes(value.view())
    return proto


class _PrimitiveNames:
    """The operators of a file; equal ones without attributes are stored once."""

    def __init__(self, model: pb.Model) -> None:
        self.model = model
        self.plain: dict[str, str] = {}

    def name(self, primitive: Primitive) -> str:
        if not primitive.attributes and primitive.op in self.plain:
            return self.plain[primitive.op]
        name = f"{primitive.op}:{len(self.model.primitives)}"
        proto = self.model.primitives.add(name=name, op_type=primitive.op)
        for key, item in primitive.attributes.items():
            value(proto.attribute.add(name=key), item)
        if not primitive.attributes:
            self.plain[primitive.op] = name
        return name


def _fill_graph(proto: pb.Graph, graph: Graph, names: _PrimitiveNames) -> None:
    proto.name = graph.name
    types: dict[str, Type | None] = {i.name: i.type for i in graph.inputs}
    for declared in graph.inputs:
        _fill_input(proto.input.add(name=declared.name), declared)
    for node in graph.nodes:
        _fill_node(proto.node.add(), node, names)
        types[node.name] = node.type if isinstance(node, Call) else None
    for index, name in enumerate(graph.outputs):
        info = proto.output.add(name=name)
        kind = types.get(name)
        given = graph.given_outputs[index] if graph.given_outputs else ""
        if isinstance(kind, TensorType) and not kind.is_scalar:
            _fill_tensor_type(info.tensor.add(name=given), kind)
        elif given:
            info.tensor.add(name=given)
    for key, item in graph.attributes.items():
        value(proto.attribute.add(name=key), item)


def _fill_input(info: pb.ValueInfo, declared: Input) -> None:
    if isinstance(declared.type, TensorType) and not declared.type.is_scalar:
        _fill_tensor_type(info.tensor.add(name=declared.given_name), declared.type)
    elif isinstance(declared.type, OtherType):
        info.denotation = declared.type.kind
    else:
        type_of(info.attr_info, declared.type)


def _fill_node(proto: pb.Node, node: Node, names: _PrimitiveNames) -> None:
    proto.name = node.name
    proto.output.append(node.name)
    if isinstance(node, Constant):
        proto.op_type = "Constant"
        value(proto.attribute.add(name="value"), node.value)
        return
    proto.input.extend(node.inputs)
    proto.domain = node.scope
    called = names.name(node.target) if isinstance(node.target, Primitive) else node.target.name
    proto.op_type = f"REF::{called}"
    if node.type is not None:
        type_of(proto.attribute.add(name="shape"), node.type)


def value(attr: pb.Attribute, item: Any, *, inside: bool = False) -> None:
    """Fill in a constant: scalars use the singular fields, inside tuples the repeated ones."""
    if isinstance(item, Monad):
        attr.type = _MONADS[item]
    elif item is None:
        attr.type = _A.NONE
    elif isinstance(item, Tensor):
        attr.type = _A.TENSORS
        tensor(attr.tensors.add(), item)
    elif isinstance(item, DType):
        attr.type = _A.TENSORS
        attr.tensors.add(data_type=item.onnx)
    elif isinstance(item, Mapping) and "scale_list" in item:
        _fill_quant_record(attr, item)
    elif isinstance(item, Mapping):
        attr.type = _A.DICT
        for key, part in item.items():
            value(attr.values.add(name=key).values.add(), part, inside=True)
    elif isinstance(item, tuple | list):
        attr.type = _A.TUPLE if isinstance(item, tuple) else _A.LIST
        for part in item:
            value(attr.values.add(), part, inside=True)
    else:
        _fill_scalar(attr, item, inside)


def _fill_quant_record(attr: pb.Attribute, item: Mapping[str, Any]) -> None:
    """How an activation is quantised: hung on a tensor of no type and no data."""
    attr.type = _A.TENSORS
    record = attr.tensors.add(name="quant_param").quant_params.add()
    record.quant_algo_name = "linear_quant"
    for key, part in item.items():
        value(record.attribute.add(name=key), part, inside=True)


def _fill_scalar(attr: pb.Attribute, item: bool | int | float | str, inside: bool) -> None:
    kind, single, repeated = _SCALARS[type(item)]
    attr.type = kind
    raw = item.encode() if isinstance(item, str) else int(item) if kind == _A.BOOL else item
    if inside:
        getattr(attr, repeated).append(raw)
    else:
        setattr(attr, single, raw)


def type_of(attr: pb.Attribute, kind: Type) -> None:
    """Fill in the type of a value: the "shape" attribute of nodes, attr_info."""
    if isinstance(kind, TensorType):
        attr.type = _A.SCALAR if kind.is_scalar else _A.TENSORS
        _fill_tensor_type(attr.tensors.add(), kind)
    elif isinstance(kind, SequenceType):
        attr.type = _A.TUPLE
        attr.seq_info.is_dyn_len = kind.dynamic_length
        for item in kind.items:
            type_of(attr.values.add(), item)
    else:
        attr.type = _A.Type.Value(kind.kind)  # type: ignore[assignment]


def _fill_tensor_type(proto: pb.Tensor, kind: TensorType) -> None:
    proto.data_type = kind.dtype.onnx
    if kind.ref_key:
        proto.ref_key = kind.ref_key
    if kind.is_scalar:
        proto.dims.append(0)
    else:
        proto.dims.extend((-2,) if kind.shape is None else kind.shape)
