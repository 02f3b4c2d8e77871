"""Pass: Add(Gemm(a, b), bias) -> Gemm(a, b, bias).

MindSpore keeps the bias of a Dense layer in a BiasAdd of its own, and ONNX Runtime does not join it
to a Gemm; as Gemm's third input it costs no extra pass over the result.

1. The Gemm has no bias yet and feeds the Add alone.
2. The other operand is a constant of shape (n) or (1, n), where n is 1 or the width of the product:
   it broadcasts over rows as Gemm's C does.
"""

from __future__ import annotations

import onnx_ir as ir


def fuse_gemm_bias(model: ir.Model) -> int:
    """Fuse in place; returns how many were fused."""
    count = 0
    for add in list(model.graph.all_nodes()):
        if add.op_type != "Add" or add.domain:
            continue
        product, bias = add.inputs
        gemm = product.producer() if product is not None else None
        if gemm is None or gemm.graph is not add.graph or not _fits(gemm, bias):
            continue
        fused = ir.node(
            "Gemm",
            [*gemm.inputs[:2], bias],
            dict(gemm.attributes),
            outputs=[ir.Value(type=add.outputs[0].type, shape=add.outputs[0].shape)],
            name=gemm.name,  # by which users know the product; the result keeps the name of the sum
        )
        replace_node(add, fused, gemm)
        count += 1
    return count


def _fits(gemm: ir.Node, bias: ir.Value | None) -> bool:
    if gemm.op_type != "Gemm" or len(gemm.inputs) != 2:
        return False
    product = gemm.outputs[0]
    if (
        len(product.uses()) != 1
        or product.is_graph_output()
        or bias is None
        or bias.const_value is None
    ):
        return False
    dims = bias.const_value.shape.numpy()
    if not (len(dims) == 1 or (len(dims) == 2 and dims[0] == 1)):
        return False
    return dims[-1] in (1, _width(gemm))


def _width(gemm: ir.Node) -> int | None:
    """Columns of the product, as its second operand has them."""
    b, turned = gemm.inputs[1], gemm.attributes.get("transB")
    if b is None or b.shape is None:
        return None
    width = b.shape[0 if turned is not None and turned.value else 1]
    return width if isinstance(width, int) else None


def replace_node(old: ir.Node, new: ir.Node, source: ir.Node) -> None:
    """Put a node in the place of another, whose outputs live on by name, and of its only source."""
    graph = old.graph
    assert graph is not None
    graph.insert_after(old, new)
    for before, after in zip(old.outputs, new.outputs, strict=True):
        name = before.name
        ir.convenience.replace_all_uses_with(before, after, replace_graph_outputs=True)
        before.name = None
        after.name = name
    graph.remove([old, source], safe=True)
