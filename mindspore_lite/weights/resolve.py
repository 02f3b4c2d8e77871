"""Finds the weights of a graph that a list of names means.

A name of the list is, in this order:

1. where it comes with a node: what that node means (see 3), or else that weight;
2. a weight of exactly this name;
3. a node of this name, the node that makes the tensor of this name, or the nodes of this scope:
   `/encoder/fc1` is the scope of `/encoder/fc1/MatMul`. They mean the one weight that they use;
4. a parameter: the weight of its module, by the rules of weights/rename.py and weights/modules.py;
5. the end of a weight's own name, of one weight only: `conv_in.bias` is `unet.conv_in.bias`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from mindspore_lite.core.dtypes import TABLE
from mindspore_lite.errors import EngineError
from mindspore_lite.graph.parameters import (
    MOVES,
    PRODUCTS,
    UNKNOWN,
    Parameter,
    is_merged,
    is_op,
    is_own,
    layout_text,
    module_of,
    parameters_of,
    scope_of,
)
from mindspore_lite.weights.modules import ModuleIndex
from mindspore_lite.weights.names import Near, clipped, shortened
from mindspore_lite.weights.rename import module_names

if TYPE_CHECKING:
    import onnx_ir as ir

_TYPES = frozenset(row.onnx for row in TABLE if not row.name.startswith("complex"))
_INSIDE = "lies inside a branch or a loop, where no weight can change"
_HOW_TO_LIST = "`mslite inspect MODEL --weights` lists the weights of a model"
_ROOM = 400  # characters of the names that one entry could mean


@dataclass(frozen=True)
class Found:
    """An initializer of the main graph, and the other names by which callers may know it."""

    name: str
    aliases: tuple[str, ...]
    parameter: Parameter = UNKNOWN
    least: int = 1  # parts of the end of its module's name that no other weight's name ends with


@dataclass(frozen=True)
class Listed:
    """One weight of a model as `mslite inspect --weights` shows it; programs rely on the names."""

    name: str
    framework_name: str  # "" where nothing tells
    shape: tuple[int, ...]
    dtype: str
    layout: str  # relative to the framework's parameter: same, transposed or unknown
    may_change: bool  # if it is named when the model is built
    reason: str  # why it cannot


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
            problems.append(f"{clipped(name + ',' + node if node else name)}: {exc}")
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
    _check_tied(aliases, index.parameters)
    return [
        Found(
            weight,
            tuple(name for name in names if name != weight),
            index.parameters[weight],
            index.least(weight),
        )
        for weight, names in aliases.items()
    ]


def every_weight(model: ir.Model) -> list[Listed]:
    """All weights of a model in the order of its file, without small constants.

    Constants are numbers, and integers in a row: axes, sizes and the like.
    """
    from onnx_ir.passes.common import LiftConstantsToInitializersPass

    LiftConstantsToInitializersPass(size_limit=0)(model)
    index = _Index(model)
    return [
        _listed(index, name, value)
        for graph in model.graphs()
        for name, value in graph.initializers.items()
        if _is_weight(value)
    ]


def _is_weight(value: ir.Value) -> bool:
    rank = len(value.shape or ())
    return rank > 1 or (rank == 1 and value.dtype is not None and value.dtype.is_floating_point())


def _listed(index: _Index, name: str, value: ir.Value) -> Listed:
    is_inner = index.weights.get(name) is not value
    parameter = UNKNOWN if is_inner else index.parameters[name]
    reason = f"it {_INSIDE}" if is_inner else ""
    try:
        if not is_inner:
            index.check(name)
    except _Unfit as exc:
        reason = str(exc)
    return Listed(
        name=name,
        framework_name=parameter.name,
        shape=tuple(value.shape.numpy()) if value.shape is not None else (),
        dtype=np.dtype(value.dtype.numpy()).name if value.dtype is not None else "",
        layout=layout_text(parameter.transposed),
        may_change=not reason,
        reason=reason,
    )


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


def _check_tied(
    aliases: Mapping[str, Mapping[str, None]], parameters: Mapping[str, Parameter]
) -> None:
    """A parameter of which the exporter made two weights must not change in one of them alone."""
    sharing: dict[str, list[str]] = defaultdict(list)
    for weight, parameter in parameters.items():
        sharing[parameter.name].append(weight)
    for weight, names in aliases.items():
        name = parameters[weight].name
        left = [other for other in sharing[name] if other not in aliases]
        if name and left and (name == weight or name in names):
            raise EngineError(
                f"the parameter {clipped(name)} is shared by layers, and the exporter made several "
                f"weights of it: {shortened([clipped(one) for one in sharing[name]], room=_ROOM)}; "
                f"list {shortened([clipped(one) for one in left], room=_ROOM)} as well, and update "
                "all of them"
            )


class _Index:
    """Where each name of a graph stands, inner graphs included."""

    def __init__(self, model: ir.Model) -> None:
        self.weights = model.graph.initializers
        self.inner = {name for graph in model.graphs() for name in graph.initializers}
        self.named: dict[str, list[ir.Node]] = defaultdict(list)
        self.makers: dict[str, list[ir.Node]] = defaultdict(list)
        self.scopes: dict[str, list[ir.Node]] = defaultdict(list)
        self.repeats: dict[str, list[ir.Node]] = defaultdict(list)
        self.users: dict[str, list[ir.Node]] = defaultdict(list)  # of each weight
        self.parameters = parameters_of(model)
        for node in model.graph.all_nodes():
            self._add(node)
        known = [one.name for one in self.parameters.values() if one.name]
        self.near = Near([*self.weights, *self.named, *self.scopes, *known])

    def _add(self, node: ir.Node) -> None:
        name = node.name or ""
        if name:
            self.named[name].append(node)
        for value in node.outputs:
            if value.name:
                self.makers[value.name].append(node)
        if scope := scope_of(node):
            self.scopes[scope].append(node)
        stem, _, number = name.rpartition(".")
        if number.isdecimal():  # of the nodes that one of MindIR becomes, all but the first
            self.repeats[stem].append(node)
        for weight in _weights(node):
            self.users[weight].append(node)

    def weight(self, name: str, node: str) -> str:
        """The weight that an entry means."""
        found = self.weights_of(node or name)
        by_parameter = not node and (name in self.weights or not found)
        if node:
            found = found or ({node} & self.weights.keys())
        elif name in self.weights:
            found = {name}
        elif not found:
            known = {weight for weight, one in self.parameters.items() if one.name == name != ""}
            found = known or set(self.modules.find(name)) or self._ending(name)
        if len(found) > 1:
            names = shortened(sorted(map(clipped, found)), room=_ROOM)
            raise _Unfit(f"could be any of {names}; name one of them")
        if not found:
            raise _Unfit(self._why_not(node or name))
        (weight,) = found
        self.check(weight)
        if by_parameter:
            self._check_parameter(name, weight)
        return weight

    def _check_parameter(self, name: str, weight: str) -> None:
        """Refuse a parameter's name for a weight that has become another on export."""
        is_graphs = name == weight and not is_own(name)
        if not is_graphs and is_merged(self.weights[weight], self.parameters[weight]):
            users = [clipped(node.name) for node in self.users[weight] if node.name]
            instead = (users or ["its node"])[0]
            raise _Unfit(
                "the exporter has merged this parameter with a BatchNorm or the like into "
                f"{clipped(weight)}; export without that, or name {instead} and give merged values"
            )

    def weights_of(self, name: str) -> set[str]:
        """The weights of the nodes that a name stands for; several where it is not clear."""
        for nodes in (
            self.named.get(name, ()),
            self.makers.get(name, ()),
            self.scopes.get(name, ()),
            self.repeats.get(name, ()),
        ):
            if found := _of_nodes(nodes):
                return found
        return set()

    @cached_property
    def modules(self) -> ModuleIndex:
        """The weights of each module: those that its nodes use, or that have its name."""
        nodes: dict[str, list[ir.Node]] = defaultdict(list)
        for scope, some in self.scopes.items():
            nodes[module_of(scope)] += some
        found = {module: _of_nodes(some) for module, some in nodes.items()}
        for weight, parameter in self.parameters.items():
            module, _, end = parameter.name.rpartition(".")
            if module and end in ("weight", "bias"):
                found[module if end == "weight" else parameter.name] = {weight}
        return ModuleIndex(found)

    def _ending(self, name: str) -> set[str]:
        """Weights whose own names end with a name."""
        return {weight for weight in self.weights if weight.endswith(f".{name}")}

    def least(self, weight: str) -> int:
        """How many parts of its module's name mean this weight and no other."""
        (module,) = module_names(self.parameters[weight].name)[:1] or ("",)
        return self.modules.least(module) if module in self.modules.exact else 1

    def names_of(self, weight: str) -> Iterator[str]:
        """The nodes and scopes that stand for this weight and no other."""
        for node in self.users[weight]:
            for name in (node.name or "", scope_of(node)):
                if name and name not in self.weights and self.weights_of(name) == {weight}:
                    yield name

    def check(self, name: str) -> None:
        """Refuse a weight that cannot change."""
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
        return f"the model has no weight, node or tensor {clipped(name)}{self.near(name)}"


def _of_nodes(nodes: Sequence[ir.Node]) -> set[str]:
    """The weights of the products among nodes, or of all of them if no product has any."""
    products = [node for node in nodes if is_op(node, PRODUCTS)]
    for some in (products, nodes):
        if found := {weight for node in some for weight in _weights(node)}:
            return found
    return set()


def _weights(node: ir.Node) -> Iterator[str]:
    """The weights that a node uses: constants of two dims or more, straight or moved."""
    # the third operand of a product is a bias, which may have two dims as well
    operands = node.inputs[:2] if is_op(node, PRODUCTS) else node.inputs
    for value in operands:
        while value is not None and (maker := value.producer()) and is_op(maker, MOVES):
            value = maker.inputs[0]
        if value is not None and value.is_initializer() and len(value.shape or ()) > 1:
            yield str(value.name)
