"""Pass: removes nodes, weights and node outputs that nothing depends on.

onnx-ir does the work; inputs and outputs of the model stay, used or not.
"""

from __future__ import annotations

import onnx_ir as ir
import onnx_ir.passes.common as passes

from mindspore_lite.passes.edit import graph_nodes


def remove_dead(model: ir.Model) -> int:
    """Remove in place; returns how many nodes went."""
    nodes = graph_nodes(model)
    training = [
        (n, n.attributes["training_mode"]) for n in nodes if "training_mode" in n.attributes
    ]
    passes.RemoveUnusedNodesPass()(model)
    for node, mode in training:  # onnx-ir 1.0 drops it together with unused outputs
        node.attributes["training_mode"] = mode
    for graph in model.graphs():  # onnx-ir leaves the weights of bodies alone
        for name, value in list(graph.initializers.items()):
            if not (value.uses() or value.is_graph_output() or value.is_graph_input()):
                del graph.initializers[name]
    return len(nodes) - len(graph_nodes(model))
