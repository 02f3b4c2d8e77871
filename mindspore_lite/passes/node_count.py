"""Counts the nodes that a model has once inlined, before anything is expanded.

Sizes are sums over the functions, callees first: the time grows with the file, not with the result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

import onnx_ir as ir

from mindspore_lite.core.budget import SECTION
from mindspore_lite.errors import ModelFileError

# Sub-graphs in sub-graphs. One more than 31, and no protobuf parser reads the model (a message has
# at most 100 levels, a sub-graph takes three); it also keeps native recursion harmless.
MAX_NESTING = 30
_ENDS = 16  # inputs, outputs and attributes that count as a further node; guess
_MAX_NAME = 200  # characters of a name in an error
WHY = "the model's functions cannot be inlined: "  # begins all errors about them


def check_size(model: ir.Model, max_nodes: int) -> None:
    """Refuse a model that has too many nodes or levels, with its functions inlined."""
    held = {key: _measured(function) for key, function in model.functions.items()}
    order = TopologicalSorter(
        {key: set(found.calls) & held.keys() for key, found in held.items()}
    ).static_order()
    sizes: dict[ir.OperatorIdentifier, _Size] = {}
    try:
        for key in order:
            sizes[key] = held[key].whole(sizes, max_nodes)
    except CycleError as exc:
        names = " -> ".join(str(key[1])[:_MAX_NAME] for key in exc.args[1][:5])
        raise ModelFileError(f"{WHY}they call each other in a cycle ({names})") from exc
    total = _measured(model.graph).whole(sizes, max_nodes)
    if total.nodes > max_nodes:
        raise too_many(max_nodes)
    if total.levels > MAX_NESTING:
        raise ModelFileError(
            f"sub-graphs lie more than {MAX_NESTING} deep in each other, which no engine reads"
        )


def too_many(max_nodes: int) -> ModelFileError:
    """The error of a model with too many nodes."""
    return ModelFileError(
        f"the model has more than {max_nodes} nodes once inlined, which is all that "
        f"[{SECTION}] max_nodes allows; if the file can be trusted, set a larger number"
    )


class _Size(NamedTuple):
    """What a graph is, once inlined: nodes with those of bodies, and levels of bodies."""

    nodes: int
    levels: int


@dataclass(frozen=True)
class _Measured:
    """One graph or function by itself: its nodes, and what it calls how often and how deep."""

    size: _Size
    calls: dict[ir.OperatorIdentifier, tuple[int, int]]  # how often, and at most how deep

    def whole(self, sizes: Mapping[ir.OperatorIdentifier, _Size], most: int) -> _Size:
        """With what it calls; above the bounds no exact number is kept."""
        nodes, levels = self.size
        for key, (count, depth) in self.calls.items():
            if key in sizes:
                nodes += count * sizes[key].nodes
                levels = max(levels, depth + sizes[key].levels)
        return _Size(min(nodes, most + 1), min(levels, MAX_NESTING + 1))


def _measured(graph: ir.Graph | ir.Function) -> _Measured:
    nodes, levels = node_weight(len(graph.inputs) + len(graph.outputs)) - 1, 0
    count: Counter[ir.OperatorIdentifier] = Counter()
    deepest: dict[ir.OperatorIdentifier, int] = {}
    for node, depth in with_depth(graph):
        key = node.op_identifier()
        nodes, levels = nodes + _weight_of(node), max(levels, depth)
        count[key] += 1
        deepest[key] = max(deepest.get(key, 0), depth)
    return _Measured(_Size(nodes, levels), {key: (count[key], deepest[key]) for key in count})


def node_weight(ends: int) -> int:
    """What something with so many inputs, outputs and attributes counts for.

    Else one node of ten thousand inputs, copied by each call, would take all memory.
    """
    return 1 + ends // _ENDS


def _weight_of(node: ir.Node) -> int:
    found = node_weight(len(node.inputs) + len(node.outputs) + len(node.attributes))
    for body in bodies(node):
        found += node_weight(len(body.inputs) + len(body.outputs) + len(body.initializers)) - 1
    return found


def levels_of(model: ir.Model) -> int:
    """How deep bodies lie in each other, in a model without functions."""
    return _measured(model.graph).size.levels


def with_depth(graph: ir.Graph | ir.Function) -> Iterator[tuple[ir.Node, int]]:
    """All nodes, also of bodies, with how many bodies each lies in."""
    waiting: list[tuple[ir.Graph | ir.Function, int]] = [(graph, 0)]
    while waiting:
        inner, depth = waiting.pop()
        for node in inner:
            yield node, depth
            waiting += [(body, depth + 1) for body in bodies(node)]


def bodies(node: ir.Node) -> list[ir.Graph]:
    """The sub-graphs of a node."""
    return [graph for attribute in node.attributes.values() for graph in bodies_of(attribute)]


def bodies_of(attribute: ir.Attr) -> list[ir.Graph]:
    """The graphs that an attribute holds."""
    if attribute.is_ref():
        return []
    if attribute.type == ir.AttributeType.GRAPH:
        return [attribute.as_graph()]
    return list(attribute.as_graphs()) if attribute.type == ir.AttributeType.GRAPHS else []
