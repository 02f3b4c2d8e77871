"""Finds the weights of a graph that a list of names means.

A name of the list is, in this order:

1. where it comes with a node: what that node means (see 3), or else that weight;
2. a weight of exactly this name;
3. a node of this name, the node that makes the tensor of this name, or the nodes of this scope:
   `/encoder/fc1` is the scope of `/encoder/fc1/MatMul`. They mean the one weight that they use;
4. as 3, for the path to which the name of a parameter leads (weights/rename.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mindspore_lite.core.dtypes import TABLE
from mindspore_lite.errors import EngineError
from mindspore_lite.weights.names import Near, shortened
from mindspore_lite.weights.rename import collapsed, node_path

if TYPE_CHECKING:
    import onnx_ir as ir

# a weight is often turned or converted on its way to the node that uses it
_MOVES = frozenset({"Transpose", "Cast", "Reshape", "Identity"})
_PRODUCTS = frozenset({"MatMul", "Gemm", "Conv", "ConvTranspose"})
_TYPES = frozenset(row.onnx for row in TABLE if not row.name.startswith("complex"))
_INSIDE = "lies inside a branch or a loop, where no weight can change"
_HOW_TO_LIST = "`mslite inspect MODEL --html page.html` shows the names of a model"


@dataclass(frozen=True)
class Found:
    """An initializer of the main graph, and the other names by which callers may know it."""

    name: str
    aliases: tuple[str, ...]


class _Unfit(Exception):
    """Why an entry means no weight that can change."""


def resolve(model: ir.Model, entries: Sequence[tuple[str, str]]) -> list[Found]:
    """The weights that the entries (a name, and a node or "") mean, each once, in their order.

    Weights that lie in Constant nodes become initializers.

    Raises:
        EngineError: An entry means no weight, or several, or one that cannot change; all at once.
    """
    from onnx_ir.passes.common import LiftConstantsToInitializersPass

    LiftConstantsToInitializersPass(size_limit=0)(model)
    index = _Index(model)
    aliases: dict[str, dict[str, None]] = {}  # of each weight; a dict keeps the order
    problems = []
    for name, node in entries:
        try:
            weight = index.weight(name, node)
        except _Unfit as exc:
            problems.append(f"{name + ',' + node if node else name!r}: {exc}")
            continue
        aliases.setdefault(weight, {}).update(dict.fromkeys(n for n in (name, node) if n))
    if problems:
        raise EngineError(
            f"{len(problems)} of {len(entries)} names of weights that may change do not fit the "
            f"model: {shortened(problems, '; ')}. {_HOW_TO_LIST}"
        )
    for weight, names in aliases.items():
        names.update(dict.fromkeys(index.names_of(weight)))
    _check_apart(aliases)
    return [
        Found(weight, tuple(name for name in names if name != weight))
        for weight, names in aliases.items()
    ]


def _check_apart(aliases: dict[str, dict[str, None]]) -> None:
    """No name may mean two weights, or an update would have to guess."""
    owner = {weight: weight for weight in aliases}
    for weight, names in aliases.items():
        for name in names:
            other = owner.setdefault(name, weight)
            if other != weight:
                raise EngineError(
                    f"{name!r} is a name of two weights that may change, {other!r} and {weight!r}; "
                    "give it to one of them in the list"
                )


class _Index:
    """Where each name of a graph stands, inner graphs included."""

    def __init__(self, model: ir.Model) -> None:
        self.weights = model.graph.initializers
        self.inner = {name for graph in model.graphs() for name in graph.initializers}
        self.named: dict[str, list[ir.Node]] = defaultdict(list)
        self.makers: dict[str, list[ir.Node]] = defaultdict(list)
        self.scopes: dict[str, list[ir.Node]] = defaultdict(list)
        self.loose: dict[str, list[ir.Node]] = defaultdict(list)  # scopes, collapsed
        self.repeats: dict[str, list[ir.Node]] = defaultdict(list)
        self.users: dict[str, list[ir.Node]] = defaultdict(list)  # of each weight
        for node in model.graph.all_nodes():
            self._add(node)
        self.near = Near([*self.weights, *self.named, *self.scopes])

    def _add(self, node: ir.Node) -> None:
        name = node.name or ""
        if name:
            self.named[name].append(node)
        for value in node.outputs:
            if value.name:
                self.makers[value.name].append(node)
        if scope := name.rpartition("/")[0]:
            self.scopes[scope].append(node)
            self.loose[collapsed(scope)].append(node)
        stem, _, number = name.rpartition(".")
        if number.isdecimal():  # of the nodes that one of MindIR becomes, all but the first
            self.repeats[stem].append(node)
        for weight in _weights(node):
            self.users[weight].append(node)

    def weight(self, name: str, node: str) -> str:
        """The weight that an entry means."""
        found = self.weights_of(node or name)
        if node:
            found = found or ({node} & self.weights.keys())
        elif name in self.weights:
            found = {name}
        elif not found and (path := node_path(name)):
            found = self.weights_of(path)
        if len(found) > 1:
            raise _Unfit(f"could be any of {shortened(sorted(map(repr, found)))}; name one of them")
        if not found:
            raise _Unfit(self._why_not(node or name))
        (weight,) = found
        self._check(weight)
        return weight

    def weights_of(self, name: str) -> set[str]:
        """The weights of the nodes that a name stands for; several where it is not clear."""
        for nodes in (
            self.named.get(name, ()),
            self.makers.get(name, ()),
            self.scopes.get(name, ()),
            self.loose.get(collapsed(name), ()),
            self.repeats.get(name, ()),
        ):
            products = [node for node in nodes if _is_op(node, _PRODUCTS)]
            for some in (products, nodes):
                if found := {weight for node in some for weight in _weights(node)}:
                    return found
        return set()

    def names_of(self, weight: str) -> Iterator[str]:
        """The nodes and scopes that stand for this weight and no other."""
        for node in self.users[weight]:
            for name in (node.name or "", (node.name or "").rpartition("/")[0]):
                if name and name not in self.weights and self.weights_of(name) == {weight}:
                    yield name

    def _check(self, name: str) -> None:
        weight = self.weights.get(name)
        if weight is None:
            raise _Unfit(f"its weight {name!r} {_INSIDE}")
        if not weight.uses() and not weight.is_graph_output():
            raise _Unfit("the graph does not use this weight")
        if weight.const_value is None or not weight.const_value.size:
            raise _Unfit("this weight holds no numbers")
        if (kind := weight.dtype) is None or kind.value not in _TYPES:
            raise _Unfit(f"{name!r} is of type {kind and kind.name}, of which no weight can change")

    def _why_not(self, name: str) -> str:
        if name in self.inner:
            return f"it {_INSIDE}"
        parts = [f"{name}.real", f"{name}.imag"]
        if all(part in self.weights for part in parts):
            return f"it is complex; name its parts, {parts[0]!r} and {parts[1]!r}"
        for nodes in (self.named, self.makers, self.scopes):
            if name in nodes:
                return "it stands for no weight of two dims or more"
        return f"the model has no weight, node or tensor {name!r}{self.near(name)}"


def _is_op(node: ir.Node, kinds: frozenset[str]) -> bool:
    return node.domain == "" and node.op_type in kinds


def _weights(node: ir.Node) -> Iterator[str]:
    """The weights that a node uses: constants of two dims or more, straight or moved."""
    # the third operand of a product is a bias, which may have two dims as well
    operands = node.inputs[:2] if _is_op(node, _PRODUCTS) else node.inputs
    for value in operands:
        while value is not None and (maker := value.producer()) and _is_op(maker, _MOVES):
            value = maker.inputs[0]
        if value is not None and value.is_initializer() and len(value.shape or ()) > 1:
            yield str(value.name)
