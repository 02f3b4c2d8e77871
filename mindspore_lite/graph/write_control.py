"""Writes If as MindSpore does: the branches are graphs of their own, chosen by a Switch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx_ir as ir

from mindspore_lite.mindir.records import ValueRef
from mindspore_lite.ops.backwards.custom import captured_by
from mindspore_lite.ops.backwards.pen import Made, Operand, tensor_type

if TYPE_CHECKING:
    from mindspore_lite.graph.to_mindir import Scope, Writing


def write_if(writing: Writing, node: ir.Node, scope: Scope) -> tuple[Made, ...]:
    """Switch between two graphs, each with the outer values that it uses as arguments."""
    pen = scope.pen
    graphs = [node.attributes[name].as_graph() for name in ("then_branch", "else_branch")]
    pen.require(
        all(tensor_type(v) for g in graphs for v in g.outputs), "a result that is no tensor"
    )
    condition = Operand(_required(node.inputs[0]))
    branches = [
        _branch(writing, graph, scope, f"{pen.label}_{name}")
        for graph, name in zip(graphs, ("then", "else"), strict=True)
    ]
    chosen = pen.call("Switch", condition, *branches)
    result = pen.call(ValueRef(chosen.name))
    if len(node.outputs) == 1:
        return (result,)
    return tuple(pen.item(result, index) for index in range(len(node.outputs)))


def _branch(writing: Writing, graph: ir.Graph, scope: Scope, name: str) -> Made:
    """A branch as a function of nothing."""
    outer = [value for value in captured_by(graph) if not writing.is_weight(value)]
    function = writing.function(name, graph, outer)
    if not outer:
        return Made(function.name)
    return scope.pen.call("Partial", Made(function.name), *[Operand(value) for value in outer])


def _required(value: ir.Value | None) -> ir.Value:
    assert value is not None
    return value


CONTROL = {"If": write_if}
