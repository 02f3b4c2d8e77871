"""Pass: Add(Conv(x, w), bias per channel) -> Conv(x, w, bias), and the same for ConvTranspose.

MindSpore keeps the bias in a BiasAdd of its own. ONNX Runtime joins a constant one to a Conv, but
not one that is dequantised, which int8 kernels need there, and none to a ConvTranspose, where it
costs a pass over the enlarged image.

1. The convolution has no bias yet and feeds the Add alone.
2. The other operand is a vector with one number per channel, reshaped to (n, 1, ..., 1).
"""

from __future__ import annotations

import onnx_ir as ir

from mindspore_lite.passes.edit import dims_of, ints_of, is_op
from mindspore_lite.passes.fuse_gemm_bias import replace_node


def fuse_conv_bias(model: ir.Model) -> int:
    """Fuse in place; returns how many were fused."""
    count = 0
    for add in list(model.graph.all_nodes()):
        if not is_op(add, "Add") or add.inputs[0] is None:
            continue
        conv, bias = add.inputs[0].producer(), _per_channel(add.inputs[1])
        if conv is None or bias is None or conv.graph is not add.graph or not _fits(conv, bias):
            continue
        fused = ir.node(
            conv.op_type,
            [*conv.inputs[:2], bias],
            dict(conv.attributes),
            outputs=[ir.Value(type=add.outputs[0].type, shape=add.outputs[0].shape)],
            name=conv.name,  # as in fuse_gemm_bias
        )
        replace_node(add, fused, conv)
        count += 1
    return count


def _per_channel(value: ir.Value | None) -> ir.Value | None:
    """The vector that was reshaped to lie along the channels."""
    node = None if value is None else value.producer()
    if node is None or not is_op(node, "Reshape"):
        return None
    shape = ints_of(node.inputs[1])
    if not shape or shape[0] != -1 or set(shape[1:]) != {1}:
        return None
    return node.inputs[0]


def _fits(conv: ir.Node, bias: ir.Value) -> bool:
    if not is_op(conv, "Conv", "ConvTranspose") or len(conv.inputs) != 2:
        return False
    result, weight = conv.outputs[0], dims_of(conv.inputs[1])
    if len(result.uses()) != 1 or result.is_graph_output() or not weight:
        return False
    channels = weight[0]
    if conv.op_type == "ConvTranspose" and weight[1] is not None:
        group = conv.attributes.get("group")
        channels = weight[1] * (1 if group is None else group.as_int())
    return channels is not None and dims_of(bias) == [channels]
