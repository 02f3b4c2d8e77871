"""Builds small MindIR models for tests: as records, and as the bytes of a file.

net = Net()
x = net.input("x", (2, 3))
y = net.call("Add", x, net.weight("w", np.ones(3, np.float32)))
model = net.model(y)        # mindspore_lite.mindir.records.Model
data = encode(model)        # what MindSpore would have written
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mindspore_lite import dtypes
from mindspore_lite.mindir import mindir_pb2 as pb
from mindspore_lite.mindir import records as r

_A = pb.Attribute
_MONADS = {r.Monad.MEMORY: _A.UMONAD, r.Monad.IO: _A.IOMONAD}


def tensor(name: str, array: np.ndarray) -> r.Tensor:
    """An array as a weight or constant of a file."""
    dtype = dtypes.from_numpy(array.dtype)
    assert dtype is not None
    return r.Tensor(name, dtype, array.shape, memoryview(array.tobytes()))


def tensor_type(shape: Sequence[int] | None, dtype: Any = np.float32, **more: Any) -> r.TensorType:
    """The type of a tensor value."""
    found = dtypes.from_numpy(np.dtype(dtype))
    assert found is not None
    return r.TensorType(found, None if shape is None else tuple(shape), **more)


class Net:
    """One graph in the making; values are named, and calls take those names."""

    def __init__(self, name: str = "net") -> None:
        self.name = name
        self.inputs: list[r.Input] = []
        self.nodes: list[r.Node] = []
        self.weights: list[r.Tensor] = []
        self.count = 0

    def input(
        self,
        name: str,
        shape: Sequence[int] | None = (),
        dtype: Any = np.float32,
        *,
        type: r.Type | None = None,
        given_name: str = "",
        **more: Any,
    ) -> str:
        """A graph input; its type is a tensor's unless said otherwise."""
        full = f"{self.name}:{name}"
        kind = type if type is not None else tensor_type(shape, dtype, **more)
        self.inputs.append(r.Input(full, kind, given_name))
        return full

    def weight(self, name: str, array: np.ndarray) -> str:
        """A parameter of the model."""
        full = f"{self.name}:{name}"
        self.weights.append(tensor(full, array))
        return full

    def constant(self, value: Any) -> str:
        """A constant; arrays become tensors, wherever they stand in a tuple."""
        name = f"const_{self.name}_{self._next()}"
        self.nodes.append(r.Constant(name, _plain(value)))
        return name

    def call(
        self,
        target: str | r.GraphRef | r.ValueRef,
        *inputs: str,
        type: r.Type | None = None,
        scope: str = "",
        **attributes: Any,
    ) -> str:
        """A node; a text as target is a primitive, with the given attributes."""
        name = f"{self.name}:node:{self._next()}"
        if isinstance(target, str):
            held = {key: _plain(value) for key, value in attributes.items()}
            target = r.Primitive(target, held)
        self.nodes.append(r.Call(name, target, inputs, type, scope))
        return name

    def tuple(self, *inputs: str) -> str:
        """Several values as one."""
        return self.call("MakeTuple", *inputs)

    def monad(self) -> str:
        """The token that starts a chain of effects."""
        return self.constant(r.Monad.MEMORY)

    def graph(self, *outputs: str) -> r.Graph:
        """What was built, returning these values."""
        return r.Graph(
            self.name, tuple(self.inputs), tuple(self.nodes), outputs, tuple(self.weights)
        )

    def model(self, *outputs: str, functions: Sequence[r.Graph] = (), **more: Any) -> r.Model:
        """A whole file with this graph as the main one."""
        about = {"producer": "MindSpore", "producer_version": "2.10.0", "mind_ir_version": 3}
        return r.Model(self.graph(*outputs), {g.name: g for g in functions}, **{**about, **more})

    def _next(self) -> int:
        self.count += 1
        return self.count


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return tensor("value0", value)
    if isinstance(value, tuple | list):
        return type(value)(_plain(v) for v in value)
    return value


# --- bytes ------------------------------------------------------------------------------------


def encode(model: r.Model) -> bytes:
    """The bytes that MindSpore 2.10 would write for these records."""
    return to_proto(model).SerializeToString()


def to_proto(model: r.Model) -> pb.Model:
    """The records as a protobuf message, to be changed before it is written."""
    proto = pb.Model(
        ir_version="1.1",
        producer_name=model.producer,
        model_version=model.producer_version,
        little_endian=True,
        mind_ir_version=model.mind_ir_version,
        user_info=dict(model.user_info),
    )
    _fill_graph(proto.graph, model.graph, proto)
    for graph in model.functions.values():
        _fill_graph(proto.functions.add(), graph, proto)
    return proto


def _fill_graph(proto: pb.Graph, graph: r.Graph, model: pb.Model) -> None:
    proto.name = graph.name
    for weight in graph.parameters:
        _fill_tensor(proto.parameter.add(), weight)
    for declared in graph.inputs:
        info = proto.input.add(name=declared.name)
        if isinstance(declared.type, r.TensorType) and not declared.type.is_scalar:
            _fill_tensor_type(info.tensor.add(name=declared.given_name), declared.type)
        elif isinstance(declared.type, r.OtherType):
            info.denotation = declared.type.kind
        else:
            _fill_type(info.attr_info, declared.type)
    for node in graph.nodes:
        _fill_node(proto.node.add(), node, model)
    for name in graph.outputs:
        proto.output.add(name=name)
    for key, value in graph.attributes.items():
        fill_value(proto.attribute.add(name=key), value)


def _fill_node(proto: pb.Node, node: r.Node, model: pb.Model) -> None:
    proto.name = node.name
    proto.output.append(node.name)
    if isinstance(node, r.Constant):
        proto.op_type = "Constant"
        fill_value(proto.attribute.add(name="value"), node.value)
        return
    proto.input.extend(node.inputs)
    proto.domain = node.scope
    if isinstance(node.target, r.Primitive):
        name = f"{node.target.op}:{len(model.primitives)}"
        primitive = model.primitives.add(name=name, op_type=node.target.op)
        for key, value in node.target.attributes.items():
            fill_value(primitive.attribute.add(name=key), value)
        proto.op_type = f"REF::{name}"
    else:
        proto.op_type = f"REF::{node.target.name}"
    if node.type is not None:
        _fill_type(proto.attribute.add(name="shape"), node.type)


def fill_value(attr: pb.Attribute, value: Any, *, inside: bool = False) -> None:
    """Spec 2.3: scalars at top level use the singular fields, inside tuples the repeated ones."""
    if isinstance(value, r.Monad):
        attr.type = _MONADS[value]
    elif value is None:
        attr.type = _A.NONE
    elif isinstance(value, r.Tensor):
        attr.type = _A.TENSORS
        _fill_tensor(attr.tensors.add(), value)
    elif isinstance(value, dtypes.DType):
        attr.type = _A.TENSORS
        attr.tensors.add(data_type=value.onnx)
    elif isinstance(value, Mapping) and "scale_list" in value:
        attr.type = _A.TENSORS
        record = attr.tensors.add(name="quant_param").quant_params.add()
        record.quant_algo_name = "linear_quant"
        for key, item in value.items():
            fill_value(record.attribute.add(name=key), item, inside=True)
    elif isinstance(value, Mapping):
        attr.type = _A.DICT
        for key, item in value.items():
            fill_value(attr.values.add(name=key).values.add(), item, inside=True)
    elif isinstance(value, tuple | list):
        attr.type = _A.TUPLE if isinstance(value, tuple) else _A.LIST
        for item in value:
            fill_value(attr.values.add(), item, inside=True)
    else:
        _fill_scalar(attr, value, inside)


def _fill_scalar(attr: pb.Attribute, value: bool | int | float | str, inside: bool) -> None:
    kind, single, repeated = {
        bool: (_A.BOOL, "i", "ints"),
        int: (_A.INT64, "i", "ints"),
        float: (_A.FLOAT, "f", "floats"),
        str: (_A.STRING, "s", "strings"),
    }[type(value)]
    attr.type = kind
    raw = value.encode() if isinstance(value, str) else int(value) if kind == _A.BOOL else value
    if inside:
        getattr(attr, repeated).append(raw)
    else:
        setattr(attr, single, raw)


def _fill_tensor(proto: pb.Tensor, value: r.Tensor) -> None:
    proto.name = value.name
    proto.data_type = value.dtype.onnx
    proto.dims.extend(value.shape)
    proto.raw_data = bytes(value.data)


def _fill_type(attr: pb.Attribute, kind: r.Type) -> None:
    if isinstance(kind, r.TensorType):
        attr.type = _A.SCALAR if kind.is_scalar else _A.TENSORS
        _fill_tensor_type(attr.tensors.add(), kind)
    elif isinstance(kind, r.SequenceType):
        attr.type = _A.TUPLE
        attr.seq_info.is_dyn_len = kind.dynamic_length
        for item in kind.items:
            _fill_type(attr.values.add(), item)
    else:
        attr.type = _A.Type.Value(kind.kind)


def _fill_tensor_type(proto: pb.Tensor, kind: r.TensorType) -> None:
    proto.data_type = kind.dtype.onnx
    if kind.ref_key:
        proto.ref_key = kind.ref_key
    if kind.is_scalar:
        proto.dims.append(0)
    else:
        proto.dims.extend((-2,) if kind.shape is None else kind.shape)
