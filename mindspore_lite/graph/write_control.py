"""Writes If and Loop as MindSpore does: graphs of their own, chosen by a Switch.

If:    Switch(condition, then, else), called.
Loop:  header(...): Switch(go on, body, end), called; body(...) ends in calling the header again;
       end(...) returns what was carried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from mindspore_lite.mindir.records import Graph, GraphRef, ValueRef
from mindspore_lite.ops.to_mindir.custom import captured_by
from mindspore_lite.ops.to_mindir.writer import Made, MindirWriter, Operand, tensor_type

if TYPE_CHECKING:
    from mindspore_lite.graph.to_mindir import Scope, Writing


def write_if(writing: Writing, node: ir.Node, scope: Scope) -> tuple[Made, ...]:
    """Switch between two graphs, each with the outer values that it uses as arguments."""
    writer = scope.writer
    graphs = [node.attributes[name].as_graph() for name in ("then_branch", "else_branch")]
    writer.require(
        all(tensor_type(v) for g in graphs for v in g.outputs), "a result that is no tensor"
    )
    condition = Operand(_required(node.inputs[0]))
    branches = [
        _branch(writing, graph, scope, f"{writer.label}_{name}")
        for graph, name in zip(graphs, ("then", "else"), strict=True)
    ]
    chosen = writer.call("Switch", condition, *branches)
    result = writer.call(ValueRef(chosen.name))
    if len(node.outputs) == 1:
        return (result,)
    return tuple(writer.item(result, index) for index in range(len(node.outputs)))


def _branch(writing: Writing, graph: ir.Graph, scope: Scope, name: str) -> Made:
    """A branch as a function of nothing."""
    outer = [value for value in captured_by(graph) if not writing.is_weight(value)]
    function = writing.function(name, graph, outer)
    return _partial(scope.writer, function, [Operand(value) for value in outer])


def _partial(writer: MindirWriter, function: GraphRef, arguments: Sequence[Any]) -> Made:
    if not arguments:
        return Made(function.name)
    return writer.call("Partial", Made(function.name), *arguments)


# --- Loop -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Loop:
    """A loop being written: its graphs, and what they are called with in every round."""

    body: ir.Graph
    label: str
    outer: list[ir.Value]  # that the body uses
    limit: ir.Value | None  # of rounds
    turn: ir.Value  # the number of the round
    going: ir.Value | None  # what the body says on going on; None where it always does
    carried: list[ir.Value]

    @property
    def parameters(self) -> list[ir.Value]:
        """Of header and body."""
        settings = [v for v in (self.limit, self.turn, self.going) if v is not None]
        return [*self.outer, *settings, *self.carried]


def write_loop(writing: Writing, node: ir.Node, scope: Scope) -> tuple[Made, ...]:
    """A header that goes on while rounds are left and the condition holds."""
    writer, body = scope.writer, node.attributes["body"].as_graph()
    trips, condition, *given = [*node.inputs, None, None][: max(len(node.inputs), 2)]
    first = [value for value in given if value is not None]
    writer.require(first and len(first) == len(body.inputs) - 2, "nothing is carried")
    writer.require(len(body.outputs) == len(first) + 1, "a result of every round")
    writer.require(all(map(_keeps_shape, first, body.outputs[1:])), "a carried value that may grow")
    writer.require(len(body.inputs[0].shape or ()) == 0, "a round number with an axis")
    ends = not _stays(body) or not (condition is None or _is_always(condition))
    writer.require(ends or trips is not None, "a loop without an end")
    loop = _Loop(
        body,
        writer.label,
        [value for value in captured_by(body) if not writing.is_weight(value)],
        _number("limit", ir.DataType.INT64) if trips is not None else None,
        _number("round", ir.DataType.INT64),
        _number("going", ir.DataType.BOOL) if ends else None,
        [
            ir.Value(name=inside.name, type=value.type, shape=value.shape)
            for value, inside in zip(first, body.inputs[2:], strict=True)
        ],
    )
    writer.require(all(map(tensor_type, loop.parameters)), "a value that is no tensor")
    header = _write_graphs(writing, loop)
    starts: list[Any] = [Operand(value) for value in loop.outer]
    if trips is not None:
        starts.append(_plain(writer, trips))
    starts.append(np.asarray(0))
    if ends:
        starts.append(np.asarray(True) if condition is None else _plain(writer, condition))
    starts += [Operand(value) for value in first]
    results = writer.call(header, *starts)
    return tuple(writer.item(results, index) for index in range(len(first)))


def _write_graphs(writing: Writing, loop: _Loop) -> GraphRef:
    """The three graphs of a loop; returns the header."""
    header, body, end = (
        GraphRef(writing.names.take(f"{loop.label}_{part}")) for part in ("header", "body", "end")
    )
    with _graph(writing, header, loop.parameters) as scope:
        writer = scope.writer
        left = writer.call("Less", Operand(loop.turn), Operand(loop.limit)) if loop.limit else None
        tests = [v for v in (left, loop.going and Operand(loop.going)) if v is not None]
        go_on = tests[0] if len(tests) == 1 else writer.call("LogicalAnd", *tests)
        inside = _partial(writer, body, [Operand(value) for value in loop.parameters])
        outside = _partial(writer, end, [Operand(value) for value in loop.carried])
        writer.call(ValueRef(writer.call("Switch", go_on, inside, outside).name))
    with _graph(writing, end, loop.carried) as scope:
        scope.writer.tuple([Operand(value) for value in loop.carried])
    with _graph(writing, body, loop.parameters) as scope:
        _write_round(writing, loop, header, scope)
    return header


def _write_round(writing: Writing, loop: _Loop, header: GraphRef, scope: Scope) -> None:
    """The body, which ends in a call of the header."""
    writer, (turn, going, *carried) = scope.writer, loop.body.inputs
    for value, parameter in zip((turn, *carried), (loop.turn, *loop.carried), strict=True):
        scope.names[value] = scope.names[parameter]
    truth = Operand(loop.going) if loop.going else np.asarray(True)
    scope.names[going] = writer.value(truth).name
    writing.nodes(loop.body, scope)
    writer.label = loop.label
    again, *following = loop.body.outputs
    arguments: list[Any] = [Operand(value) for value in loop.outer]
    if loop.limit is not None:
        arguments.append(Operand(loop.limit))
    arguments.append(writer.call("Add", Operand(loop.turn), np.asarray(1)))
    if loop.going is not None:
        arguments.append(_plain(writer, again))
    writer.call(header, *arguments, *[Operand(value) for value in following])


@contextmanager
def _graph(writing: Writing, name: GraphRef, parameters: list[ir.Value]) -> Iterator[Scope]:
    """A function of these values; its result is the last node that is written."""
    scope = writing.scope(name.name)
    inputs = [writing.input(value, scope) for value in parameters]
    yield scope
    nodes = tuple(scope.writer.nodes)
    writing.functions[name.name] = Graph(name.name, tuple(inputs), nodes, (nodes[-1].name,))


def _number(name: str, dtype: ir.DataType) -> ir.Value:
    return ir.Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape([]))


def _plain(writer: MindirWriter, value: ir.Value) -> Any:
    """A number as a tensor without axes; ONNX takes one with an axis as well."""
    if value.shape is not None and len(value.shape) == 0:
        return Operand(value)
    return writer.call("Reshape", Operand(value), ())


def _keeps_shape(first: ir.Value, following: ir.Value) -> bool:
    """Whether a carried value has one shape in all rounds; MindSpore computes wrong if not."""
    if first.shape is None or following.shape is None:
        return False
    known = all(isinstance(d, int) or d.value for d in first.shape)
    return known and first.shape == following.shape


def _is_always(value: ir.Value | None) -> bool:
    """Whether a truth value is known to hold."""
    held = ir.convenience.get_const_tensor(value) if value is not None else None
    return held is not None and bool(held.numpy().all())


def _stays(body: ir.Graph) -> bool:
    """Whether a body never ends its loop: its condition holds always, or is handed on."""
    value: ir.Value | None = body.outputs[0]
    while value is not None and (maker := value.producer()) and maker.op_type == "Identity":
        value = maker.inputs[0]
    return value is body.inputs[1] or _is_always(value)


def _required(value: ir.Value | None) -> ir.Value:
    assert value is not None
    return value


CONTROL = {"If": write_if, "Loop": write_loop}
