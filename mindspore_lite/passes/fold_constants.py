"""Pass: computes everything that does not depend on the inputs.

1. A node of FOLDABLE with constant inputs becomes a Constant. A weight that goes through such a
   node and nowhere else stays a weight of its name, with the result as its content.
2. Shape and Size of a value of known dims; of a value with some open dims, what is taken out of
   its shape by Gather, Slice and their like, as far as that is known.
3. The target of a Reshape whose result is known but for one dim (-1), or for dims that it takes
   over from its operand (0).

Nothing above MAX_BYTES is read or made, and sizes are known before anything is computed: an Expand
to a gigabyte stays an Expand. Random operators, bodies, and what quantises stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import onnx.reference.ops
import onnx_ir as ir

from mindspore_lite.passes.edit import (
    array_of,
    attribute,
    bypass,
    constant,
    dims_of,
    given,
    graph_nodes,
    is_op,
    name_all,
    same_symbol,
    set_tensor,
    single_user,
    tensor_of,
)
from mindspore_lite.passes.known_sizes import Known, sizes_of

MAX_BYTES = 1 << 20  # guess: shape arithmetic and small tables, no weights of layers
FOLDABLE = {
    "Abs", "Add", "And", "Cast", "Ceil", "Clip", "Concat", "ConstantOfShape", "Cos", "Div",
    "Equal", "Exp", "Expand", "Flatten", "Floor", "Gather", "GatherElements", "GatherND",
    "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Log", "Max", "Mean", "Min", "Mod",
    "Mul", "Neg", "Not", "Or", "Pow", "Range", "Reciprocal", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceProd", "ReduceSum", "Relu", "Reshape", "Round", "Shape", "Sigmoid",
    "Sign", "Sin", "Size", "Slice", "Sqrt", "Squeeze", "Sub", "Sum", "Tanh", "Tile",
    "Transpose", "Trilu", "Unsqueeze", "Where", "Xor",
}  # fmt: skip
_BROADCAST = {
    "Add", "And", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max",
    "Mean", "Min", "Mod", "Mul", "Or", "Pow", "Sub", "Sum", "Where", "Xor",
}  # fmt: skip
Dim = int | ir.SymbolicDim
_PLAIN = frozenset(np.dtype(t) for t in "?bhiqBHIQefd")
# what the reference implementation raises where a node makes no sense: the engine will say so
_FAILURES = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


def fold_constants(model: ir.Model) -> int:
    """Fold in place; returns how many nodes were computed. Shapes should be inferred before."""
    version = model.opset_imports.get("", 0)
    known: Known = {}
    count = 0
    for node in graph_nodes(model):
        if node.domain != "" or len(node.outputs) != 1:
            continue
        result = _computed(node, version)
        if result is None:
            result = _known(node, known)
        if result is not None:
            _put(node, result)
            count += 1
        elif node.op_type == "Reshape":
            count += _settle_target(node, known)
    if count:
        name_all(model)
    return count


def _computed(node: ir.Node, version: int) -> np.ndarray | None:
    """The result of a node with constant inputs, unless it is too large or odd."""
    if node.op_type not in FOLDABLE or not node.inputs:
        return None
    given_values = [value for value in node.inputs if value is not None]
    tensors = [tensor_of(value) for value in given_values]
    if any(tensor is None or tensor.nbytes > MAX_BYTES for tensor in tensors):
        return None
    arrays = [array_of(value, MAX_BYTES) for value in node.inputs]
    if sum(array is not None and array.dtype in _PLAIN for array in arrays) < len(given_values):
        return None
    return folded_array(node, version, arrays)


def folded_array(node: ir.Node, version: int, arrays: list[np.ndarray | None]) -> np.ndarray | None:
    """What a node of FOLDABLE makes of these inputs, unless that is too large or odd."""
    if node.op_type not in FOLDABLE or node.domain != "" or not node.inputs:
        return None
    try:
        if _most_elements(node, arrays) * 8 > MAX_BYTES:
            return None
        # division by zero and casts of what does not fit are left to the engine
        with np.errstate(divide="raise", invalid="raise", over="ignore", under="ignore"):
            found = np.asarray(_evaluated(node, version, arrays))
    except _FAILURES:
        return None
    expected = node.outputs[0].dtype
    if found.dtype not in _PLAIN or (expected is not None and expected.numpy() != found.dtype):
        return None
    return found


def _evaluated(node: ir.Node, version: int, arrays: list[np.ndarray | None]) -> Any:
    if node.op_type == "ConstantOfShape":
        fill = attribute(node, "value")
        kind = np.zeros(1, np.float32) if fill is None else fill.numpy()
        return np.full(arrays[0], kind.reshape(-1)[0])
    meaning = onnx.reference.ops.load_op("", node.op_type, version)
    found = meaning.eval(*arrays, **{name: a.value for name, a in node.attributes.items()})
    return found[0] if isinstance(found, tuple) else found


def _most_elements(node: ir.Node, arrays: list[np.ndarray | None]) -> int:
    """At least as many elements as the result will have."""
    present = [a for a in arrays if a is not None]
    first = present[0]
    match node.op_type:
        case "ConstantOfShape":
            return _product(first)
        case "Expand":
            return _product(np.broadcast_shapes(first.shape, tuple(present[1].tolist())))
        case "Tile":
            return first.size * _product(present[1])
        case "Range":
            start, limit, delta = (float(a.item()) for a in present)
            return max(0, math.ceil((limit - start) / delta))
        case "Gather":
            axis: int = attribute(node, "axis", 0)
            return int(first.size // max(1, first.shape[axis]) * present[1].size)
        case "GatherND":
            return first.size * present[1].size
        case op_type if op_type in _BROADCAST:
            return _product(np.broadcast_shapes(*(a.shape for a in present)))
    return sum(a.size for a in present)


def _product(sizes: Iterable[int]) -> int:
    return math.prod(int(size) for size in sizes)


def _known(node: ir.Node, known: Known) -> np.ndarray | None:
    """Sizes that are known although the node's input is not."""
    if is_op(node, "Size"):
        dims = dims_of(node.inputs[0])
        if dims is None or None in dims:
            return None
        return np.asarray(math.prod(d for d in dims if d is not None), np.int64)
    sizes = sizes_of(node, known)
    if sizes is None:
        return None
    known[node.outputs[0]] = sizes
    whole = all(isinstance(size, int) for size in sizes.reshape(-1))
    return sizes.astype(np.int64) if whole else None


def _put(node: ir.Node, result: np.ndarray) -> None:
    output = node.outputs[0]
    weight = _only_weight(node)
    if weight is not None and result.dtype.kind == "f" and not output.is_graph_output():
        set_tensor(weight, result)
        bypass(node, weight)
        return
    node.op_type = "Constant"
    node.resize_inputs(0)
    set_tensor(output, result)


def _only_weight(node: ir.Node) -> ir.Value | None:
    """The weight that a node alone makes use of: numbers of a layer, no shape and no scalar."""
    weights = {value for value in node.inputs if value is not None and value.is_initializer()}
    large = [w for w in weights if w.const_value is not None and w.const_value.size > 1]
    floats = [w for w in large if w.dtype is not None and w.dtype.is_floating_point()]
    return floats[0] if len(floats) == 1 and single_user(floats[0]) else None


def _settle_target(node: ir.Node, known: Known) -> bool:
    x, target = node.inputs[0], given(node, 1)
    if x is None or target is None or tensor_of(target) is not None or attribute(node, "allowzero"):
        return False
    wanted = list(known[target]) if target in known else None
    made = None if node.outputs[0].shape is None else list(node.outputs[0].shape)
    if made is not None and 0 in made:  # a size of 0, which as a target would mean another thing
        made = None
    for dims in (wanted, made):
        settled = None if dims is None else _settled(dims, list(x.shape or ()))
        if settled is not None:
            node.replace_input_with(1, constant(node, np.asarray(settled, np.int64), "shape"))
            return True
    return False


def _settled(dims: list[Dim], own: list[Dim]) -> list[int] | None:
    """A target in numbers: 0 takes a dim over from the operand, -1 stands for one that is open."""
    found: list[Dim] = [
        0 if at < len(own) and same_symbol(own[at], dim) else dim for at, dim in enumerate(dims)
    ]
    unknown = [at for at, dim in enumerate(found) if not isinstance(dim, int)]
    if len(unknown) > 1 or (unknown and any(isinstance(d, int) and d < 1 for d in found)):
        # with a 0 beside it, -1 has no meaning for operands without elements
        return None
    return [dim if isinstance(dim, int) else -1 for dim in found]
