"""Shape inference of untrusted models, with long constant lists kept out of it.

onnx can follow the numbers that come out of shapes, and settles many a Reshape by that. For it any
list of known length is a shape that it writes down, also an input of a billion numbers, or one that
is joined with itself again and again. So shapes come first, without the numbers; nodes with lists
that are too long, or of unknown length, are hidden while numbers are followed.

Slices backwards are never shown to onnx: it ends the process on one of an axis without elements. To
turn whole axes round changes no shape; what any other one gives is not inferred.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping

import numpy as np
import onnx

SHORT = 64  # numbers; no shape has more
BUDGET = 1 << 22  # numbers in longer lists that may be written down, at some 64 bytes each
_HIDDEN, _BACKWARDS = "mslite.long", "mslite.backwards"  # domains that inference passes over
_FAR = 2**31 - 1  # before the beginning of any axis
_INTEGERS = (onnx.TensorProto.INT32, onnx.TensorProto.INT64)


def inferred(proto: onnx.ModelProto, *, strict: bool = False) -> onnx.ModelProto:
    """The model with all types and shapes that can be inferred.

    Raises:
        InferenceError, RuntimeError: The model contradicts itself; without `strict`, only types.
    """
    numbers = _numbers(proto.graph)
    nodes = (node for graph in _graphs(proto.graph) for node in graph.node)
    backwards = [node for node in nodes if _may_go_back(node, numbers)]
    if not backwards:
        return _inferred(proto, strict=strict)
    shown = onnx.ModelProto()
    shown.CopyFrom(proto)
    for graph in _graphs(shown.graph):
        for node in graph.node:
            if _may_go_back(node, numbers):
                _replace(node, numbers)
    shown.opset_import.insert(0, onnx.helper.make_opsetid(_BACKWARDS, 1))
    found = _inferred(shown, strict=strict)
    del found.opset_import[0]
    back = iter(backwards)
    for graph in _graphs(found.graph):
        for node in graph.node:
            if node.doc_string == _BACKWARDS:
                node.CopyFrom(next(back))
    return found


def _may_go_back(node: onnx.NodeProto, numbers: Mapping[str, np.ndarray]) -> bool:
    if node.op_type != "Slice" or node.domain or len(node.input) < 5 or not node.input[4]:
        return False
    steps = numbers.get(node.input[4])
    return steps is None or not bool((steps > 0).all())


def _replace(node: onnx.NodeProto, numbers: Mapping[str, np.ndarray]) -> None:
    """Show a Slice that may go backwards as what changes no shape, or as nothing known."""
    starts, ends, steps = (numbers.get(node.input[at]) for at in (1, 2, 4))
    node.doc_string = _BACKWARDS
    if starts is not None and ends is not None and steps is not None:
        last = (starts == -1) | (starts >= _FAR)
        if len({starts.size, ends.size, steps.size}) == 1 and bool(
            ((steps == -1) & last & (ends <= -_FAR)).all()
        ):
            node.op_type = "Identity"
            del node.input[1:]
            return
    node.domain = _BACKWARDS


def _numbers(graph: onnx.GraphProto) -> dict[str, np.ndarray]:
    """The short constant lists of a graph and those inside it, by name; of two, neither."""
    found: dict[str, np.ndarray] = {}
    seen: set[str] = set()
    for inner in _graphs(graph):
        made = [(t.name, t) for t in inner.initializer]
        for node in inner.node:
            if node.op_type == "Constant" and not node.domain and node.output:
                held = [(node.output[0], a.t) for a in node.attribute if a.name == "value"]
                made += held
        for name, tensor in made:
            short = len(tensor.dims) == 1 and tensor.dims[0] <= SHORT
            if name in seen or not short or tensor.data_type not in _INTEGERS:
                found.pop(name, None)
            elif not onnx.external_data_helper.uses_external_data(tensor):
                found[name] = onnx.numpy_helper.to_array(tensor)
            seen.add(name)
    return found


def _inferred(proto: onnx.ModelProto, *, strict: bool) -> onnx.ModelProto:
    first = onnx.shape_inference.infer_shapes(proto, strict_mode=strict)
    long = _long(first.graph)
    if not long:
        return onnx.shape_inference.infer_shapes(proto, strict_mode=strict, data_prop=True)
    partly = _hidden(proto, long, _types(first.graph))
    followed = onnx.shape_inference.infer_shapes(partly, strict_mode=strict, data_prop=True)
    for graph in _graphs(followed.graph):
        for node in graph.node:
            if node.domain == _HIDDEN:
                node.domain = ""
    del followed.opset_import[-1]
    return onnx.shape_inference.infer_shapes(followed, strict_mode=strict)


def _long(graph: onnx.GraphProto) -> set[str]:
    """The first outputs of the nodes whose lists inference should not write down."""
    lengths = _lengths(graph)
    spent, found = 0, set()
    for inner in _graphs(graph):
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
    for graph in _graphs(copy.graph):
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
    for inner in _graphs(graph):
        for value in inner.value_info:
            found[value.name] = value.type
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_param.startswith("unk__"):
                    dim.ClearField("dim_param")
    return found


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
    """A graph and those inside it."""
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
