"""Checks every node of an ONNX model before anything relies on it; see ops/node_rules.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import onnx_ir as ir

from mindspore_lite.errors import ModelFileError
from mindspore_lite.ops.node_rules import check_node, place

_NEWEST = 2**31 - 1  # of versions that ONNX can express


def check_nodes(model: ir.Model) -> None:
    """Check all nodes, those of sub-graphs and functions included.

    Inlining a function may bring an attribute of the call into its body, and needs another check.

    Raises:
        ModelFileError: A node does not keep to its operator, or reads what nothing makes.
    """
    _check_versions(model.opset_imports)
    local = model.functions.keys()
    _check_all(model.graph.all_nodes(), model.opset_imports, local, inside_function=False)
    for function in model.functions.values():
        _check_versions(function.opset_imports)
        opsets = {**model.opset_imports, **function.opset_imports}
        _check_all(function.all_nodes(), opsets, local, inside_function=True)


def _check_all(
    nodes: Iterable[ir.Node],
    opsets: Mapping[str, int],
    local: Iterable[ir.OperatorIdentifier],
    *,
    inside_function: bool,
) -> None:
    for node in nodes:
        for value in node.inputs:
            if value is not None and value.graph is None:
                raise ModelFileError(
                    f"{place(node)}: it reads {str(value.name)[:200]!r}, which is no input, weight "
                    "or result of a node"
                )
        if not inside_function:
            _refuse_references(node)
        if node.op_identifier() not in local:  # a function of the model's own says what it means
            check_node(node, opsets.get(node.domain) or opsets.get(node.domain or "ai.onnx", 1))


def _check_versions(opsets: Mapping[str, int]) -> None:
    for domain, version in opsets.items():
        if not 0 < version <= _NEWEST:
            raise ModelFileError(
                f"the model is of opset {version} of {domain or 'ai.onnx'!r}, wanted 1 or more"
            )


def _refuse_references(node: ir.Node) -> None:
    for name, attribute in node.attributes.items():
        if attribute.is_ref():
            raise ModelFileError(
                f"{place(node)}: attribute {name[:80]!r} refers to one of a function, but the node "
                "is in none"
            )
