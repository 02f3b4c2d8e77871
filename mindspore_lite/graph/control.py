"""Functions as values, and which graphs can reach which: the basis of control flow.

MindIR has no `if` and no `while`. A graph applied to some of its arguments (Partial) is a value,
Switch picks one of two such values, and calling the picked one is an `if`. A `while` is a graph
that calls itself at its very end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mindspore_lite.graph.storage import Slot
from mindspore_lite.mindir.records import Call, Graph, GraphRef, Model, Primitive

_ALIASES = ("Depend", "Load", "identity", "Identity")  # hand their first input on


@dataclass(frozen=True, eq=False)
class Closure:
    """A function with its first arguments given already."""

    function: Function
    arguments: tuple[Slot, ...]


@dataclass(frozen=True, eq=False)
class Choice:
    """One of two functions, by a truth value that may be known only at run time."""

    condition: Any
    yes: Function
    no: Function


@dataclass(frozen=True, eq=False)
class Known:
    """A function of nothing whose result is there already."""

    result: Slot


class Raised(Exception):
    """A graph came to a Python `raise`: the branch that it stands in is not taken."""


Function = GraphRef | Closure | Choice | Known
FUNCTIONS = (GraphRef, Closure, Choice, Known)


class Reach:
    """Answers from which graphs a graph can be reached by calls."""

    def __init__(self, model: Model) -> None:
        graphs = {model.graph.name: model.graph, **model.functions}
        self._calls = {name: _mentioned(graph, graphs) for name, graph in graphs.items()}
        self._known: dict[tuple[str, frozenset[str]], frozenset[str]] = {}

    def reaches(self, start: str, goal: str, without: Iterable[str] = ()) -> bool:
        """Whether calls lead from `start` to `goal`, by one step at least, past no other graph."""
        blocked = frozenset(without)
        if (start, blocked) not in self._known:
            self._known[start, blocked] = self._reachable(start, blocked)
        return goal in self._known[start, blocked]

    def _reachable(self, start: str, blocked: frozenset[str]) -> frozenset[str]:
        found: set[str] = set()
        pending = [start]
        while pending:
            new = self._calls.get(pending.pop(), frozenset()) - found - blocked
            found |= new
            pending += new
        return frozenset(found)


def _mentioned(graph: Graph, graphs: Mapping[str, Graph]) -> frozenset[str]:
    names: set[str] = set(graph.outputs)
    for node in graph.nodes:
        if isinstance(node, Call):
            names.update(node.inputs)
            if isinstance(node.target, GraphRef):
                names.add(node.target.name)
    return frozenset(names & graphs.keys())


@dataclass(frozen=True)
class Tail:
    """The call that a graph ends with, and the names that stand for its result or come after it."""

    call: Call
    after: frozenset[str]


def tail_of(graph: Graph) -> Tail | None:
    """The call of a function whose result is the graph's own, if there is one.

    Depend and UpdateState may stand around it; any other use of the result means that something
    is left to do after the call.
    """
    nodes = {node.name: node for node in graph.nodes if isinstance(node, Call)}
    if len(graph.outputs) != 1:
        return None
    node = nodes.get(graph.outputs[0])
    while node and isinstance(node.target, Primitive) and node.target.op in _ALIASES:
        node = nodes.get(node.inputs[0]) if node.inputs else None
    if node is None or isinstance(node.target, Primitive):
        return None
    after = {node.name}
    for other in graph.nodes:
        if isinstance(other, Call) and not after.isdisjoint(other.inputs):
            if not isinstance(other.target, Primitive):
                return None
            if other.target.op not in (*_ALIASES, "UpdateState"):
                return None
            after.add(other.name)
    return Tail(node, frozenset(after))
