"""Whether an ONNX node keeps to its operator: the counts of its inputs and outputs, its attributes.

A node that does has every input and attribute that its operator demands, each attribute of the type
that the operator says, so that passes and engines may read them without a check of their own. ONNX
Runtime asks for the same; others let such nodes through, and so does onnx-ir. The checker of the
onnx package is not used because it takes nodes as protobuf only, with all tensors inside of them.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import NamedTuple

import onnx
import onnx_ir as ir

from mindspore_lite.errors import ModelFileError

_SINGLE = onnx.defs.OpSchema.FormalParameterOption.Single


class Rules(NamedTuple):
    """What an operator demands of a node."""

    inputs: range  # how many there may be
    outputs: range
    needed: tuple[bool, ...]  # for each input by its place: whether it may not be left out
    attributes: Mapping[str, ir.AttributeType]
    required: tuple[str, ...]  # those of the attributes that must be there


@functools.cache
def rules(domain: str, op_type: str, version: int) -> Rules | None:
    """The rules of an operator at a version; None where ONNX does not know it."""
    try:
        schema = onnx.defs.get_schema(op_type, version, domain)
    except (onnx.defs.SchemaError, TypeError):  # TypeError: a name that is no UTF-8 is bytes
        return None
    attributes = {name: ir.AttributeType(a.type.value) for name, a in schema.attributes.items()}
    return Rules(
        range(schema.min_input, schema.max_input + 1),
        range(schema.min_output, schema.max_output + 1),
        tuple(parameter.option == _SINGLE for parameter in schema.inputs),
        attributes,
        tuple(name for name, a in schema.attributes.items() if a.required),
    )


def check_node(node: ir.Node, version: int) -> None:
    """Check a node against the version of its operator that the model imports.

    Operators that ONNX does not know, such as those of a runtime's own domain, are let through.

    Raises:
        ModelFileError: The node does not keep to its operator.
    """
    known = rules(node.domain, node.op_type, version)
    if known is None:
        return
    for side, values, allowed in (
        ("inputs", node.inputs, known.inputs),
        ("outputs", node.outputs, known.outputs),
    ):
        if len(values) not in allowed:
            raise _refused(node, f"it has {len(values)} {side}, wanted {_counts(allowed)}")
    for at, needed in enumerate(known.needed[: len(node.inputs)]):
        if needed and node.inputs[at] is None:
            raise _refused(node, f"input {at} is left out, which must be there")
    _check_attributes(node, known)


def _check_attributes(node: ir.Node, known: Rules) -> None:
    for name in known.required:
        if name not in node.attributes:
            raise _refused(node, f"it lacks the attribute {name!r}")
    for name, attribute in node.attributes.items():
        wanted = known.attributes.get(name)
        if wanted is None:
            if name.startswith("__"):  # notes of a tool, by the rules of ONNX
                continue
            raise _refused(node, f"it has an attribute {name[:80]!r}, which its operator has not")
        if attribute.type != wanted:
            got = attribute.type.name
            raise _refused(node, f"attribute {name!r} is of type {got}, wanted {wanted.name}")


def _counts(allowed: range) -> str:
    first, last = allowed[0], allowed[-1]
    if first == last:
        return str(first)
    return f"{first} or more" if last >= 2**31 - 1 else f"{first} to {last}"


def _refused(node: ir.Node, why: str) -> ModelFileError:
    return ModelFileError(f"{place(node)}: {why}")


def place(node: ir.Node) -> str:
    """What errors call a node."""
    made = node.outputs[0].name if node.outputs else ""
    name = node.name or made or "without a name"
    return f"the {node.op_type[:80]} node {name[:200]!r}"
