"""A model without the bytes of its large weights, small enough for ONNX's own inference."""

from __future__ import annotations

from dataclasses import dataclass

import onnx
import onnx_ir as ir

from mindspore_lite.core.dtypes import BY_ONNX
from mindspore_lite.inspection.facts import Port
from mindspore_lite.passes import long_lists

_KEPT_BYTES = 1024  # constants up to this size stay, since shapes may follow from them


@dataclass(frozen=True)
class Skeleton:
    """A graph whose large weights are further inputs."""

    proto: onnx.ModelProto
    inputs: tuple[str, ...]  # of the model itself
    weights_bytes: int

    def outputs(self) -> tuple[Port, ...]:
        """The outputs with what shape inference finds out about them; an open dim is -1."""
        return tuple(_port(value) for value in inferred(self.proto).graph.output)


def skeleton_of(model: ir.Model) -> Skeleton:
    """Take the weights out of a model, which is used up by it."""
    graph = model.graph
    inputs = tuple(str(v.name) for v in graph.inputs if v.name not in graph.initializers)
    weights = sum(
        value.const_value.nbytes
        for each in model.graphs()
        for value in each.initializers.values()
        if value.const_value is not None
    )
    for name, value in list(graph.initializers.items()):
        if value.const_value is not None and value.const_value.nbytes > _KEPT_BYTES:
            del graph.initializers[name]
            value.const_value = None
            if not value.is_graph_input():
                graph.inputs.append(value)
    return Skeleton(ir.serde.serialize_model(model), inputs, weights)


def inferred(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the types that ONNX finds; as it was where it contradicts them."""
    try:
        return long_lists.inferred(proto)
    except onnx.shape_inference.InferenceError:
        return proto


def dtype_name(number: int) -> str:
    """The name of an ONNX element type as the rest of the package spells it; "" for none."""
    row = BY_ONNX.get(number)
    if row is not None:
        return row.name
    return ir.DataType(number).name.lower() if number else ""


def _port(value: onnx.ValueInfoProto) -> Port:
    kind = value.type.tensor_type
    shape = None
    if kind.HasField("shape"):
        shape = tuple(d.dim_value if d.HasField("dim_value") else -1 for d in kind.shape.dim)
    return Port(value.name, dtype_name(kind.elem_type), shape)
