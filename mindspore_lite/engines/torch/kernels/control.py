"""Nodes with bodies: If, Loop, Scan and SequenceMap.

What is known now is put in place: the branch that is taken, or the body once for each step if there
are not too many. Else a body becomes a module of its own, with all sizes open, that the graph calls
at run time (run_body.py), and the graph is dynamic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import getitem
from typing import Any

import onnx_ir as ir
import torch

from mindspore_lite.engines.torch.kernels import run_body
from mindspore_lite.engines.torch.kernels.lower import Held, Known, Lowering, Made
from mindspore_lite.engines.torch.kernels.table import KERNELS
from mindspore_lite.engines.torch.kernels.types import torch_type

MOST_STEPS = 64  # put in place; guess: with more a graph takes long to compile
MOST_NODES = 4096  # that such steps may add to a graph


def lowered(at: Lowering, node: ir.Node) -> Sequence[Held]:
    """Lower a node of control flow; what it makes."""
    return _LOWERED[node.op_type](at, node)


def _if(at: Lowering, node: ir.Node) -> Sequence[Held]:
    (condition,) = _given(at, node)
    branches = [node.attributes[name].as_graph() for name in ("then_branch", "else_branch")]
    if isinstance(condition, Known):
        return _in_place(at, branches[0] if bool(condition.value) else branches[1], ())
    at.dynamic.append(f"If {node.name!r} depends on data")
    args = (at.tensor(condition, None), *(_body(at, branch) for branch in branches))
    return _made(at, node, run_body.run_if, args)


def _loop(at: Lowering, node: ir.Node) -> Sequence[Held]:
    trips, condition, *carried = _given(at, node)
    body = node.attributes["body"].as_graph()
    trial = _Trial(at)
    if not any(isinstance(h, Made) for h in (trips, condition)) and not _is_long(trips, body):
        found = _unrolled_loop(trial, trips, condition, carried, body)
        if found is not None:
            return found
        trial.undo()
    at.dynamic.append(f"Loop {node.name!r} has many steps, or as many as data says")
    args = (
        at.tensor(trips, None),
        at.tensor(condition, None),
        [at.tensor(h, None) for h in carried],
        _body(at, body),
        [_declared(value) for value in body.outputs[1 + len(carried) :]],
    )
    return _made(at, node, run_body.run_loop, args)


def _is_long(trips: Held, body: ir.Graph) -> bool:
    """Whether there are too many steps, and nothing in the body that could end them earlier."""
    if not isinstance(trips, Known) or int(trips.value) <= MOST_STEPS:
        return False
    condition: ir.Value | None = body.outputs[0]
    while condition is not None and (maker := condition.producer()) is not None:
        if maker.op_type != "Identity":
            return maker.op_type == "Constant"
        condition = maker.inputs[0]
    return True


def _unrolled_loop(
    trial: _Trial, trips: Held, condition: Held, carried: list[Held], body: ir.Graph
) -> list[Held] | None:
    """The body once for each step; None if their number is not known beforehand, or large."""
    rows: list[list[Held]] = []
    goes_on: Held = Known(torch.tensor(True), "true") if condition is None else condition
    while isinstance(goes_on, Known) and bool(goes_on.value):
        if isinstance(trips, Known) and len(rows) >= int(trips.value):
            break
        if len(rows) == MOST_STEPS or trial.is_large():
            return None
        goes_on, *found = _in_place(trial.at, body, [_number(len(rows)), goes_on, *carried])
        carried, scanned = found[: len(carried)], found[len(carried) :]
        rows.append(scanned)
    if isinstance(goes_on, Made):
        return None
    scans = body.outputs[1 + len(carried) :]
    return [*carried, *_stacked(trial.at, rows, scans, [(0, 0)] * len(scans))]


def _scan(at: Lowering, node: ir.Node) -> Sequence[Held]:
    given, body = _given(at, node), node.attributes["body"].as_graph()
    count = node.attributes["num_scan_inputs"].as_int()
    states, scanned = given[:-count], given[-count:]
    scans = body.outputs[len(states) :]
    inward = _ways(node, "scan_input", count)
    outward = _ways(node, "scan_output", len(scans))
    trial = _Trial(at)
    found = _unrolled_scan(trial, states, scanned, body, inward)
    if found is not None:
        ends, rows = found
        return [*ends, *_stacked(at, rows, scans, outward)]
    trial.undo()
    at.dynamic.append(f"Scan {node.name!r} has many steps, or as many as data says")
    args = (
        [at.tensor(h, None) for h in states],
        [at.tensor(h, None) for h in scanned],
        _body(at, body),
        inward,
        outward,
        [_declared(value) for value in scans],
    )
    return _made(at, node, run_body.run_scan, args)


def _unrolled_scan(
    trial: _Trial,
    states: list[Held],
    scanned: Sequence[Held],
    body: ir.Graph,
    inward: Sequence[tuple[int, int]],
) -> tuple[list[Held], list[list[Held]]] | None:
    """The body once for each step; the last states, and what each step made."""
    value = _seen(scanned[0])
    length = MOST_STEPS + 1 if value is None else value.shape[inward[0][0]]
    if length > MOST_STEPS:
        return None
    rows: list[list[Held]] = []
    for step in range(length):
        if trial.is_large():
            return None
        parts = [
            _call(trial.at, "Gather", [x, _number(length - 1 - step if back else step)], axis=axis)
            for x, (axis, back) in zip(scanned, inward, strict=True)
        ]
        found = _in_place(trial.at, body, [*states, *parts])
        rows.append(found[len(states) :])
        states = found[: len(states)]
    return states, rows


def _ways(node: ir.Node, side: str, count: int) -> list[tuple[int, int]]:
    """(axis, whether it goes backwards) of each input or output of a Scan."""
    found = [node.attributes.get(f"{side}_{what}") for what in ("axes", "directions")]
    axes, directions = ([0] * count if f is None else list(f.as_ints()) for f in found)
    return list(zip(axes, directions, strict=True))


def _sequence_map(at: Lowering, node: ir.Node) -> Sequence[Held]:
    given, body = _given(at, node), node.attributes["body"].as_graph()
    seen = [_seen(held) for held in given]
    trial = _Trial(at)
    if all(one is not None for one in seen) and len(seen[0]) <= MOST_STEPS:
        columns: list[list[Held]] = [[] for _ in node.outputs]
        for step in range(len(seen[0])):
            items = [
                _call(at, "SequenceAt", [held, _number(step)]) if isinstance(one, list) else held
                for held, one in zip(given, seen, strict=True)
            ]
            for column, made in zip(columns, _in_place(at, body, items), strict=True):
                column.append(made)
        if not trial.is_large():
            return [_call(at, "SequenceConstruct", column) for column in columns]
        trial.undo()
    at.dynamic.append(f"SequenceMap {node.name!r} has many items, or as many as data says")
    args = ([at.tensor(h, None) for h in given], _body(at, body), len(node.outputs))
    return _made(at, node, run_body.run_sequence_map, args)


# --- what they share ---


class _Trial:
    """A graph before a body was put in place, to go back to; nodes without users go at the end."""

    def __init__(self, at: Lowering) -> None:
        self.at = at
        self._nodes, self._dynamic, self._bodies = (
            len(at.graph.nodes),
            len(at.dynamic),
            {*at.bodies},
        )

    def is_large(self) -> bool:
        """Whether too many nodes came to it."""
        return len(self.at.graph.nodes) - self._nodes > MOST_NODES

    def undo(self) -> None:
        """Forget what came since."""
        del self.at.dynamic[self._dynamic :]
        for name in self.at.bodies.keys() - self._bodies:
            del self.at.bodies[name]


def _given(at: Lowering, node: ir.Node) -> list[Held]:
    return [None if value is None else at.held(value) for value in node.inputs]


def _seen(held: Held) -> Any:
    """A value or its fake; None where nothing is known of it."""
    return held.value if isinstance(held, Known) else getattr(held, "fake", None)


def _number(value: int) -> Known:
    return Known(torch.tensor(value), f"number{value}")


def _call(at: Lowering, op_type: str, held: Sequence[Held], **attributes: Any) -> Held:
    """One more node, by its row of the table."""
    return at.called(KERNELS["", op_type], held, attributes, [op_type.lower()])[0]


def _in_place(at: Lowering, graph: ir.Graph, inputs: Sequence[Held]) -> list[Held]:
    """Lower a body among the nodes of its outer graph; its outputs."""
    at.values.update(zip(graph.inputs, inputs, strict=True))
    at.nodes(graph)
    return [at.held(value) for value in graph.outputs]


def _stacked(
    at: Lowering,
    rows: Sequence[Sequence[Held]],
    scans: Sequence[ir.Value],
    ways: Sequence[tuple[int, int]],
) -> list[Held]:
    """What steps made, each output along a new axis."""
    if not rows:
        empty = [run_body.stack([], _declared(v), w[0]) for v, w in zip(scans, ways, strict=True)]
        return [Known(one, str(v.name)) for v, one in zip(scans, empty, strict=True)]
    found: list[Held] = []
    for column, (axis, backwards) in zip(zip(*rows, strict=True), ways, strict=True):
        sequence = _call(at, "SequenceConstruct", column[::-1] if backwards else column)
        found.append(_call(at, "ConcatFromSequence", [sequence], axis=axis, new_axis=1))
    return found


def _declared(value: ir.Value) -> run_body.Declared:
    """What a body says of an output; sizes that it leaves open are 0 where there was no step."""
    dims = tuple(dim if isinstance(dim, int) else 0 for dim in value.shape or ())
    return torch_type(int(value.dtype or ir.DataType.FLOAT)), dims


def _body(at: Lowering, graph: ir.Graph) -> Any:
    """A body as an argument of an FX node: its module, and the outer values that it uses."""
    inner = Lowering(at.target, at)
    inner.dynamic.append("a body")
    for value in graph.inputs:
        inner.placeholder(value, None)
    inner.nodes(graph)
    inner.graph.output(tuple(inner.result(value) for value in graph.outputs))
    found = inner.finished()
    name = f"body{len(at.bodies)}"
    while hasattr(at.root, name):  # a weight is called so
        name += "_"
    at.bodies[name] = found
    setattr(at.root, name, found.module)
    outside = tuple(at.tensor(at.held(value), None) for value in inner.captured)
    return (at.graph.get_attr(name), outside)


def _made(
    at: Lowering, node: ir.Node, function: Callable[..., Any], args: tuple[Any, ...]
) -> list[Held]:
    """The results of a function that always returns a tuple."""
    call = at.graph.call_function(function, args)
    return [
        Made(at.graph.call_function(getitem, (call, i)), None) for i in range(len(node.outputs))
    ]


_LOWERED: dict[str, Callable[[Lowering, ir.Node], Sequence[Held]]] = {
    "If": _if,
    "Loop": _loop,
    "Scan": _scan,
    "SequenceMap": _sequence_map,
}
