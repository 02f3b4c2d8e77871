"""MindIR records in, an onnx-ir model out: a walk over the nodes in file order."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from mindspore_lite.errors import ModelFileError, UnsupportedOpError
from mindspore_lite.graph.fuse_gemm_bias import fuse_gemm_bias
from mindspore_lite.graph.storage import Slot, stored
from mindspore_lite.graph.structure import STRUCTURE
from mindspore_lite.mindir.records import (
    Call,
    Constant,
    Graph,
    GraphRef,
    Input,
    Model,
    Monad,
    SequenceType,
    Tensor,
    TensorType,
    Type,
    ValueRef,
    local_name,
)
from mindspore_lite.ops import families  # noqa: F401 - fills the table
from mindspore_lite.ops.table import OPS, bind
from mindspore_lite.ops.tape import IR_VERSION, OPSET, Tape

MAX_DEPTH = 100  # of graphs calling graphs
MAX_NODES = 2_000_000  # after inlining; the largest real exports have some ten thousand
_SMALL_CONSTANT = 64  # elements; equal constants up to this size are merged and need no name

Shape = Sequence[int | None]


def from_mindir(model: Model, input_shapes: Mapping[str, Shape] | None = None) -> ir.Model:
    """Translate a model; `input_shapes` replaces the shapes of inputs that the file fixed."""
    walk = _Walk(model, dict(input_shapes or {}))
    inputs, outputs = walk.translate()
    graph = ir.Graph(
        inputs,
        outputs,
        nodes=walk.tape.nodes,
        initializers=walk.tape.initializers,
        opset_imports={"": OPSET},
        name="main",
    )
    made = ir.Model(
        graph,
        ir_version=IR_VERSION,
        producer_name="mslite",
        metadata_props={
            "producer": f"{model.producer} {model.producer_version}".strip(),
            "user_info": json.dumps(dict(model.user_info)),
        },
    )
    fuse_gemm_bias(made)
    RemoveUnusedNodesPass()(made)
    walk.refuse_state()
    return made


class _Walk:
    def __init__(self, model: Model, input_shapes: dict[str, Shape]) -> None:
        self.model = model
        self.tape = Tape()
        self.tape.trust_dims = not input_shapes
        self.input_shapes = input_shapes
        self.weights: list[tuple[ir.Value, Slot]] = []
        self.globals: dict[str, Slot] = {}  # weights and constants: one namespace for all graphs
        self.constants: dict[str, Any] = {}  # what each one became, however often it is met
        self.main: dict[str, Slot] = {}  # old files let inner graphs name values of the main one
        self.problems: dict[str, list[str]] = {}
        self.visited = 0

    def translate(self) -> tuple[list[ir.Value], list[ir.Value]]:
        graph = self.model.graph
        for weight in graph.parameters:
            first = self.tape.weight(local_name(weight.name), weight)
            self.globals[weight.name] = Slot(first)
            self.weights.append((first, self.globals[weight.name]))
        inputs = [value for i in graph.inputs if (value := self.input(i)) is not None]
        result = self.graph(graph, self.main, depth=0)
        if self.problems:
            raise UnsupportedOpError(_report(self.problems))
        return inputs, self.outputs(result)

    def refuse_state(self) -> None:
        """Refuse results that read what an earlier run wrote into a weight: each run starts anew.

        A weight that is written before anything reads it, or that no result depends on, is none.
        """
        for first, slot in self.weights:
            if not slot.still_holds(first) and first.uses():
                raise UnsupportedOpError(
                    f"the network changes its parameter {first.name!r} and reads it in the next "
                    f"run, but no state is kept between runs here; make it an input and an output"
                )

    def input(self, declared: Input) -> ir.Value | None:
        """A graph input as an ONNX input; effects tokens are none."""
        name = declared.given_name or local_name(declared.name)
        if not isinstance(declared.type, TensorType):
            if isinstance(declared.type, SequenceType):
                raise UnsupportedOpError(f"input {name!r} is a tuple, which is not supported")
            self.main[declared.name] = Slot(Monad.MEMORY)
            return None
        name = self.tape.unique(name)
        dims: Shape | None = self.input_shapes.get(name, declared.type.shape)
        shape = None
        if dims is not None:
            known = [d if d is not None and d >= 0 else f"{name}_{i}" for i, d in enumerate(dims)]
            shape = ir.Shape(known)
        kind = ir.TensorType(ir.DataType(declared.type.dtype.onnx))
        value = ir.Value(name=name, type=kind, shape=shape)
        self.main[declared.name] = Slot(value)
        return value

    def graph(self, graph: Graph, env: dict[str, Slot], depth: int) -> list[Slot]:
        """Translate the nodes of one graph, its inputs being bound in env; returns its outputs."""
        if depth > MAX_DEPTH:
            raise ModelFileError(f"graphs call each other more than {MAX_DEPTH} deep")
        for node in graph.nodes:
            self.visited += 1
            if self.visited > MAX_NODES:
                raise ModelFileError(f"the model has more than {MAX_NODES} nodes once inlined")
            if isinstance(node, Constant):
                # a storage of its own in each call of a graph: one call may change it in place
                env[node.name] = self.constant(node)
                self.globals.setdefault(node.name, env[node.name])
            else:
                env[node.name] = self.call(node, env, depth)
        return [self.lookup(name, env) for name in graph.outputs]

    def constant(self, node: Constant) -> Slot:
        if node.name not in self.constants:
            self.constants[node.name] = self.constant_value(node.name, node.value)
        return stored(self.constants[node.name])

    def constant_value(self, name: str, value: Any) -> Any:
        """Tensors become ONNX constants, wherever they stand in a constant."""
        if isinstance(value, Tensor):
            array = value.numpy()
            if array.size <= _SMALL_CONSTANT:
                return self.tape.constant(array)
            return self.tape.weight(local_name(name), value)
        if isinstance(value, tuple | list):
            return type(value)(self.constant_value(name, v) for v in value)
        return value

    def lookup(self, name: str, env: dict[str, Slot]) -> Slot:
        for scope in (env, self.globals, self.main):
            if name in scope:
                return scope[name]
        if name in self.model.functions:
            return Slot(GraphRef(name))
        raise ModelFileError(f"{name!r} is used before it is defined")

    def call(self, node: Call, env: dict[str, Slot], depth: int) -> Slot:
        inputs = [self.lookup(name, env) for name in node.inputs]
        label = node.scope or local_name(node.name).rsplit(":", 1)[0]
        op = getattr(node.target, "op", "call of a graph")
        try:
            if any(slot.failed for slot in inputs):
                raise _SkippedError
            if isinstance(node.target, GraphRef):
                return self.inline(node.target, inputs, depth)
            if isinstance(node.target, ValueRef):
                raise UnsupportedOpError("control flow")
            if op in STRUCTURE:
                return STRUCTURE[op](inputs)
            if op not in OPS:
                raise UnsupportedOpError("")
            return self.operator(op, node.target.attributes, inputs, node.type, label)
        except _SkippedError:
            pass  # the node that failed first is in the list already
        except UnsupportedOpError as exc:
            self.problem(f"{op}: {exc}" if str(exc) else op, label)
        except ModelFileError:
            raise
        except Exception as exc:  # noqa: BLE001 - a file may hold anything: no traceback for that
            self.problem(f"{op}: arguments that make no sense ({exc!r})", label)
        return Slot.of_failure()

    def problem(self, reason: str, label: str) -> None:
        self.problems.setdefault(reason, []).append(label)

    def operator(
        self,
        op: str,
        attributes: Mapping[str, Any],
        inputs: list[Slot],
        declared: Type | None,
        label: str,
    ) -> Slot:
        row, tape = OPS[op], self.tape
        values = [value for slot in inputs if not isinstance(value := slot.read(), Monad)]
        tape.primitive, tape.label, tape.result = op, label, declared
        result = row.meaning(tape, **bind(row, values, attributes))
        self.declare(result, declared)
        if row.writes:
            inputs[0].write(result)
            return inputs[0]
        return stored(result, inputs[0] if row.is_view else None)

    def declare(self, result: Any, declared: Type | None) -> None:
        if isinstance(result, ir.Value) and isinstance(declared, TensorType):
            self.tape.declare(result, declared)
        elif isinstance(result, tuple) and isinstance(declared, SequenceType):
            for value, item in zip(result, declared.items, strict=False):
                self.declare(value, item)

    def inline(self, target: GraphRef, inputs: list[Slot], depth: int) -> Slot:
        """A direct call of a graph: its nodes are translated here, its inputs are ours."""
        graph = self.model.functions.get(target.name)
        if graph is None or len(graph.inputs) != len(inputs):
            raise UnsupportedOpError(
                f"graph {target.name!r} cannot be called with {len(inputs)} arguments"
            )
        env = {declared.name: slot for declared, slot in zip(graph.inputs, inputs, strict=True)}
        outputs = self.graph(graph, env, depth + 1)
        return outputs[0] if len(outputs) == 1 else Slot(tuple(outputs))

    def outputs(self, result: list[Slot]) -> list[ir.Value]:
        """The results as distinct ONNX values: nested tuples flattened, None and words dropped."""
        flat: list[Any] = []
        for slot in result:
            _flatten(slot.read(), flat)
        outputs: list[ir.Value] = []
        for value in flat:
            taken = value in outputs if isinstance(value, ir.Value) else True
            if (
                taken or value.producer() is None
            ):  # a constant, an input handed through, or a repeat
                self.tape.label = "output"
                value = self.tape.op("Identity", [value])
                source = value.producer().inputs[0]
                value.type, value.shape = source.type, source.shape
            outputs.append(value)
        if not outputs:
            raise ModelFileError("the model returns no tensor")
        return outputs


class _SkippedError(Exception):
    """Raised inside the walk for a node whose input failed."""


def _flatten(value: Any, into: list[Any]) -> None:
    if isinstance(value, tuple | list):
        for item in value:
            _flatten(item, into)
    elif isinstance(value, ir.Value | bool | int | float):
        into.append(value)


def _report(problems: Mapping[str, list[str]]) -> str:
    lines = [f"the model needs {len(problems)} thing(s) that are not implemented:"]
    for reason, labels in problems.items():
        shown = ", ".join(labels[:5]) + (f" and {len(labels) - 5} more" if len(labels) > 5 else "")
        lines.append(f"  {reason} (at {shown})")
    lines.append("Export the network without them; CONTRIBUTING.md says how an operator is added.")
    return "\n".join(lines)
