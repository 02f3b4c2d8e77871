"""How much scratch memory one run of a model needs.

That is the largest sum of intermediate results that are needed at the same time, in the order of
the graph. Engines overwrite some results in place, and their kernels want room of their own, so the
number is an estimate, and no bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import onnx

from mindspore_lite.passes import long_lists


def scratch_bytes(skeleton: bytes) -> int:
    """The estimate for the sizes that the model declares; one that it leaves open counts as 1.

    `skeleton` is the model without its large weights. A result whose shape depends on data counts
    nothing, nor does what happens inside branches and loops.
    """
    model = onnx.load_model_from_string(skeleton)
    for value in model.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if not dim.HasField("dim_value"):
                dim.dim_value = 1
    del model.graph.value_info[:]
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    graph = long_lists.inferred(model).graph
    return _peak(graph, {v.name: _size(v) for v in (*graph.value_info, *graph.output)})


def _peak(graph: onnx.GraphProto, sizes: dict[str, int]) -> int:
    last_use = {name: at for at, node in enumerate(graph.node) for name in _read_by(node)}
    last_use |= dict.fromkeys((value.name for value in graph.output), len(graph.node))
    alive: dict[str, int] = {}
    peak = 0
    for at, node in enumerate(graph.node):
        alive |= {name: sizes.get(name, 0) for name in node.output}
        peak = max(peak, sum(alive.values()))
        alive = {name: size for name, size in alive.items() if last_use.get(name, at) > at}
    return peak


def _read_by(node: onnx.NodeProto) -> Iterator[str]:
    """What a node reads, also inside its subgraphs."""
    yield from node.input
    for attribute in node.attribute:
        for inner in (attribute.g, *attribute.graphs):
            for deeper in inner.node:
                yield from _read_by(deeper)
            yield from (value.name for value in inner.output)


def _size(value: onnx.ValueInfoProto) -> int:
    kind = value.type.tensor_type
    known = kind.elem_type and kind.HasField("shape")
    if not known or any(not dim.HasField("dim_value") for dim in kind.shape.dim):
        return 0
    count = math.prod(dim.dim_value for dim in kind.shape.dim)
    return count * int(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type).itemsize)
