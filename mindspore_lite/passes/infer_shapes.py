"""Pass: infers the type and shape of every value with ONNX's shape inference, bodies included.

Inference sees a graph without its large weights, so that no weight is copied and models may be of
any size. It begins at the inputs: what a file says of the values inside is often left over from
other inputs, and would be believed. Only operators of other domains are taken at the file's word;
where inference finds nothing, the rank that the file names is kept, and the shape of outputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import onnx
import onnx_ir as ir

from mindspore_lite.errors import ModelFileError
from mindspore_lite.passes.element_types import element_types
from mindspore_lite.passes.long_lists import inferred
from mindspore_lite.passes.shapes import round_scales_up
from mindspore_lite.passes.sliced_shapes import WINDOWS, NegativeSizeError

# what inference raises on models that make no sense: the engine will say so
FAILURES = (onnx.shape_inference.InferenceError, RuntimeError, TypeError, ValueError)
SAID = "mslite.said"  # in the metadata of a value: the shape that the file gave
LARGE_BYTES = 1024  # shapes, axes and scales are smaller, and inference reads them


def infer_shapes(model: ir.Model) -> None:
    """Find out types and shapes, in place."""
    proto = light_proto(model)
    forget_declared(proto.graph)
    round_scales_up(proto.graph)
    try:
        found = inferred(proto)
    except (onnx.shape_inference.InferenceError, RuntimeError):
        found = proto  # the engine has the last word on models that ONNX does not like
    for ours, theirs in zip(model.graphs(), ir.from_proto(found).graphs(), strict=True):
        _merge(ours, {str(v.name): v for v in _values(theirs)})
    for value, dtype in element_types(model).items():
        if value.type is None:
            value.dtype = dtype


def refuse_negative_sizes(model: ir.Model) -> None:
    """Refuse a model in which a Slice follows a window that is larger than what it moves over.

    ONNX Runtime and OpenVINO infer shapes with the same code as onnx, which ends the process then.

    Raises:
        ModelFileError: It is one.
    """
    kinds = {node.op_type for node in model.graph.all_nodes() if not node.domain}
    if "Slice" not in kinds or kinds.isdisjoint(WINDOWS):
        return
    proto = light_proto(model)
    forget_declared(proto.graph)
    try:
        inferred(proto)
    except NegativeSizeError as exc:
        raise ModelFileError(f"{exc}; give the model larger inputs") from None
    except FAILURES:  # the engine says it better
        return


def forget_declared(graph: onnx.GraphProto) -> None:
    """Drop what a file says of values that operators of ONNX make."""
    made = {name for node in graph.node if node.domain == "" for name in node.output}
    kept = [info for info in graph.value_info if info.name not in made]
    del graph.value_info[:]
    graph.value_info.extend(kept)
    for output in graph.output:
        if output.name in made and output.type.HasField("tensor_type"):
            output.type.tensor_type.ClearField("shape")
    for node in graph.node:
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                if body.node:
                    forget_declared(body)


def _merge(graph: ir.Graph, found: dict[str, ir.Value]) -> None:
    for value in _values(graph):
        other = found.get(str(value.name), value)
        if value.const_value is not None:
            continue
        if value.shape is not None:
            value.meta.setdefault(SAID, value.shape)
        if other.type is not None:
            value.type = other.type
        if other.shape is not None and other is not value:
            value.shape = other.shape
        elif value.shape is not None and _is_doubtful(value):
            value.shape = ir.Shape([None] * len(value.shape))


def _is_doubtful(value: ir.Value) -> bool:
    """Whether a shape is hearsay that nodes may rely on."""
    node = value.producer()
    if node is None or node.domain != "":
        return False
    return bool(value.uses()) or not value.is_graph_output()


def light_proto(model: ir.Model) -> onnx.ModelProto:
    """The model as protobuf, its large weights mentioned and left out."""
    with _light(model):
        return ir.to_proto(model)


def forget_shapes(model: ir.Model) -> None:
    """Drop the shapes of all that is computed: the inputs have changed. Types stay."""
    for graph in model.graphs():
        for node in graph:
            for value in node.outputs:
                value.shape = None


def _values(graph: ir.Graph) -> Iterator[ir.Value]:
    yield from graph.inputs
    for node in graph:
        yield from (value for value in node.outputs if value.name)


@contextmanager
def _light(model: ir.Model) -> Iterator[None]:
    """The model with stand-ins for its large tensors, as long as the context lasts."""
    weights: list[tuple[ir.Value, ir.TensorProtocol]] = []
    constants: list[tuple[ir.Node, ir.Attr]] = []
    try:
        for graph in model.graphs():
            for value in graph.initializers.values():
                if value.const_value is not None:
                    weights.append((value, value.const_value))
                    value.const_value = _stand_in(value.const_value)
            for node in graph:
                held = node.attributes.get("value")
                if held is not None and held.type == ir.AttributeType.TENSOR:
                    constants.append((node, held))
                    node.attributes["value"] = ir.AttrTensor("value", _stand_in(held.as_tensor()))
        yield
    finally:
        for value, tensor in weights:
            value.const_value = tensor
        for node, held in constants:
            node.attributes["value"] = held


def _stand_in(tensor: ir.TensorProtocol) -> ir.TensorProtocol:
    if tensor.dtype == ir.DataType.STRING:
        return tensor
    if tensor.nbytes > LARGE_BYTES:
        shape = ir.Shape(tensor.shape.numpy())
        return ir.ExternalTensor(
            "none", 0, tensor.nbytes, ir.DataType(tensor.dtype), shape=shape, name=tensor.name or ""
        )
    if isinstance(tensor, ir.ExternalTensor):  # inference has no folder to look into
        return ir.Tensor(tensor.numpy(), dtype=tensor.dtype, name=tensor.name)
    return tensor
