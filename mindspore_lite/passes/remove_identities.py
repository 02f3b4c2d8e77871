"""Pass: removes nodes that return their first input unchanged.

1. Identity; Dropout outside training; Concat, Split, Sum, Mean, Max and Min of a single value.
2. Cast to the type that a value has; Transpose that moves no axis.
3. Reshape, Flatten and Expand to the shape that a value has.
4. Slice of everything; Pad by nothing; Tile once; Resize by factors of 1.
5. Adding or subtracting 0, multiplying with or dividing by 1: a constant that widens nothing.
6. Reshape of what was only reshaped before: the first one is left out.

The names of inputs and outputs stay: a node between an input and an output remains.
"""

from __future__ import annotations

import onnx_ir as ir

from mindspore_lite.passes.edit import (
    array_of,
    attribute,
    bypass,
    dims_of,
    given,
    graph_nodes,
    ints_of,
    is_op,
    same_symbol,
    tensor_of,
)

_OF_MANY = {"Concat", "Sum", "Mean", "Max", "Min"}
_NEUTRAL = {"Add": 0, "Sub": 0, "Mul": 1, "Div": 1}
_EVERYTHING = 2**31 - 1  # the end that exporters write for a slice without one


def remove_identities(model: ir.Model) -> int:
    """Remove in place; returns how many went. Shapes should be inferred before."""
    count = 0
    for node in graph_nodes(model):
        if node.domain != "" or not node.inputs:
            continue
        same = _handed_on(node)
        if same is not None:
            count += bypass(node, same)
        else:
            count += _skip_reshape(node)
    return count


def _handed_on(node: ir.Node) -> ir.Value | None:
    """The input that comes out of a node as it went in."""
    x = node.inputs[0]
    if x is None or any(out.uses() or out.is_graph_output() for out in node.outputs[1:]):
        return None
    match node.op_type:
        case "Identity":
            same = True
        case "Dropout":
            same = given(node, 2) is None or _all_are(given(node, 2), False)
        case "Split":
            same = len(node.outputs) == 1
        case "Cast":
            same = x.dtype is not None and x.dtype == attribute(node, "to")
        case "Transpose":
            perm = attribute(node, "perm")
            same = perm is not None and list(perm) == sorted(perm)
        case "Reshape" | "Flatten":
            same = _same_shape(x, node.outputs[0], gaps=1)
        case "Expand":
            same = _same_shape(x, node.outputs[0], gaps=0)
        case "Slice":
            same = _takes_everything(node)
        case "Pad":
            same = _all_are(given(node, 1), 0)
        case "Tile":
            same = _all_are(given(node, 1), 1)
        case "Resize":
            cuts = attribute(node, "coordinate_transformation_mode") == "tf_crop_and_resize"
            same = not cuts and _all_are(given(node, 2), 1)
        case op_type if op_type in _OF_MANY:
            same = len(node.inputs) == 1
        case op_type if op_type in _NEUTRAL:
            return _neutral(node, _NEUTRAL[op_type])
        case _:
            same = False
    return x if same else None


def _all_are(value: ir.Value | None, number: float) -> bool:
    found = array_of(value)
    return found is not None and bool((found == number).all())


def _same_shape(x: ir.Value, result: ir.Value, gaps: int) -> bool:
    """Whether two shapes are the same, up to so many open dims that have no name in common.

    A Reshape keeps the number of elements: with one gap in the same place, nothing moved.
    """
    was = dims_of(x)
    if was is None or was != dims_of(result) or x.shape is None or result.shape is None:
        return False
    pairs = zip(was, x.shape, result.shape, strict=True)
    unlike = sum(size is None and not same_symbol(a, b) for size, a, b in pairs)
    return unlike == 0 or (unlike <= gaps and 0 not in was)


def _takes_everything(node: ir.Node) -> bool:
    x = node.inputs[0]
    starts, ends = ints_of(given(node, 1)), ints_of(given(node, 2))
    axes = ints_of(given(node, 3)) if given(node, 3) is not None else list(range(len(starts or ())))
    if starts is None or ends is None or axes is None or any(starts):
        return False
    if given(node, 4) is not None and not _all_are(given(node, 4), 1):
        return False
    dims = dims_of(x)
    if len(axes) != len(ends) or (dims is not None and any(axis >= len(dims) for axis in axes)):
        return False
    for axis, end in zip(axes, ends, strict=True):
        size = None if dims is None else dims[axis]
        if end < (_EVERYTHING if size is None else size):
            return False
    return True


def _neutral(node: ir.Node, number: int) -> ir.Value | None:
    """The operand beside a single constant 0 or 1, which may stand first where order is free."""
    sides = [(0, 1)] if node.op_type in ("Sub", "Div") else [(0, 1), (1, 0)]
    for kept, constant in sides:
        x, tensor = node.inputs[kept], tensor_of(node.inputs[constant])
        if (
            x is None
            or tensor is None
            or tensor.size != 1
            or not _all_are(node.inputs[constant], number)
        ):
            continue
        rank = len(tensor.shape)
        if rank == 0 or (x.shape is not None and len(x.shape) >= rank):
            return x
    return None


def _skip_reshape(node: ir.Node) -> bool:
    if not is_op(node, "Reshape"):
        return False
    inner, target = node.inputs[0], ints_of(given(node, 1))
    before = inner.producer() if inner is not None else None
    if (
        target is None
        or 0 in target
        or not is_op(before, "Reshape", "Flatten", "Squeeze", "Unsqueeze")
    ):
        return False
    assert before is not None
    node.replace_input_with(0, before.inputs[0])
    return True
