"""Which shapes an engine knows when it compiles: of those, Shape and Size make constants.

An engine's inference goes on where ONNX's ends: it has read every constant that it has computed,
and knows operators of other domains. So constants that were computed here are put into the graph
before inference looks at it, and values behind what cannot be followed are called murky: their
shapes may be known to an engine, and are not known here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import onnx
import onnx_ir as ir
from onnx import numpy_helper

from mindspore_lite.passes.infer_shapes import FAILURES, forget_declared, light_proto
from mindspore_lite.passes.long_lists import inferred

Dims = tuple[int, ...]


def name_apart(model: ir.Model) -> None:
    """Give values of bodies names of their own: bodies next to each other may share them."""
    seen: set[str] = set()
    for graph in model.graphs():
        made = (value for node in graph for value in node.outputs)
        for value in (*graph.inputs, *graph.initializers.values(), *made):
            name = str(value.name or "")
            if name in seen and graph is not model.graph and not value.is_initializer():
                while name in seen:
                    name += "/"
                value.name = name
            if name:
                seen.add(name)


def known_shapes(model: ir.Model, computed: Mapping[str, np.ndarray]) -> dict[str, Dims] | None:
    """The values whose dims are all known, once these constants are; None: inference failed.

    What a file declares is believed where inference finds nothing, as engines do.
    """
    proto = light_proto(model)
    _put(proto.graph, computed)
    bare = onnx.ModelProto()
    bare.CopyFrom(proto)
    forget_declared(bare.graph)
    try:
        return {**_dims(inferred(proto).graph), **_dims(inferred(bare).graph)}
    except FAILURES:
        return None


def _put(graph: onnx.GraphProto, computed: Mapping[str, np.ndarray]) -> None:
    """Replace nodes by the constants that they make."""
    left = [node for node in graph.node if not _is_computed(node, computed)]
    if len(left) < len(graph.node):
        made = [n for node in graph.node if _is_computed(node, computed) for n in node.output]
        graph.initializer.extend(numpy_helper.from_array(computed[n], n) for n in made)
        kept = list(left)
        del graph.node[:]
        graph.node.extend(kept)
    for node in graph.node:
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                if body.node:
                    _put(body, computed)


def _is_computed(node: onnx.NodeProto, computed: Mapping[str, np.ndarray]) -> bool:
    return len(node.output) == 1 and node.output[0] in computed


def _dims(graph: onnx.GraphProto) -> dict[str, Dims]:
    """By name; names that bodies share must agree."""
    found: dict[str, Dims | None] = {}
    for info in _infos(graph):
        dims = dims_of_type(info.type)
        if dims is not None or info.name in found:
            found[info.name] = dims if found.get(info.name, dims) == dims else None
    return {name: dims for name, dims in found.items() if dims is not None}


def _infos(graph: onnx.GraphProto) -> Iterator[onnx.ValueInfoProto]:
    yield from (*graph.input, *graph.value_info, *graph.output)
    for node in graph.node:
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                yield from _infos(body)


def dims_of_type(found: onnx.TypeProto) -> Dims | None:
    """The dims of a tensor, if all are known."""
    tensor = found.tensor_type
    if not tensor.HasField("shape") or not all(d.HasField("dim_value") for d in tensor.shape.dim):
        return None
    return tuple(max(0, d.dim_value) for d in tensor.shape.dim)
