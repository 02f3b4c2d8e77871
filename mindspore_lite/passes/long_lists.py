"""Shape inference of untrusted models, with long constant lists kept out of it.

onnx can follow the numbers that come out of shapes, and settles many a Reshape by that. For it any
list of known length is a shape that it writes down, also an input of a billion numbers, or one that
is joined with itself again and again. So shapes come first, without the numbers; nodes with lists
that are too long, or of unknown length, are hidden while numbers are followed.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

import onnx

from mindspore_lite.passes.sliced_shapes import graphs, with_slices

SHORT = 64  # numbers; no shape has more
BUDGET = 1 << 22  # numbers in longer lists that may be written down, at some 64 bytes each
_HIDDEN = "mslite.long"  # a domain that inference passes over


def inferred(proto: onnx.ModelProto, *, strict: bool = False) -> onnx.ModelProto:
    """The model with all types and shapes that can be inferred.

    Raises:
        InferenceError, RuntimeError: The model contradicts itself; without `strict`, only types.
    """
    return with_slices(proto, functools.partial(_inferred, strict=strict))


def _inferred(proto: onnx.ModelProto, *, strict: bool) -> onnx.ModelProto:
    first = onnx.shape_inference.infer_shapes(proto, strict_mode=strict)
    long = _long(first.graph)
    if not long:
        return onnx.shape_inference.infer_shapes(proto, strict_mode=strict, data_prop=True)
    partly = _hidden(proto, long, _types(first.graph))
    followed = onnx.shape_inference.infer_shapes(partly, strict_mode=strict, data_prop=True)
    for graph in graphs(followed.graph):
        for node in graph.node:
            if node.domain == _HIDDEN:
                node.domain = ""
    del followed.opset_import[-1]
    return onnx.shape_inference.infer_shapes(followed, strict_mode=strict)


def _long(graph: onnx.GraphProto) -> set[str]:
    """The first outputs of the nodes whose lists inference should not write down."""
    lengths = _lengths(graph)
    spent, found = 0, set()
    for inner in graphs(graph):
        for node in inner.node:
            if node.domain != "" or not _follows(node.op_type):
                continue
            longest = max((lengths.get(name, BUDGET + 1) for name in node.input if name), default=0)
            if longest <= SHORT:
                continue
            spent += longest if longest <= BUDGET else 0
            if max(spent, longest) > BUDGET:
                found.update(node.output[:1])
    return found


def _hidden(
    model: onnx.ModelProto, long: set[str], types: Mapping[str, onnx.TypeProto]
) -> onnx.ModelProto:
    """A copy with nodes hidden; it says what was found out of their outputs."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for graph in graphs(copy.graph):
        declared = {value.name for value in (*graph.output, *graph.value_info)}
        for node in graph.node:
            if not long.isdisjoint(node.output[:1]):
                node.domain = _HIDDEN
                graph.value_info.extend(
                    onnx.ValueInfoProto(name=name, type=types[name])
                    for name in node.output
                    if name in types and name not in declared
                )
    copy.opset_import.append(onnx.helper.make_opsetid(_HIDDEN, 1))
    return copy


def _types(graph: onnx.GraphProto) -> dict[str, onnx.TypeProto]:
    """The types of all values; names that inference made up for open dims are left out."""
    found = {}
    for inner in graphs(graph):
        for value in inner.value_info:
            found[value.name] = value.type
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_param.startswith("unk__"):
                    dim.ClearField("dim_param")
    return found


def _lengths(graph: onnx.GraphProto) -> dict[str, int]:
    """How many numbers inference would write down of each value: none of what is no list."""
    found: dict[str, int] = {}
    for inner in graphs(graph):
        for value in (*inner.input, *inner.output, *inner.value_info):
            shape = value.type.tensor_type.shape
            if value.type.tensor_type.HasField("shape"):
                found[value.name] = 0
                if len(shape.dim) == 1:
                    is_known = shape.dim[0].HasField("dim_value")
                    found[value.name] = shape.dim[0].dim_value if is_known else BUDGET + 1
        for tensor in inner.initializer:
            found[tensor.name] = tensor.dims[0] if len(tensor.dims) == 1 else 0
    return found


@functools.cache
def _follows(op_type: str) -> bool:
    """Whether inference follows the numbers through an operator."""
    try:
        return bool(onnx.defs.get_schema(op_type).has_data_propagation_function)
    except onnx.defs.SchemaError:
        return False
