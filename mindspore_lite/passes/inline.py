"""Pass: inlines the functions of an ONNX model, within a bound.

Engines expand functions themselves, with native recursion and without any bound: a chain of 3,000
ends the process, 16 that each call the one before twice never end. So no engine sees one.

passes/node_count.py has counted what will be before anything is expanded. The expansion goes
through each call once, with a stack of its own; onnx-ir's pass looks for free names one by one,
which takes time that grows with the square of the calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import onnx_ir as ir

from mindspore_lite.errors import ModelFileError
from mindspore_lite.passes.element_types import signature
from mindspore_lite.passes.node_count import WHY, bodies_of, check_size, with_depth

_MAX_NAME = 200  # characters of a name that is copied with every call

Values = dict[ir.Value, ir.Value | None]
Attributes = Mapping[str, ir.Attr]


def inline_functions(model: ir.Model, max_nodes: int) -> None:
    """Inline all functions, in place, after it was found that the result is within the bound.

    A node whose operator has another form in the opset of its function than in the model's
    remembers that opset as its `version`.

    Raises:
        ModelFileError: There would be too many nodes or levels of sub-graphs, functions call each
            other in a circle, or a call does not fit its function.
    """
    check_size(model, max_nodes)
    if not model.functions:
        return
    version = model.opset_imports.get("", model.opset_imports.get("ai.onnx", 0))
    for function in model.functions.values():
        _note_versions(function, version)
        _import_domains(model, function)
    _Inliner(model).run()
    model.functions.clear()


def _note_versions(function: ir.Function, version: int) -> None:
    own = function.opset_imports.get("", function.opset_imports.get("ai.onnx", version))
    if own == version:
        return
    for node, _ in with_depth(function):
        if node.domain == "":
            mine, theirs = (signature("", node.op_type, v) for v in (own, version))
            if mine is None or theirs is None or mine.since != theirs.since:
                node.version = own


def _import_domains(model: ir.Model, function: ir.Function) -> None:
    for domain, number in function.opset_imports.items():
        if domain in ("", "ai.onnx"):
            continue
        known = model.opset_imports.setdefault(domain, number)
        if known != number:
            raise ModelFileError(
                f"{WHY}{function.name[:_MAX_NAME]!r} wants version {number} of the domain "
                f"{domain[:_MAX_NAME]!r}, the model has {known}"
            )


@dataclass
class _Frame:
    """A call that is being expanded: what is left of its nodes, and what its names stand for."""

    nodes: Iterator[ir.Node]
    values: Values
    attributes: Attributes
    call: ir.Node | None = None
    outer: _Frame | None = None  # in which the call stands

    def value(self, old: ir.Value | None) -> ir.Value | None:
        """What a value of the function is in the graph that it is put into."""
        if old is None:
            return None
        try:
            return self.values[old]
        except KeyError:
            raise ModelFileError(
                f"{WHY}a function uses {str(old.name)[:_MAX_NAME]!r} before anything makes it"
            ) from None


class _Inliner:
    def __init__(self, model: ir.Model) -> None:
        self.model = model
        self.functions = model.functions
        self.taken: set[str] = set()  # names of values
        self.numbers: Counter[str] = Counter()
        self.found: Values = {}  # what calls of the model's own graphs give

    def run(self) -> None:
        own = list(self.model.graphs())  # but for those of functions
        for graph in own:
            self.taken.update(str(value.name) for value in graph.inputs)
            self.taken.update(graph.initializers)
            for node in graph:
                self.taken.add(str(node.name))
                self.taken.update(str(value.name) for value in node.outputs)
        for graph in own:
            self.expand_calls(graph)
        calls = [call for graph in list(self.model.graphs()) for call in self.rewired(graph)]
        for call in calls:
            assert call.graph is not None
            call.graph.remove(call, safe=True)

    def expand_calls(self, graph: ir.Graph) -> None:
        """Put the nodes of functions behind their calls."""
        for node in list(graph):
            if node.op_identifier() in self.functions:
                made = self.expanded(self.enter(node, _Frame(iter(()), _Itself(), {})))
                graph.insert_after(node, made)

    def rewired(self, graph: ir.Graph) -> list[ir.Node]:
        """Let nodes use what the functions made; returns the calls, which are to go."""
        calls = [node for node in graph if node.op_identifier() in self.functions]
        for node in graph:
            for at, value in enumerate(node.inputs):
                if value in self.found:
                    node.replace_input_with(at, self.final(value))
        for at, value in enumerate(graph.outputs):
            if value in self.found:
                graph.outputs[at] = self.as_output(graph, self.final(value), value)
        return calls

    def final(self, value: ir.Value | None) -> ir.Value | None:
        """What a value is in the end: a call may be handed what another one gives."""
        path = []
        while value in self.found:
            path.append(value)
            value = self.found[value]
        for seen in path:  # so that a long way is gone once
            self.found[seen] = value
        return value

    @staticmethod
    def as_output(graph: ir.Graph, value: ir.Value | None, old: ir.Value) -> ir.Value:
        """The value under the name of the output that it becomes."""
        if value is None:
            raise ModelFileError(f"{WHY}output {str(old.name)[:_MAX_NAME]!r} is made by nothing")
        producer, name = value.producer(), old.name
        if producer is None or producer.graph is not graph or value.is_graph_output():
            last = ir.node("Identity", [value], outputs=[ir.Value(type=old.type, shape=old.shape)])
            graph.append(last)
            value = last.outputs[0]
        old.name = None
        value.name = name
        value.type, value.shape = value.type or old.type, value.shape or old.shape
        return value

    def enter(self, call: ir.Node, outer: _Frame) -> _Frame:
        """The frame of a call."""
        function = self.functions[call.op_identifier()]
        name = function.name[:_MAX_NAME]
        for what, given, wanted in (
            ("inputs", call.inputs, function.inputs),
            ("outputs", call.outputs, function.outputs),
        ):
            if len(given) > len(wanted):
                raise ModelFileError(
                    f"{WHY}{name!r} is called with {len(given)} {what}, and has {len(wanted)}"
                )
        attributes = {k: a for k, a in function.attributes.items() if a.value is not None}
        for key, attribute in call.attributes.items():
            if (known := resolved(key, attribute, outer.attributes)) is not None:
                attributes[key] = known
            else:
                attributes.pop(key, None)
        if any(bodies_of(attribute) for attribute in attributes.values()):
            raise ModelFileError(f"{WHY}{name!r} takes a graph as an attribute")
        values: Values = dict.fromkeys(function.inputs)
        values.update(zip(function.inputs, map(outer.value, call.inputs), strict=False))
        return _Frame(iter(list(function)), values, attributes, call, outer)

    def expanded(self, frame: _Frame) -> list[ir.Node]:
        """The nodes of a call, those of the calls inside it in their places."""
        made: list[ir.Node] = []
        stack = [frame]
        while stack:
            frame = stack[-1]
            for node in frame.nodes:
                if node.op_identifier() in self.functions:
                    stack.append(self.enter(node, frame))
                    break
                made.append(self.copied(node, frame))
            else:
                stack.pop()
                self.leave(frame, made)
        return made

    def leave(self, frame: _Frame, made: list[ir.Node]) -> None:
        """Hand the results of a call to the frame that it stands in."""
        if frame.call is None or frame.outer is None:
            return
        function = self.functions[frame.call.op_identifier()]
        given = frame.outer.values
        into = self.found if isinstance(given, _Itself) else given
        for mine, theirs in zip(frame.call.outputs, function.outputs, strict=False):
            into[mine] = frame.value(theirs)

    def copied(self, node: ir.Node, frame: _Frame) -> ir.Node:
        """A node of a function, as it is in a call."""
        inputs = [frame.value(value) for value in node.inputs]
        attributes = [
            self.with_bodies(known, frame)
            for key, attribute in node.attributes.items()
            if (known := resolved(key, attribute, frame.attributes)) is not None
        ]
        outputs = [self.fresh(value) for value in node.outputs]
        frame.values.update(zip(node.outputs, outputs, strict=True))
        return ir.Node(
            node.domain,
            node.op_type,
            inputs,
            attributes,
            overload=node.overload,
            outputs=outputs,
            version=node.version,
            name=self.unique(f"{node.name or node.op_type}"),
        )

    def with_bodies(self, attribute: ir.Attr, frame: _Frame) -> ir.Attr:
        """An attribute whose graphs, if it has some, are copies."""
        found = bodies_of(attribute)
        if not found:
            return attribute
        made = [self.copied_graph(graph, frame) for graph in found]
        value = made[0] if attribute.type == ir.AttributeType.GRAPH else made
        return ir.Attr(attribute.name, attribute.type, value)

    def copied_graph(self, graph: ir.Graph, frame: _Frame) -> ir.Graph:
        """A body inside a function; it sees the values of the function."""
        inputs = [self.fresh(value) for value in graph.inputs]
        frame.values.update(zip(graph.inputs, inputs, strict=True))
        weights = []
        for value in graph.initializers.values():
            if value not in frame.values:
                frame.values[value] = self.fresh(value)
            if (copy := frame.values[value]) is not None:
                weights.append(copy)
        inner = _Frame(iter(list(graph)), frame.values, frame.attributes)
        nodes = self.expanded(inner)
        usable = {*inputs, *weights, *(value for node in nodes for value in node.outputs)}
        outputs = []
        for value in graph.outputs:
            output = frame.value(value)
            if output is None:
                raise ModelFileError(f"{WHY}a sub-graph gives an input that the call leaves out")
            if output not in usable or output in outputs:  # a call gave what it was given
                nodes.append(ir.node("Identity", [output], outputs=[self.fresh(value)]))
                output = nodes[-1].outputs[0]
            outputs.append(output)
        return ir.Graph(inputs, outputs, nodes=nodes, initializers=weights, name=graph.name)

    def fresh(self, value: ir.Value) -> ir.Value:
        """A copy of a value, under a name that nothing else has."""
        shape = None if value.shape is None else value.shape.copy()
        made = ir.Value(type=value.type, shape=shape, const_value=value.const_value)
        if value.name:  # an unused output has none
            made.name = self.unique(str(value.name))
        return made

    def unique(self, name: str) -> str:
        base = name[:_MAX_NAME]
        found = base
        while found in self.taken:
            self.numbers[base] += 1
            found = f"{base}_{self.numbers[base]}"
        self.taken.add(found)
        return found


class _Itself(Values):
    """What the values of the model's own graphs stand for: themselves."""

    def __missing__(self, value: ir.Value) -> ir.Value:
        return value


def resolved(key: str, attribute: ir.Attr, given: Attributes) -> ir.Attr | None:
    """An attribute, or the one of the call that it refers to; None where the call has none."""
    if not attribute.is_ref():
        return attribute
    found = given.get(str(attribute.ref_attr_name))
    return None if found is None else ir.Attr(key, found.type, found.value)
