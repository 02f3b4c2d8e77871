"""Pass: replaces an If with a constant condition by the branch that it takes.

Exporters leave such questions behind where they ask for ranks and sizes that are known by now.
"""

from __future__ import annotations

import onnx_ir as ir

from mindspore_lite.passes.edit import array_of, graph_nodes, is_op, name_all


def fold_branches(model: ir.Model) -> int:
    """Fold in place; returns how many were folded."""
    count = 0
    for node in graph_nodes(model):
        answer = array_of(node.inputs[0]) if is_op(node, "If") else None
        if answer is None or answer.size != 1:
            continue
        taken = "then_branch" if answer.item() else "else_branch"
        _move_out(node.attributes[taken].as_graph(), node)
        count += 1
    if count:
        name_all(model)
    return count


def _move_out(branch: ir.Graph, node: ir.Node) -> None:
    """Put what is in a branch in the place of its If; Identities hand its results on."""
    graph = node.graph
    assert isinstance(graph, ir.Graph)
    results, nodes = list(branch.outputs), list(branch)
    branch.outputs.clear()
    branch.remove(nodes)
    for name, weight in list(branch.initializers.items()):
        del branch.initializers[name]
        while weight.name in graph.initializers:
            weight.name = f"{weight.name}_"
        graph.register_initializer(weight)
    graph.insert_before(node, nodes)
    for old, result in zip(node.outputs, results, strict=True):
        new = ir.Value(type=old.type, shape=result.shape)
        graph.insert_before(node, ir.node("Identity", [result], outputs=[new]))
        ir.convenience.replace_all_uses_with(old, new, replace_graph_outputs=True)
        old.name, new.name = None, old.name
    graph.remove(node, safe=True)
