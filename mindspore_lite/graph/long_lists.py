"""Shape inference of models that nobody knows: protobuf goes in, protobuf with shapes comes out.

onnx can follow the numbers that come out of shapes, and settles many a Reshape by that. For it any
list of known length is a shape that it writes down, also an input of a billion numbers, or one that
is joined with itself again and again. So shapes come first, without the numbers; nodes with lists
that are too long, or of unknown length, are hidden while numbers are followed.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator

import onnx

SHORT = 64  # numbers; no shape has more
BUDGET = 1 << 22  # numbers in longer lists that may be written down, at some 64 bytes each
_HIDDEN = "mslite.long"  # a domain that inference passes over


def inferred(proto: onnx.ModelProto, *, strict: bool = False) -> onnx.ModelProto:
    """The model with all types and shapes that can be told.

    Raises:
        InferenceError, RuntimeError: The model contradicts itself; without `strict`, only types.
    """
    found = onnx.shape_inference.infer_shapes(proto, strict_mode=strict)
    hidden = _hide_long(found)
    followed = onnx.shape_inference.infer_shapes(found, strict_mode=strict, data_prop=True)
    if not hidden:
        return followed
    for graph in _graphs(followed.graph):
        for node in graph.node:
            if node.domain == _HIDDEN:
                node.domain = ""
    del followed.opset_import[-1]
    return onnx.shape_inference.infer_shapes(followed, strict_mode=strict)


def _hide_long(model: onnx.ModelProto) -> bool:
    """Hide the nodes whose lists inference cannot write down; returns whether there are any."""
    known = _lengths(model.graph)
    spent, hidden = 0, False
    for graph in _graphs(model.graph):
        for node in graph.node:
            if node.domain != "" or not _follows(node.op_type):
                continue
            longest = max((known.get(name, BUDGET + 1) for name in node.input if name), default=0)
            if longest <= SHORT:
                continue
            spent += min(longest, BUDGET)
            if longest > BUDGET or spent > BUDGET:
                node.domain, hidden = _HIDDEN, True
    if hidden:
        model.opset_import.append(onnx.helper.make_opsetid(_HIDDEN, 1))
    return hidden


def _lengths(graph: onnx.GraphProto) -> dict[str, int]:
    """How many numbers inference would write down of each value: none of what is no list."""
    found: dict[str, int] = {}
    for inner in _graphs(graph):
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


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """A graph and those inside of it."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            inside = [attribute.g] if attribute.HasField("g") else []
            for inner in itertools.chain(inside, attribute.graphs):
                yield from _graphs(inner)


@functools.cache
def _follows(op_type: str) -> bool:
    """Whether inference follows the numbers through an operator."""
    try:
        return bool(onnx.defs.get_schema(op_type).has_data_propagation_function)
    except onnx.defs.SchemaError:
        return False
