"""Pass: nodes, weights and outputs of nodes that nothing depends on are taken out.

onnx-ir does the work; inputs and outputs of the model stay, used or not.
"""

from __future__ import annotations

import onnx_ir as ir
import onnx_ir.passes.common as passes

from mindspore_lite.graph.edit import graph_nodes


def remove_dead(model: ir.Model) -> int:
    """Remove in place; returns how many nodes went."""
    count = len(graph_nodes(model))
    passes.RemoveUnusedNodesPass()(model)
    for graph in model.graphs():  # onnx-ir leaves the weights of bodies alone
        for name, value in list(graph.initializers.items()):
            if not (value.uses() or value.is_graph_output() or value.is_graph_input()):
                del graph.initializers[name]
    return count - len(graph_nodes(model))
