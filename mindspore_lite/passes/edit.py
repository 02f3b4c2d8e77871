"""Edits of onnx-ir graphs that passes share: read constants, insert and remove nodes.

Weights are values with a tensor and no producer; a tensor may also sit in a Constant node. Both are
constants here. A weight that callers may replace, because it is an input as well, is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import onnx_ir.passes.common as passes

Attributes = Mapping[str, Any]

DOMAIN = "mslite"  # of operators of our own, which passes for the torch engine put in


def is_op(node: ir.Node | None, *op_types: str) -> bool:
    """Whether a node is one of these operators of ONNX itself."""
    return node is not None and node.domain == "" and node.op_type in op_types


def tensor_of(value: ir.Value | None) -> ir.TensorProtocol | None:
    """The tensor of a constant, its bytes not read; None for what is computed or given."""
    if value is None or value.is_graph_input():
        return None
    if value.const_value is not None:
        return value.const_value
    node = value.producer()
    if node is None or not is_op(node, "Constant") or "sparse_value" in node.attributes:
        return None
    held = node.attributes.get("value")
    # onnx-ir's own function would rename the tensor, which may belong to the caller
    return ir.convenience.get_const_tensor(value) if held is None else held.as_tensor()


def array_of(value: ir.Value | None, most: int = 1 << 16) -> np.ndarray | None:
    """The numbers of a constant of at most so many elements."""
    tensor = tensor_of(value)
    if tensor is None or tensor.size > most or tensor.dtype == ir.DataType.STRING:
        return None
    return tensor.numpy()


def ints_of(value: ir.Value | None) -> list[int] | None:
    """A constant list of whole numbers, or a single one as a list."""
    found = array_of(value)
    if found is None or found.dtype.kind not in "iu" or found.ndim > 1:
        return None
    return [int(number) for number in found.reshape(-1)]


def number_of(value: ir.Value | None) -> float | None:
    """A constant of a single element, whatever its rank."""
    found = array_of(value, 1)
    return None if found is None or found.size != 1 else float(found.reshape(-1)[0])


def dims_of(value: ir.Value | None) -> list[int | None] | None:
    """The sizes of a value, None for one that is open; None where not even the rank is known."""
    if value is None or value.shape is None:
        return None
    return [dim if isinstance(dim, int) else None for dim in value.shape]


def same_symbol(a: int | ir.SymbolicDim, b: int | ir.SymbolicDim) -> bool:
    """Whether two open dims are the same one; those without a name may differ."""
    return isinstance(a, ir.SymbolicDim) and (a is b or (a.value is not None and a == b))


def given(node: ir.Node, at: int) -> ir.Value | None:
    """An input that may be missing."""
    return node.inputs[at] if at < len(node.inputs) else None


def attribute(node: ir.Node, name: str, default: Any = None) -> Any:
    """The value of an attribute."""
    found = node.attributes.get(name)
    return default if found is None else found.value


def set_attribute(node: ir.Node, name: str, value: Any) -> None:
    """Give an attribute a value."""
    node.attributes[name] = ir.convenience.convert_attribute(name, value)


def take_attribute(node: ir.Node, name: str, default: Any = None) -> Any:
    """The value of an attribute, which is removed."""
    found = node.attributes.pop(name, None)
    return default if found is None else found.value


def set_tensor(value: ir.Value, array: np.ndarray) -> None:
    """Give a constant other numbers; its name stays."""
    tensor = ir.Tensor(array, name=value.name)
    value.shape = ir.Shape(array.shape)
    value.type = ir.TensorType(ir.DataType.from_numpy(array.dtype))  # types may be shared
    producer = value.producer()
    if producer is None:
        value.const_value = tensor
    else:
        producer.attributes.clear()
        producer.attributes["value"] = ir.AttrTensor("value", tensor)


def set_input(node: ir.Node, at: int, value: ir.Value | None) -> None:
    """Put a value at a place, which may lie behind the present inputs."""
    if len(node.inputs) <= at:
        node.resize_inputs(at + 1)
    node.replace_input_with(at, value)


def before(
    node: ir.Node,
    op_type: str,
    inputs: Sequence[ir.Value | None],
    attributes: Attributes | None = None,
    label: str = "",
) -> ir.Value:
    """A new node in front of another; names are made unique at the end of the pass."""
    name = f"{node.outputs[0].name}_{label or op_type.lower()}"
    made = ir.node(op_type, inputs, attributes or {}, outputs=[ir.Value(name=name)], name=name)
    assert node.graph is not None
    node.graph.insert_before(node, made)
    return made.outputs[0]


def constant(node: ir.Node, array: np.ndarray | ir.TensorProtocol, label: str) -> ir.Value:
    """A constant for the use of a node."""
    tensor = ir.Tensor(array) if isinstance(array, np.ndarray) else array
    made = before(node, "Constant", [], {"value": tensor}, label)
    made.shape, made.dtype = ir.Shape(tensor.shape.numpy()), tensor.dtype
    return made


def ints(node: ir.Node, numbers: Sequence[int] | int, label: str) -> ir.Value:
    """A constant of whole numbers."""
    return constant(node, np.asarray(numbers, np.int64), label)


def after(
    node: ir.Node,
    op_type: str,
    more: Sequence[ir.Value | None] = (),
    attributes: Attributes | None = None,
) -> ir.Node:
    """A new node behind the first output of another, whose users and name it takes over."""
    old = node.outputs[0]
    new = ir.Value(type=old.type, shape=old.shape)
    ir.convenience.replace_all_uses_with(old, new, replace_graph_outputs=True)
    name = str(old.name)
    made = ir.node(op_type, [old, *more], attributes or {}, outputs=[new], name=f"{name}_end")
    old.name, old.shape = f"{name}_inner", None
    assert node.graph is not None
    node.graph.insert_after(node, made)
    new.name = name
    return made


def single_user(value: ir.Value) -> bool:
    """Whether one input of one node is all that a value is for."""
    return len(value.uses()) == 1 and not value.is_graph_output()


def only_user(value: ir.Value) -> ir.Node | None:
    """The only node that uses a value, if it is in the same graph."""
    if not single_user(value):
        return None
    (use,), producer = value.uses(), value.producer()
    return use.node if producer is not None and use.node.graph is producer.graph else None


def become(
    node: ir.Node,
    op_type: str,
    inputs: Sequence[ir.Value | None],
    attributes: Attributes,
    domain: str = "",
) -> None:
    """Make another operator of a node with a single output, which stays what it is to its users."""
    node.op_type, node.domain = op_type, domain
    node.attributes.clear()
    for name, value in attributes.items():
        set_attribute(node, name, value)
    node.resize_inputs(len(inputs))
    for at, value in enumerate(inputs):
        node.replace_input_with(at, value)


def bypass(node: ir.Node, value: ir.Value) -> bool:
    """Let the users of a node's first output use another value, and take the node out.

    Refused (False) where the output belongs to the graph's border and the value cannot take its
    place: it is an input or a weight, comes from outside, or is an output under a name of its own.
    """
    output, graph = node.outputs[0], node.graph
    assert graph is not None
    if output.is_graph_output():
        producer = value.producer()
        if producer is None or producer.graph is not graph or value.is_graph_output():
            return False
    if value.type is None:
        value.type = output.type
    if value.shape is None:
        value.shape = output.shape
    name, leaves = output.name, output.is_graph_output()
    ir.convenience.replace_all_uses_with(output, value, replace_graph_outputs=True)
    graph.remove(node, safe=True)
    if leaves:
        output.name = None
        value.name = name
    return True


def graph_nodes(model: ir.Model) -> list[ir.Node]:
    """Every node, those of bodies included, each before what is inside it."""
    return list(ir.traversal.RecursiveGraphIterator(model.graph))


def name_all(model: ir.Model) -> None:
    """Make the names of new values and nodes unique; borders and weights keep theirs."""
    passes.NameFixPass()(model)
