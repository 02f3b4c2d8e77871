"""Checks ONNX nodes against their operators, so that passes and engines can rely on them.

A node that does has every input and attribute that its operator demands, and each attribute is of
the type that the operator says: they can be read without another check. ONNX Runtime asks for the
same, but only after our own passes; other runtimes and onnx-ir let such nodes through. The checker
of the onnx package is not used: it takes protobuf alone, with all tensors inside the nodes.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import onnx
import onnx_ir as ir

from mindspore_lite.errors import ModelFileError

MAX_NAME = 200  # characters of a name in an error
_MOST = 2**31 - 1  # of versions, and of what engines keep in 32 bits
_RANK = 1000  # of a tensor; guess: NumPy has at most 64
_COUNTS = (
    "num_heads", "q_num_heads", "kv_num_heads", "hidden_size", "group", "num_groups", "blocksize",
    "strides", "dilations", "kernel_shape",
)  # fmt: skip
_RANGES = {
    **dict.fromkeys(_COUNTS, (1, _MOST)),
    **dict.fromkeys(("axis", "axes", "batch_axis", "time_axis"), (-_RANK, _RANK)),
    **dict.fromkeys(("batch_dims", "perm"), (0, _RANK)),
}
_TERM = r"(?:[A-Za-z ]|\.\.\.)*"
_EQUATION = re.compile(rf"{_TERM}(?:,{_TERM})*(?:->{_TERM})?")  # on others onnx may never end
_OPTIONAL = onnx.defs.OpSchema.FormalParameterOption.Optional


class Rules(NamedTuple):
    """What an operator demands of a node."""

    inputs: tuple[int, int]  # the fewest, the most
    outputs: tuple[int, int]
    needed: tuple[bool, ...]  # for each input by its place: whether it may not be left out; the
    # last one counts for all behind it
    attributes: Mapping[str, ir.AttributeType]
    required: tuple[str, ...]  # those of the attributes that must be there


@functools.cache
def rules(domain: str, op_type: str, version: int) -> Rules | None:
    """The rules of an operator at a version; None where ONNX does not know it."""
    try:
        schema = onnx.defs.get_schema(op_type, version, domain)
    except (onnx.defs.SchemaError, TypeError):  # TypeError: a name that is no UTF-8 is bytes
        return None
    return Rules(
        (schema.min_input, schema.max_input),
        (schema.min_output, schema.max_output),
        tuple(parameter.option != _OPTIONAL for parameter in schema.inputs),
        {
            name: ir.AttributeType(a.type.value)  # type: ignore[attr-defined] # a stub lacks it
            for name, a in schema.attributes.items()
        },
        tuple(name for name, a in schema.attributes.items() if a.required),
    )


def misuse(node: ir.Node, known: Rules) -> str:
    """Where a node is not as its operator wants it; "" for nowhere."""
    for what, count, (least, most) in (
        ("inputs", len(node.inputs), known.inputs),
        ("outputs", len(node.outputs), known.outputs),
    ):
        if not least <= count <= most:
            return f"it has {count} {what}, wanted {least} to {most}"
    for name in known.required:
        if name not in node.attributes:
            return f"it lacks the attribute {name!r}"
    for name, found in node.attributes.items():
        wanted = known.attributes.get(name)
        if wanted is not None and found.type != wanted:
            return f"its attribute {name!r} is {found.type.name}, wanted {wanted.name}"
    return _out_of_range(node)


def title(node: ir.Node) -> str:
    """What errors call a node."""
    name = node.name or next((v.name for v in node.outputs if v.name), "")
    return f"node {name[:MAX_NAME]!r} ({node.op_type[:MAX_NAME]})"


def check_nodes(model: ir.Model) -> None:
    """Check all nodes, those of sub-graphs and functions included.

    Inlining may bring attributes of a call into a function's body, and needs another check.
    Operators that ONNX does not know, such as those of a runtime's own domain, are let through.

    Raises:
        ModelFileError: A node does not keep to its operator, a node or an output uses what nothing
            makes, or nodes need each other in a circle.
    """
    local = model.functions.keys()
    _check_scope(model.graph.all_nodes(), model.opset_imports, local, is_function=False)
    for function in model.functions.values():
        opsets = {**model.opset_imports, **function.opset_imports}
        _check_scope(function.all_nodes(), opsets, local, is_function=True)
    _check_outputs(model)
    sort_nodes(model)


def _check_outputs(model: ir.Model) -> None:
    graphs = [*model.graphs(), *(function.graph for function in model.functions.values())]
    for graph in graphs:
        for value in graph.outputs:
            is_made = value.producer() is not None or value.is_graph_input()
            if not value.name or not (is_made or value.is_initializer()):
                raise ModelFileError(
                    f"the output {str(value.name or '')[:MAX_NAME]!r} of the graph "
                    f"{str(graph.name or '')[:MAX_NAME]!r} is made by nothing; export it again"
                )


def sort_nodes(model: ir.Model) -> None:
    """Put nodes after those that they need, as ONNX wants it; some exporters do not care.

    Raises:
        ModelFileError: They need each other in a circle.
    """
    graphs = [*model.graphs(), *(function.graph for function in model.functions.values())]
    if all(_is_sorted(graph) for graph in graphs):
        return
    try:
        model.graph.sort()
        for function in model.functions.values():
            function.sort()
    except ValueError as exc:
        raise ModelFileError(f"its nodes need each other in a circle ({exc})") from exc


def _is_sorted(graph: ir.Graph) -> bool:
    seen: set[ir.Node] = set()
    for node in graph:
        needed = (value.producer() for value in node.inputs if value is not None)
        if any(n is not None and n.graph is graph and n not in seen for n in needed):
            return False
        seen.add(node)
    return True


def _check_scope(
    nodes: Iterable[ir.Node],
    opsets: Mapping[str, int],
    local: Collection[ir.OperatorIdentifier],
    *,
    is_function: bool,
) -> None:
    for domain, version in opsets.items():
        if not 0 < version <= _MOST:
            raise ModelFileError(
                f"the model is of opset {version} of {domain or 'ai.onnx'!r}, wanted 1 or more"
            )
    for node in nodes:
        version = opsets.get(node.domain) or opsets.get(node.domain or "ai.onnx", 1)
        # a function of the model's own says itself what its calls mean
        known = None if node.op_identifier() in local else rules(node.domain, node.op_type, version)
        found = _loose(node) or _out_of_range(node) or ("" if is_function else _reference(node))
        if known is not None:
            found = found or misuse(node, known) or _strict_misuse(node, known)
        if found:
            raise ModelFileError(f"{title(node)}: {found}")


def _loose(node: ir.Node) -> str:
    for value in node.inputs:
        if value is not None and value.graph is None:
            return f"it uses {str(value.name)[:MAX_NAME]!r}, which nothing makes"
    return ""


def _out_of_range(node: ir.Node) -> str:
    """Numbers that engines divide by, or count dims with, and which end the process if wrong."""
    if node.op_type == "Einsum" and (found := node.attributes.get("equation")) is not None:
        text = found.value if isinstance(found.value, str) else ""
        if not found.is_ref() and not _EQUATION.fullmatch(text):
            return (
                f"its attribute 'equation' is {text[:MAX_NAME]!r}, wanted one such as 'ij,jk->ik'"
            )
    if node.op_type == "Split" and not node.domain and (parts := _parts(node)) != len(node.outputs):
        return f"it splits into {parts} parts and has {len(node.outputs)} outputs"
    for name in _RANGES.keys() & node.attributes.keys():
        found = node.attributes[name]
        if found.is_ref() or found.type not in (ir.AttributeType.INT, ir.AttributeType.INTS):
            continue
        least, most = _RANGES[name]
        if node.op_type == "RotaryEmbedding":  # where 0 heads leave it to the shape
            least = min(least, 0)
        value = found.value
        for number in value if isinstance(value, Sequence) else [value]:
            if not least <= number <= most:
                return f"its attribute {name!r} has {number}, wanted {least} to {most}"
        if name == "perm" and isinstance(value, Sequence) and len(set(value)) != len(value):
            return f"its attribute 'perm' is {list(value)}, in which an axis comes twice"
    return ""


def _parts(node: ir.Node) -> int:
    """Into how many parts a Split splits, as far as it says."""
    said = node.attributes.get("num_outputs")
    if said is not None and said.type == ir.AttributeType.INT and not said.is_ref():
        return int(said.value)
    listed = node.attributes.get("split")
    if listed is not None and listed.type == ir.AttributeType.INTS and not listed.is_ref():
        return len(listed.value)
    sizes = node.inputs[1].const_value if len(node.inputs) > 1 and node.inputs[1] else None
    return len(node.outputs) if sizes is None else sizes.size


def _reference(node: ir.Node) -> str:
    for name, attribute in node.attributes.items():
        if attribute.is_ref():
            return f"its attribute {name[:MAX_NAME]!r} refers to a function's, and it is in none"
    return ""


def _strict_misuse(node: ir.Node, known: Rules) -> str:
    """What the converter lets through, for it translates nodes one by one, and no engine does.

    An attribute that an operator has in another version only might be read by a pass.
    """
    last = len(known.needed) - 1
    for at, value in enumerate(node.inputs):
        if value is None and known.needed[min(at, last)]:
            return f"its input {at} is left out, which must be there"
    for name in node.attributes:
        if name not in known.attributes and not name.startswith("__"):  # that is a tool's note
            return f"its operator has no attribute {name[:MAX_NAME]!r}"
    return ""
