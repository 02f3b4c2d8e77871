"""ONNX nodes that a converter put into `Custom` primitives because MindSpore has no equivalent."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
import onnx_ir as ir

from mindspore_lite.errors import ModelFileError, UnsupportedOpError
from mindspore_lite.mindir.records import Tensor
from mindspore_lite.ops.refused import why_not
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape
from mindspore_lite.ops.to_mindir.custom import KIND, graphs_of


@op("Custom")
def custom(
    t: Tape,
    values: Sequence[Val] = (),
    *,
    reg_op_name: str = "",
    onnx_node: Tensor | None = None,
    onnx_inputs: Sequence[str] = (),
    opset: int = 0,
    type: str = "",
) -> Val:
    """The ONNX node inside, its inputs being the values."""
    if reg_op_name != KIND or onnx_node is None or len(onnx_inputs) != len(values):
        raise UnsupportedOpError(why_not("Custom", {"type": type, "reg_op_name": reg_op_name}))
    node = _node(bytes(onnx_node.view()), onnx_inputs, [_present(t, value) for value in values])
    t.needs_opset(node.domain, opset)
    for graph in graphs_of(node):
        _rename(t, graph)
    return t.add(node)


def _present(t: Tape, value: Val) -> ir.Value:
    found = t.value(value)
    if found is None:
        raise UnsupportedOpError("an input of an ONNX node is missing")
    return found


def _node(blob: bytes, names: Sequence[str], values: Sequence[ir.Value]) -> ir.Node:
    """The node as onnx-ir has it, using these values for the names it was written with."""
    try:
        proto = onnx.NodeProto.FromString(blob)
        _refuse_external(proto)
        graph = ir.serde.deserialize_graph(
            onnx.GraphProto(
                name="carried",
                node=[proto],
                input=[onnx.ValueInfoProto(name=name) for name in names],
            )
        )
    except ModelFileError:
        raise
    except Exception as exc:  # the parser and onnx-ir raise many kinds on bad bytes
        raise ModelFileError(f"an ONNX node inside of the file cannot be read: {exc}") from exc
    (node,) = graph
    ir.convenience.replace_all_uses_with(list(graph.inputs), values)
    graph.remove(node)
    return node


def _refuse_external(node: onnx.NodeProto) -> None:
    """A node that a file carries must not name other files."""
    for attr in node.attribute:
        tensors = [attr.t, *attr.tensors]
        for graph in (attr.g, *attr.graphs):
            tensors += graph.initializer
            for inner in graph.node:
                _refuse_external(inner)
        if any(t.data_location == onnx.TensorProto.EXTERNAL for t in tensors):
            raise ModelFileError(f"external data inside of the ONNX node {node.op_type!r}")


def _rename(t: Tape, graph: ir.Graph) -> None:
    """Names that no other value has: those inside a sub-graph must not hide outer ones.

    The domains of its nodes are noted as well.
    """
    for value in (*graph.inputs, *graph.initializers.values()):
        value.name = t.unique(str(value.name))
    for node in graph:
        t.needs_opset(node.domain, 1)  # the version of ONNX Runtime's own operators
        for value in node.outputs:
            if value.name:
                value.name = t.unique(value.name)
        for inner in graphs_of(node):
            _rename(t, inner)
