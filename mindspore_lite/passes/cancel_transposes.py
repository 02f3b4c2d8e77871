"""Pass: removes Transposes that undo each other.

1. Transpose(Transpose(x)) becomes one, or none where nothing is moved in the end.
2. The same with operators between them that treat every element alike: they work on what is not
   transposed. All their operands have to come from such Transposes, or be single numbers.
"""

from __future__ import annotations

import onnx_ir as ir

from mindspore_lite.passes.edit import (
    attribute,
    bypass,
    graph_nodes,
    is_op,
    set_attribute,
    single_user,
    tensor_of,
)
from mindspore_lite.passes.infer_shapes import SAID

_ELEMENTWISE = {
    "Abs", "Add", "And", "Cast", "Ceil", "Clip", "Div", "Elu", "Equal", "Erf", "Exp", "Floor",
    "Gelu", "Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish", "Identity", "LeakyRelu",
    "Less", "LessOrEqual", "Log", "Max", "Mean", "Min", "Mish", "Mul", "Neg", "Not", "Or", "Pow",
    "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Softplus", "Softsign", "Sqrt", "Sub",
    "Sum", "Tanh", "ThresholdedRelu", "Where", "Xor",
}  # fmt: skip
_DEPTH = 32  # operators in a row; guess

Perm = tuple[int, ...]


def cancel_transposes(model: ir.Model) -> int:
    """Cancel in place; returns how many Transposes were taken out or joined with another."""
    count = 0
    for node in graph_nodes(model):
        perm = _perm(node)
        x = node.inputs[0] if node.inputs else None
        if perm is None or x is None:
            continue
        before = x.producer()
        earlier = _perm(before)
        if earlier is not None and before is not None and len(earlier) == len(perm):
            node.replace_input_with(0, before.inputs[0])
            set_attribute(node, "perm", [earlier[axis] for axis in perm])
            count += 1
        elif _is_free(x, _inverse(perm), node, _DEPTH):
            inner = _freed(x, _inverse(perm))
            inner.shape = node.outputs[0].shape  # it is what the node made until now
            if not bypass(node, inner):
                node.replace_input_with(0, inner)
                node.op_type = "Identity"
                node.attributes.clear()
            count += 1
    return count


def _perm(node: ir.Node | None) -> Perm | None:
    if node is None or not is_op(node, "Transpose"):
        return None
    perm = attribute(node, "perm")
    if perm is None:
        shape = node.inputs[0].shape if node.inputs[0] is not None else None
        return None if shape is None else tuple(reversed(range(len(shape))))
    return tuple(perm)


def _inverse(perm: Perm) -> Perm:
    return tuple(sorted(range(len(perm)), key=perm.__getitem__))


def _is_free(value: ir.Value, perm: Perm, user: ir.Node, depth: int) -> bool:
    """Whether a value can be had without the transposition that is in it."""
    if _is_number(value, len(perm)):
        return True
    node = value.producer()
    if node is None or depth == 0:
        return False
    if _perm(node) == perm:
        return True
    if node.graph is not user.graph or not is_op(node, *_ELEMENTWISE) or not single_user(value):
        return False
    found = [_is_free(v, perm, node, depth - 1) for v in _operands(node)]
    # single numbers alone have no transposition in them
    return all(found) and not all(_is_number(v, len(perm)) for v in _operands(node))


def _freed(value: ir.Value, perm: Perm) -> ir.Value:
    if _is_number(value, len(perm)):
        return value
    node = value.producer()
    assert node is not None
    if _perm(node) == perm:
        assert node.inputs[0] is not None
        return node.inputs[0]
    for at, operand in enumerate(_operands(node)):
        node.replace_input_with(at, _freed(operand, perm))
    value.shape = None
    value.meta.pop(SAID, None)
    return value


def _operands(node: ir.Node) -> list[ir.Value]:
    """The inputs that carry elements; the limits of a Clip are single numbers anyway."""
    inputs = node.inputs[:1] if node.op_type == "Clip" else node.inputs
    return [value for value in inputs if value is not None]


def _is_number(value: ir.Value, rank: int) -> bool:
    tensor = tensor_of(value)
    return tensor is not None and tensor.size == 1 and len(tensor.shape) <= rank
