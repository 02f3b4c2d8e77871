"""Infers the element type of every value in an ONNX graph.

Operators name types by variables (Add: both operands and the result are `T`), so types alone can be
followed through a graph without its shapes, at a few microseconds per node.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import onnx
import onnx_ir as ir

from mindspore_lite.errors import ModelFileError
from mindspore_lite.passes.check_nodes import title

Types = Mapping[ir.Value, ir.DataType]

# Attributes that decide the type of a result
_TYPE_ATTRIBUTES = ("to", "dtype", "output_dtype", "output_datatype", "stash_type")
_VALUE_ATTRIBUTES = ("value", "sparse_value")
_NUMBERS = {
    "value_int": ir.DataType.INT64,
    "value_ints": ir.DataType.INT64,
    "value_float": ir.DataType.FLOAT,
    "value_floats": ir.DataType.FLOAT,
    "value_string": ir.DataType.STRING,
    "value_strings": ir.DataType.STRING,
}
# Results whose type no operand has, where no attribute says it either
_USUAL = dict.fromkeys(
    (
        "ConstantOfShape", "RandomNormal", "RandomUniform", "BlackmanWindow", "HammingWindow",
        "HannWindow", "MelWeightMatrix", "LayerNormalization",
    ),
    ir.DataType.FLOAT,
) | {"Multinomial": ir.DataType.INT32}  # fmt: skip
# What ONNX Runtime had before ONNX did: its optimiser writes them into models of any opset
_EARLY = {"LayerNormalization": 17, "ThresholdedRelu": 10}
_LIKE = {"SimplifiedLayerNormalization": "LayerNormalization"}  # which ONNX has not at all


class Formal(NamedTuple):
    """A parameter of an operator: its name, and its type variable or type."""

    name: str
    type: str


class Signature(NamedTuple):
    """What an operator says about the types of its inputs and outputs."""

    since: int  # the version that last changed the operator
    has_function: bool  # it is defined by other operators
    inputs: tuple[Formal, ...]
    outputs: tuple[Formal, ...]

    def pairs(self, node: ir.Node) -> Iterator[tuple[Formal, ir.Value]]:
        """Every input and output of a node with its parameter; the last one may be repeated."""
        for formals, values in ((self.inputs, node.inputs), (self.outputs, node.outputs)):
            last = len(formals) - 1
            for at, value in enumerate(values if formals else ()):
                if value is not None:
                    yield formals[min(at, last)], value


@functools.cache
def signature(domain: str, op_type: str, version: int) -> Signature | None:
    """The signature of an operator at a version; None where ONNX does not know it."""
    if domain == "":
        op_type = _LIKE.get(op_type, op_type)
        version = max(version, _EARLY.get(op_type, 0))
    try:
        schema = onnx.defs.get_schema(op_type, version, domain)
    except (onnx.defs.SchemaError, TypeError):  # TypeError: a name that is no UTF-8 is bytes
        return None
    return Signature(
        schema.since_version,
        # onnx's own stubs lack these two
        schema.has_function or schema.has_context_dependent_function,  # type: ignore[attr-defined]
        tuple(_formal(parameter) for parameter in schema.inputs),
        tuple(_formal(parameter) for parameter in schema.outputs),
    )


def _formal(parameter: onnx.defs.OpSchema.FormalParameter) -> Formal:
    only = parameter.types if len(parameter.types) == 1 else ()  # a variable with a single choice
    return Formal(parameter.name, *(only or (parameter.type_str,)))


def element_types(model: ir.Model) -> dict[ir.Value, ir.DataType]:
    """The types that are declared, or follow from those; a value may still be missing."""
    types: dict[ir.Value, ir.DataType] = {}
    _walk(model.graph, model.opset_imports, types)
    return types


def _walk(graph: ir.Graph, opsets: Mapping[str, int], types: dict[ir.Value, ir.DataType]) -> None:
    for value in (*graph.inputs, *graph.initializers.values()):
        _note(value, value.dtype, types)
    for node in graph:
        for name in node.attributes:
            for inner in _subgraphs(node, name):
                _bind(node, inner, types)
                _walk(inner, opsets, types)
        known = signature(node.domain, node.op_type, opsets.get(node.domain, 1))
        for at, value in enumerate(node.outputs):
            _note(value, value.dtype or _result(node, at, known, types), types)


def _note(value: ir.Value, found: ir.DataType | None, types: dict[ir.Value, ir.DataType]) -> None:
    if found is None and value.const_value is not None:
        found = value.const_value.dtype
    if found is not None:
        types.setdefault(value, found)


def _subgraphs(node: ir.Node, name: str) -> list[ir.Graph]:
    attribute = node.attributes[name]
    if attribute.type == ir.AttributeType.GRAPH:
        return [attribute.as_graph()]
    return list(attribute.as_graphs()) if attribute.type == ir.AttributeType.GRAPHS else []


def _bind(node: ir.Node, body: ir.Graph, types: dict[ir.Value, ir.DataType]) -> None:
    """The inputs of a loop's body have the types of the loop's own."""
    if node.op_type == "Loop":
        outer = [None, None, *node.inputs[2:]]
    elif node.op_type == "Scan":
        outer = list(node.inputs)
    else:
        return
    for inner, given in zip(body.inputs, outer, strict=False):
        _note(inner, types.get(given) if given is not None else None, types)


def _result(node: ir.Node, at: int, known: Signature | None, types: Types) -> ir.DataType | None:
    """The type of a result, from what the operator says of it."""
    if node.domain == "" and node.op_type in ("If", "Loop", "Scan"):
        return _result_of_body(node, at, types)
    if known is None or not known.outputs:
        return None
    kind = known.outputs[min(at, len(known.outputs) - 1)].type
    if kind.startswith("tensor("):
        return named(kind)
    if kind not in [formal.type for formal in known.inputs]:
        for name in _TYPE_ATTRIBUTES:
            if name in node.attributes and (said := type_attribute(node, name)):
                return said  # 0 would be as good as nothing
    for formal, value in known.pairs(node):
        if formal.type == kind and value in types:
            return types[value]
    if any(formal.type == kind for formal in known.inputs):
        return None  # that of an operand, which is not known
    return _type_of_constant(node, types)


def type_attribute(node: ir.Node, name: str) -> ir.DataType:
    """The element type that an attribute names by its number.

    Raises:
        ModelFileError: There is no type of that number.
    """
    number = _typed(node, name, ir.AttributeType.INT).as_int()
    try:
        return ir.DataType(number)
    except ValueError as exc:
        raise ModelFileError(
            f"{title(node)}: its attribute {name!r} is {number}, which is the number of no type"
        ) from exc


def _typed(node: ir.Node, name: str, wanted: ir.AttributeType) -> ir.Attr:
    """An attribute of the type that its operator says; a body may come here unchecked."""
    found = node.attributes[name]
    if found.type != wanted:
        raise ModelFileError(
            f"{title(node)}: its attribute {name!r} is {found.type.name}, wanted {wanted.name}"
        )
    return found


def _type_of_constant(node: ir.Node, types: Types) -> ir.DataType | None:
    for name in _VALUE_ATTRIBUTES:
        if name in node.attributes:
            return ir.DataType(_typed(node, name, ir.AttributeType.TENSOR).as_tensor().dtype)
    for name, kind in _NUMBERS.items():
        if name in node.attributes:
            return kind
    if node.op_type in _USUAL:
        return _USUAL[node.op_type]
    at = 1 if node.op_type == "DequantizeLinear" else 0  # as its scale is, since opset 23
    followed = node.inputs[at] if at < len(node.inputs) else None  # by EyeLike and its kin
    return types.get(followed) if followed is not None else None


def _result_of_body(node: ir.Node, at: int, types: Types) -> ir.DataType | None:
    for name in node.attributes:
        for body in _subgraphs(node, name):
            place = at + (1 if node.op_type == "Loop" else 0)  # its first result is the condition
            if place < len(body.outputs) and body.outputs[place] in types:
                return types[body.outputs[place]]
    return None


def written(dtype: ir.DataType) -> str:
    """A type as operators and kernels spell it: tensor(float), tensor(int8)."""
    return f"tensor({_SPELLED.get(dtype, dtype.name.lower())})"


@functools.cache
def named(text: str) -> ir.DataType | None:
    """The type that operators spell so; None for sequences and other things that are no tensors."""
    return next((dtype for dtype in ir.DataType if written(dtype) == text), None)


_SPELLED = {ir.DataType.FLOAT: "float", ir.DataType.DOUBLE: "double"}
