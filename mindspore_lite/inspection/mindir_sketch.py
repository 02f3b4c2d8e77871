"""Sketches of the graphs of a MindIR file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from mindspore_lite.inspection import operators
from mindspore_lite.inspection.facts import Problem
from mindspore_lite.inspection.mindir_model import graphs_of, label_of, op_of, refusals, role_of
from mindspore_lite.inspection.sketch import (
    MAX_OPERANDS,
    Box,
    Operand,
    Sketch,
    attribute_texts,
    shape_text,
    type_text,
    value_text,
)
from mindspore_lite.mindir.records import (
    Call,
    Constant,
    Graph,
    GraphRef,
    Model,
    Monad,
    OtherType,
    Primitive,
    ValueRef,
    local_name,
)
from mindspore_lite.ops.table import OPS

_PASSED_ON = {"Load", "Depend"}  # another name for their first input
_TUPLES = {"MakeTuple", "make_tuple", "MakeList", "make_list"}
_ELEMENTS = {"TupleGetItem", "tuple_getitem", "list_getitem", "RealTupleGetItem"}
# bookkeeping that says nothing about what is computed
_DULL = {"input_names", "output_names", "primitive_function", "is_load", "cust_aicpu"}

Operands = tuple[Operand, ...]


def sketches(model: Model, problems: tuple[Problem, ...]) -> list[Sketch]:
    """Every graph of the file, the main one first."""
    outer: dict[str, Operands] = {}
    for weight in model.graph.parameters:
        text = shape_text(weight.dtype.name, weight.shape)
        outer[weight.name] = (Operand("weight", text, local_name(weight.name)),)
    for graph in graphs_of(model):
        outer[graph.name] = (Operand("graph", "", graph.name),)
        for node in graph.nodes:  # constants belong to all graphs
            if isinstance(node, Constant) and not isinstance(node.value, Monad):
                outer[node.name] = (Operand("constant", value_text(node.value)),)
    wrong = refusals(problems)
    return [_Sketcher(graph, model, outer, wrong).sketch() for graph in graphs_of(model)]


class _Sketcher:
    """One graph on its way to boxes; follows names through what is not drawn."""

    def __init__(
        self,
        graph: Graph,
        model: Model,
        outer: Mapping[str, Operands],
        wrong: Mapping[tuple[str, str], str],
    ) -> None:
        self.graph, self.model, self.outer, self.wrong = graph, model, outer, wrong
        self.known: dict[str, Operands] = {}  # what each name of this graph stands for
        self.tuples: dict[str, tuple[str, ...]] = {}
        self.numbers = {
            node.name: node.value
            for node in graph.nodes
            if isinstance(node, Constant) and isinstance(node.value, int)
        }

    def sketch(self) -> Sketch:
        boxes = [*self.inputs()]
        for node in self.graph.nodes:
            if isinstance(node, Call) and not self.passed_on(node):
                boxes.append(self.box(node))
                self.known[node.name] = (Operand("box", type_text(node.type), node.name),)
        boxes += self.outputs()
        return Sketch(self.graph.name, role_of(self.graph, self.model), tuple(boxes))

    def inputs(self) -> Iterator[Box]:
        for declared in self.graph.inputs:
            name, text = declared.given_name or local_name(declared.name), type_text(declared.type)
            if isinstance(declared.type, OtherType) and "monad" in declared.type.kind.lower():
                self.known[declared.name] = ()
            else:
                self.known[declared.name] = (Operand("box", text, declared.name),)
                yield Box(declared.name, name, "input", "input", text)

    def outputs(self) -> Iterator[Box]:
        operands = [o for name in self.graph.outputs for o in self.operands(name)]
        for number, operand in enumerate(operands[:MAX_OPERANDS]):
            op = "output" if len(operands) == 1 else f"output {number}"
            yield Box(f"output:{number}", op, "output", "output", operand.text, (operand,))

    def operands(self, name: str) -> Operands:
        if name in self.known:
            return self.known[name]
        return self.outer.get(name, ())  # the rest are effects tokens

    def passed_on(self, node: Call) -> bool:
        """Note what a node that is not drawn stands for."""
        op = op_of(node)
        if op in _PASSED_ON:
            self.known[node.name] = self.operands(node.inputs[0]) if node.inputs else ()
            if node.inputs and node.inputs[0] in self.tuples:
                self.tuples[node.name] = self.tuples[node.inputs[0]]
        elif op == "UpdateState":
            self.known[node.name] = ()
        elif op in _TUPLES:
            items = [o for name in node.inputs for o in self.operands(name)]
            self.known[node.name] = tuple(items[:MAX_OPERANDS])
            self.tuples[node.name] = node.inputs
        elif op in _ELEMENTS and len(node.inputs) == 2:
            self.known[node.name] = self.element(node)
        else:
            return False
        return True

    def element(self, node: Call) -> Operands:
        source, index = node.inputs[0], self.numbers.get(node.inputs[1])
        items = self.tuples.get(source)
        if items is not None and index is not None and -len(items) <= index < len(items):
            return self.operands(items[index])
        text = type_text(node.type)
        return tuple(replace(o, text=text) for o in self.operands(source))

    def box(self, node: Call) -> Box:
        op, label = op_of(node), label_of(node)
        attributes: Mapping[str, object] = {}
        called: Operands = ()
        if isinstance(node.target, Primitive):
            attributes = {k: v for k, v in node.target.attributes.items() if k not in _DULL}
        elif isinstance(node.target, GraphRef):
            called = (Operand("graph", "", node.target.name, "calls"),)
        elif isinstance(node.target, ValueRef):
            called = tuple(replace(o, argument="calls") for o in self.operands(node.target.name))
        return Box(
            node.name,
            "call" if op == operators.CALL else op,
            operators.family_of(op) or "unknown",
            label,
            type_text(node.type),
            (called + tuple(self.arguments(op, node)))[:MAX_OPERANDS],
            attribute_texts(attributes),
            self.wrong.get((op, label), ""),
        )

    def arguments(self, op: str, node: Call) -> Iterator[Operand]:
        row = OPS.get(op)
        names = [p.name for p in (*row.call_args, *row.init_args)] if row else []
        given = [found for name in node.inputs if (found := self.operands(name))]
        for number, found in enumerate(given):
            argument = names[number] if number < len(names) else ""
            yield from (replace(operand, argument=argument) for operand in found)
