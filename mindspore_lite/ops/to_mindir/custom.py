"""Carries an ONNX node that has no MindSpore equivalent inside a `Custom` primitive.

ops/custom.py is the other direction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import onnx_ir as ir

from mindspore_lite.ops.to_mindir.writer import Made, MindirWriter, Operand

KIND = "ONNX"  # the attribute reg_op_name of such a primitive


def carried(
    writer: MindirWriter, node: ir.Node, inside: Sequence[ir.Value], opset: int
) -> tuple[Made, ...]:
    """Write a node as it is; `inside` are the outer values that its sub-graphs use."""
    given = list(dict.fromkeys(v for v in (*node.inputs, *inside) if v is not None))
    blob = ir.serde.serialize_node(node).SerializeToString()
    made = writer.call(
        "Custom",
        *[Operand(value) for value in given],
        reg_op_name=KIND,
        onnx_node=np.frombuffer(blob, np.uint8),
        onnx_inputs=tuple(str(value.name) for value in given),
        opset=opset,
    )
    if len(node.outputs) == 1:
        return (made,)
    return tuple(writer.item(made, index) for index in range(len(node.outputs)))


def captured(node: ir.Node) -> list[ir.Value]:
    """The values from outside that the sub-graphs of a node use."""
    return list(dict.fromkeys(v for graph in graphs_of(node) for v in captured_by(graph)))


def captured_by(graph: ir.Graph) -> list[ir.Value]:
    """The values from outside that a sub-graph uses."""
    own = set(_defined(graph))
    used = (value for node in _all_nodes(graph) for value in node.inputs)
    return list(dict.fromkeys(v for v in (*used, *graph.outputs) if v is not None and v not in own))


def graphs_of(node: ir.Node) -> Iterator[ir.Graph]:
    """The sub-graphs of a node."""
    for attr in node.attributes.values():
        if attr.type == ir.AttributeType.GRAPH:
            yield attr.value
        elif attr.type == ir.AttributeType.GRAPHS:
            yield from attr.value


def _all_nodes(graph: ir.Graph) -> Iterator[ir.Node]:
    for node in graph:
        yield node
        for inner in graphs_of(node):
            yield from _all_nodes(inner)


def _defined(graph: ir.Graph) -> Iterator[ir.Value]:
    yield from graph.inputs
    yield from graph.initializers.values()
    for node in graph:
        yield from node.outputs
        for inner in graphs_of(node):
            yield from _defined(inner)
