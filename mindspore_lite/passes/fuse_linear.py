"""Pass: Add(MatMul(x, w), bias) -> Linear(x, w, bias), an operator of our own domain.

It means x @ w + bias, for x of any rank from 2 on. Gemm is that for rank 2 only; to torch it is one
call, whose bias costs no extra pass over the result. Engines that know ONNX only cannot run it.

1. w is a matrix, bias a vector with a number for each of its columns; all are floats of one type.
2. The product feeds the Add alone.
"""

from __future__ import annotations

import onnx_ir as ir

from mindspore_lite.passes.edit import DOMAIN, become, dims_of, graph_nodes, is_op, only_user

OP_TYPE = "Linear"


def fuse_linear(model: ir.Model) -> int:
    """Fuse in place; returns how many were fused. Shapes should be inferred before."""
    count = sum(is_op(node, "MatMul") and _fuse(node) for node in graph_nodes(model))
    if count:
        model.opset_imports[DOMAIN] = 1
    return count


def _fuse(product: ir.Node) -> bool:
    x, w = product.inputs
    add = only_user(product.outputs[0])
    if x is None or w is None or add is None or not is_op(add, "Add"):
        return False
    bias = add.inputs[1] if add.inputs[0] is product.outputs[0] else add.inputs[0]
    if bias is None or not _fits(x, w, bias):
        return False
    become(add, OP_TYPE, [x, w, bias], {}, DOMAIN)
    return True


def _fits(x: ir.Value, w: ir.Value, bias: ir.Value) -> bool:
    rows, matrix, vector = dims_of(x), dims_of(w), dims_of(bias)
    if rows is None or len(rows) < 2 or matrix is None or len(matrix) != 2 or matrix[1] is None:
        return False
    if x.dtype is None or not x.dtype.is_floating_point():
        return False
    return x.dtype == w.dtype == bias.dtype and vector == matrix[1:]
