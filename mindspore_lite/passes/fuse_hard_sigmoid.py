"""Pass: clip(x + 3, 0, 6) / 6, spelt out -> HardSigmoid(x); HardSwish is x times that.

Exporters write HardSwish as Add, Clip, Mul and Div: x * clip / 6, x * (clip / 6) or (x / 6) * clip,
with the factors in any order, and a Mul by 1/6 in the place of the Div. ONNX Runtime joins none of
them, and goes over all of x four times; of HardSigmoid and Mul, two times. (It takes HardSwish
itself apart into the same two, and files before opset 14 have none.)

1. The constants are exactly 3, 0, 6 and 6, or the float32 nearest to 1/6; all are float32.
2. Results in between have no other use.
3. No constant has more dims than x.

Results differ from those of the separate operators by rounding alone: by 2.4e-7 at most where x is
between -3 and 3, and by a last digit beyond.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mindspore_lite.passes.edit import (
    become,
    before,
    dims_of,
    given,
    graph_nodes,
    is_op,
    name_all,
    number_of,
    only_user,
    tensor_of,
)

_SIXTH = float(np.float32(1 / 6))
_SIGMOID = {"alpha": 1 / 6, "beta": 0.5}
_DEPTH = 8  # operators that are looked through for a number of dims; guess
_WIDE = ("Conv", "ConvTranspose", "BatchNormalization", "GlobalAveragePool", "MaxPool", "Gemm")
_ELEMENTWISE = ("Add", "Sub", "Mul", "Div", "Relu", "Clip", "Sigmoid", "HardSigmoid")


def fuse_hard_sigmoid(model: ir.Model) -> int:
    """Fuse in place; returns how many were fused."""
    fused = sum(is_op(node, "Clip") and _fuse(node) for node in graph_nodes(model))
    if fused:
        name_all(model)
    return fused


def _fuse(clip: ir.Node) -> bool:
    """Exchange what a Clip belongs to, if it is one of the forms."""
    add = None if clip.inputs[0] is None else clip.inputs[0].producer()
    user = only_user(clip.outputs[0])
    if add is None or user is None or only_user(add.outputs[0]) is not clip:
        return False
    if not _is_number(given(clip, 1), 0) or not _is_number(given(clip, 2), 6):
        return False
    x = _beside(add, "Add", 3)
    if x is None:
        return False
    if _is_sixth_of(user, clip.outputs[0], x):
        become(user, "HardSigmoid", [x], _SIGMOID)
        _remove(clip, add)
        return True
    z = next((v for v in user.inputs if v is not clip.outputs[0]), None)
    if not is_op(user, "Mul") or z is None:
        return False
    end, inner = only_user(user.outputs[0]), z.producer()
    if end is not None and _is_sixth_of(end, user.outputs[0], x, z):
        _gate(end, z, x)
        _remove(user, clip, add)
        return True
    if inner is None or only_user(z) is not user:
        return False
    for z in inner.inputs:
        if z is not None and _is_sixth_of(inner, z, x, z):
            _gate(user, z, x)
            _remove(inner, clip, add)
            return True
    return False


def _gate(node: ir.Node, z: ir.Value, x: ir.Value) -> None:
    """Let a node compute z * HardSigmoid(x)."""
    gate = before(node, "HardSigmoid", [x], _SIGMOID)
    gate.type, gate.shape = x.type, x.shape
    become(node, "Mul", [z, gate], {})


def _remove(*nodes: ir.Node) -> None:
    for node in nodes:
        assert node.graph is not None
        node.graph.remove(node, safe=True)


def _is_sixth_of(node: ir.Node, value: ir.Value, *shaped: ir.Value) -> bool:
    """Whether a node divides a value by six, whose dims are those of `shaped` together."""
    if is_op(node, "Div"):
        return node.inputs[0] is value and _beside(node, "Div", 6, *shaped) is value
    return _beside(node, "Mul", _SIXTH, *shaped) is value


def _beside(node: ir.Node, op_type: str, number: float, *shaped: ir.Value) -> ir.Value | None:
    """The operand next to a number that adds no dims to it, or to the values that make it up."""
    if not is_op(node, op_type):
        return None
    for value, constant in (node.inputs, node.inputs[::-1]):
        if value is None or not _is_number(constant, number):
            continue
        tensor = tensor_of(constant)
        known = max(_dims_at_least(v, _DEPTH) for v in shaped or (value,))
        return value if tensor is not None and len(tensor.shape) <= known else None
    return None


def _is_number(value: ir.Value | None, number: float) -> bool:
    tensor = tensor_of(value)
    is_float = tensor is not None and tensor.dtype == ir.DataType.FLOAT
    return is_float and number_of(value) == number


def _dims_at_least(value: ir.Value | None, depth: int) -> int:
    """How many dims a value has for certain; files seldom say it of results in between."""
    dims = dims_of(value)
    if dims is not None:
        return len(dims)
    node = None if value is None else value.producer()
    if node is None or depth == 0 or node.domain:
        return 0
    if node.op_type in _WIDE:
        return 2
    if node.op_type not in _ELEMENTWISE:
        return 0
    operands = node.inputs[:1] if node.op_type == "Clip" else node.inputs
    return max(_dims_at_least(one, depth - 1) for one in operands)
