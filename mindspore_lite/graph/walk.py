"""Walks over the nodes of a file in order and records the ONNX nodes they mean."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np
import onnx_ir as ir

from mindspore_lite.core.budget import DEFAULT, Budget, CpuClock
from mindspore_lite.errors import ModelFileError, UnsupportedOpError
from mindspore_lite.graph import functions, sequences  # noqa: F401 - fill the table
from mindspore_lite.graph.bfloat16 import rounded_number
from mindspore_lite.graph.branch import Outcome, choose
from mindspore_lite.graph.control import (
    Choice,
    Closure,
    Function,
    Known,
    Raised,
    Reach,
    tail_of,
)
from mindspore_lite.graph.loop import Loop, run_loop
from mindspore_lite.graph.notes import Notes, value_of
from mindspore_lite.graph.state import Carried, carried, reached
from mindspore_lite.graph.storage import Before, Slot, stored
from mindspore_lite.graph.structure import STRUCTURE
from mindspore_lite.mindir.quant import dequantised
from mindspore_lite.mindir.records import (
    Call,
    Constant,
    Graph,
    GraphRef,
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
from mindspore_lite.ops.complex import from_border, row_for, to_border
from mindspore_lite.ops.lite_forms import row_of
from mindspore_lite.ops.lite_quant import is_quantised, real_inputs, real_type, requantised
from mindspore_lite.ops.refused import why_not
from mindspore_lite.ops.scatter import replaced
from mindspore_lite.ops.table import OPS, bind
from mindspore_lite.ops.tape import PART_OF, Complex, Tape
from mindspore_lite.passes.node_count import node_weight, too_many

MAX_DEPTH = 100  # of graphs calling graphs
_OFTEN = 256  # nodes between two looks at the clock
_SMALL_CONSTANT = 64  # elements; equal constants up to this size are merged and need no name
_RESULT = ("result",)
_BY_NUMBER = frozenset({"Muls", "Divs", "AddScalar", "SubScalar"})

Shape = Sequence[int | None]


class Walk:
    """The translation of one model."""

    def __init__(
        self,
        model: Model,
        input_shapes: Mapping[str, Shape],
        notes: Notes | None = None,
        budget: Budget = DEFAULT,
        assigned: Set[str] = frozenset(),
        rounded: Mapping[str, Type] | None = None,
    ) -> None:
        """`assigned`: the parameters that an earlier walk found to be written to.

        `rounded`: nodes whose results are rounded to bfloat16, with their types in the file.
        """
        self.model = model
        self.rounded = rounded or {}
        self.assigned = assigned
        self.carried: dict[str, tuple[Carried, ...]] = {}  # of these, by the name in the file
        self.budget, self.clock = budget, CpuClock(budget)
        self.notes = notes or Notes()
        self.tape = Tape()
        self.tape.trust_dims = not input_shapes
        self.input_shapes = input_shapes
        self.graphs = {model.graph.name: model.graph, **model.functions}
        self.reach = Reach(model)
        self.active: list[str] = []  # graphs whose loops are being translated
        self.nesting = 0  # of If and Loop
        self.changes: list[Before] = []  # of storages, since the innermost branch began
        # each parameter: its name in the file, what it was there, and where it lives
        self.weights: list[tuple[str, Any, Slot]] = []
        self.globals: dict[str, Slot] = {}  # weights and constants: one namespace for all graphs
        self.constants: dict[str, Any] = {}  # what each one became, however often it is met
        # a graph may use a constant that stands in another one
        self.constant_nodes = {
            node.name: node
            for graph in self.graphs.values()
            for node in graph.nodes
            if isinstance(node, Constant)
        }
        self.border: dict[str, dict[str, str]] = {"inputs": {}, "outputs": {}}  # name -> type
        self.main: dict[str, Slot] = {}  # old files let inner graphs name values of the main one
        self.problems: dict[str, list[str]] = {}
        self.visited = 0

    def translate(self) -> tuple[list[ir.Value], list[ir.Value]]:
        """The ONNX inputs and outputs of the model; the nodes are on the tape."""
        graph = self.model.graph
        given_inputs = {i.given_name or local_name(i.name) for i in graph.inputs}
        kept = set(graph.given_outputs) - given_inputs  # an input may be handed through
        given = [self.tape.unique(name) if name in kept else "" for name in graph.given_outputs]
        for weight in graph.parameters:
            first = self.weight(local_name(weight.name), weight)
            if weight.name in self.assigned:
                first = self.carry(weight.name, first)
            self.globals[weight.name] = Slot(first)
            self.weights.append((weight.name, first, self.globals[weight.name]))
        held = (weight.const_value for weight in self.tape.initializers)
        weight_bytes = sum(tensor.nbytes for tensor in held if tensor is not None)
        self.tape.max_table_bytes = self.budget.fold_limit(weight_bytes)
        inputs: list[ir.Value] = []
        for declared in graph.inputs:
            name = declared.given_name or local_name(declared.name)
            self.main[declared.name] = self.input(name, declared.type, inputs)
        try:
            result = self.nodes(graph, self.main, 0, None).get(_RESULT)
        except Raised:
            raise UnsupportedOpError("the network raises an error whatever it is given") from None
        outputs: list[ir.Value] = []
        with _Reported(self, "output", "the end of the graph"):
            if not result.failed:
                outputs = self.outputs(result, inputs)
        if len(given) == len(outputs):  # a tuple among them was flattened otherwise
            for value, name in zip(outputs, given, strict=True):
                if not name:
                    continue
                if kind := self.border["outputs"].pop(str(value.name), None):
                    self.border["outputs"][name] = kind
                value.name = name
        if self.problems:
            raise UnsupportedOpError(_report(self.problems), self.problems)
        return inputs, outputs

    def carry(self, name: str, first: Any) -> Any:
        """A parameter that is written to, as the run before left it."""
        if isinstance(first, Complex):
            pair = carried(self.tape, first.real), carried(self.tape, first.imag)
            self.carried[name] = pair
            return Complex(*(part.current for part in pair))
        self.carried[name] = (carried(self.tape, first),)
        return self.carried[name][0].current

    def written(self) -> frozenset[str]:
        """The parameters that some node wrote to, by their names in the file."""
        return frozenset(
            name
            for name, first, slot in self.weights
            if slot.spoiled or not slot.still_holds(first)
        )

    def state(self, outputs: Sequence[ir.Value], rounded: Set[str]) -> list[tuple[Carried, Any]]:
        """Parameters whose old value an output depends on, each with what it is left with.

        Their new values are outputs too, and may depend on others. One that is written before
        anything reads it, or that no result depends on, is none. `rounded`: those of bfloat16.
        """
        left = {name: slot for name, _, slot in self.weights if name in self.carried}
        found: list[tuple[Carried, Any]] = []
        needed = list(outputs)
        while left:
            known = reached(needed)
            new = [n for n in left if any(part.current in known for part in self.carried[n])]
            if not new:
                break
            for name in new:
                value = left.pop(name).read()
                ends = [value.real, value.imag] if isinstance(value, Complex) else [value]
                ends = [self.tape.rounded(end) if name in rounded else end for end in ends]
                found += zip(self.carried[name], ends, strict=True)
                needed += ends
        return found

    def input(self, name: str, declared: Type, inputs: list[ir.Value]) -> Slot:
        """A graph input: one ONNX input, several for a tuple, none for an effects token."""
        if isinstance(declared, SequenceType):
            if declared.dynamic_length:
                raise UnsupportedOpError(f"input {name!r} is a tuple of any length")
            parts = [self.input(f"{name}_{i}", t, inputs) for i, t in enumerate(declared.items)]
            return Slot(tuple(parts))
        if not isinstance(declared, TensorType):
            if name not in self.notes.types:
                return Slot(Monad.MEMORY)
            inputs.append(value_of(self.tape.unique(name), self.notes.types[name]))
            return Slot(inputs[-1])
        name = self.tape.unique(name)
        dims: Shape | None = self.input_shapes.get(name, declared.shape)
        shape = None
        if dims is not None:
            shape = ir.Shape(
                d if d is not None and d >= 0 else self.dim_name(name, i)
                for i, d in enumerate(dims)
            )
        dtype = declared.dtype
        if dtype.numpy in PART_OF:
            self.border["inputs"][name] = dtype.name
            value, inner = from_border(self.tape, name, shape, dtype.numpy)
            inputs.append(value)
            return Slot(inner)
        value = ir.Value(name=name, type=ir.TensorType(ir.DataType(dtype.onnx)), shape=shape)
        inputs.append(value)
        return Slot(value)

    def dim_name(self, name: str, index: int) -> str:
        """What an open dim of an input is called."""
        given = self.notes.dims.get(name, ())
        found = given[index] if index < len(given) else None
        return found if found and isinstance(found, str) else f"{name}_{index}"

    # --- graphs ---------------------------------------------------------------------------------

    def graph(self, graph: Graph, arguments: list[Slot], depth: int, loop: Loop | None) -> Outcome:
        """Translate the nodes of a graph here, its inputs being the arguments."""
        env = {i.name: slot for i, slot in zip(graph.inputs, arguments, strict=True)}
        return self.nodes(graph, env, depth, loop)

    def nodes(self, graph: Graph, env: dict[str, Slot], depth: int, loop: Loop | None) -> Outcome:
        """Translate the nodes of a graph whose inputs are bound in env.

        Inside a loop the call that the graph ends with is done last, for it may be the next round.
        """
        if depth > MAX_DEPTH:
            raise ModelFileError(f"graphs call each other more than {MAX_DEPTH} deep")
        tail = tail_of(graph) if loop is not None else None
        for node in graph.nodes:
            self.count(1 if isinstance(node, Constant) else node_weight(len(node.inputs)))
            if isinstance(node, Constant):
                # a storage of its own in each call of a graph: one call may change it in place
                env[node.name] = self.constant(node)
            elif tail is None or node.name not in tail.after:
                env[node.name] = self.call(node, env, depth)
        if tail is not None:
            return self.tail_call(tail.call, env, depth, loop)
        outputs = [self.lookup(name, env) for name in graph.outputs]
        return self.outcome(outputs[0] if len(outputs) == 1 else Slot(tuple(outputs)), loop)

    @staticmethod
    def outcome(result: Slot, loop: Loop | None) -> Outcome:
        """A result, which inside a loop means leaving it."""
        if loop is not None and not result.failed:
            return loop.leave(None, [result])
        outcome = Outcome()
        outcome.put(_RESULT, result)
        return outcome

    def apply(
        self, function: Function, arguments: Sequence[Slot], depth: int, loop: Loop | None
    ) -> Outcome:
        """Call a function; `loop` is given where the call ends a round of it."""
        arguments = list(arguments)
        while isinstance(function, Closure):
            arguments = [*function.arguments, *arguments]
            function = function.function
        if isinstance(function, Choice):
            return choose(self, function, arguments, depth, loop)
        if isinstance(function, Known):
            return self.outcome(function.result, loop)
        if not isinstance(function, GraphRef):
            raise UnsupportedOpError("something is called that is no function")
        name = function.name
        graph = self.graphs.get(name)
        if graph is None or len(graph.inputs) != len(arguments):
            raise UnsupportedOpError(
                f"graph {name!r} cannot be called with {len(arguments)} arguments"
            )
        if loop is not None and name == loop.header:
            return loop.again(arguments)
        if loop is not None and not self.reach.reaches(name, loop.header, loop.enclosing):
            return loop.leave(name, arguments)
        if name in self.active:
            raise UnsupportedOpError("a function calls itself before its end (recursion)")
        if self.reach.reaches(name, name, self.active):
            return run_loop(self, graph, arguments, depth, loop)
        return self.graph(graph, arguments, depth + 1, loop)

    # --- values ---------------------------------------------------------------------------------

    def constant(self, node: Constant) -> Slot:
        """A constant in a fresh storage."""
        if node.name not in self.constants:
            self.constants[node.name] = self.constant_value(node.name, node.value)
        return stored(self.constants[node.name])

    def constant_value(self, name: str, value: Any) -> Any:
        """Tensors become ONNX constants, wherever they stand in a constant."""
        if isinstance(value, Tensor):
            array = value.numpy() if value.quant is None else dequantised(value)
            if array.size <= _SMALL_CONSTANT and array.dtype not in PART_OF:
                return self.tape.constant(array)
            return self.weight(local_name(name), value)
        if isinstance(value, tuple | list):
            return type(value)(self.constant_value(name, v) for v in value)
        return value

    def weight(self, name: str, tensor: Tensor) -> Any:
        """A weight as an initializer; a quantised one as the numbers that it stands for."""
        if tensor.quant is None:
            return self.tape.weight(name, tensor)
        return self.tape.initializer(name, ir.Tensor(dequantised(tensor)))

    def lookup(self, name: str, env: dict[str, Slot]) -> Slot:
        """What a name stands for in a graph."""
        for scope in (env, self.globals, self.main):
            if name in scope:
                return scope[name]
        if name in self.graphs:
            return Slot(GraphRef(name))
        if name in self.constant_nodes:
            return self.globals.setdefault(name, self.constant(self.constant_nodes[name]))
        raise ModelFileError(f"{name!r} is used before it is defined")

    # --- nodes ----------------------------------------------------------------------------------

    def call(self, node: Call, env: dict[str, Slot], depth: int) -> Slot:
        """Translate one node."""
        result = self.translated(node, env, depth)
        if node.name in self.notes.values and not self.input_shapes and not result.failed:
            self.name_dims(result.read(), node)
        return result

    def name_dims(self, value: Any, node: Call) -> None:
        """Call open dims of a result what our converter noted."""
        self.declare(value, node.type)
        named = self.notes.values[node.name]
        if not isinstance(value, ir.Value) or value.shape is None or len(value.shape) != len(named):
            return
        pairs = zip(value.shape, named, strict=True)
        value.shape = ir.Shape([d if isinstance(d, int) or d.value else n for d, n in pairs])

    def translated(self, node: Call, env: dict[str, Slot], depth: int) -> Slot:
        """The result of one node."""
        if isinstance(node.target, GraphRef | ValueRef):
            result = self.tail_call(node, env, depth, None).get(_RESULT)
            if not result.failed and result.parts is None:
                self.declare(result.read(), node.type)
            return result
        op, inputs = node.target.op, [self.lookup(name, env) for name in node.inputs]
        label = _label(node)
        with _Reported(self, op, label):
            if any(slot.failed for slot in inputs):
                raise _SkippedError
            if op in STRUCTURE:
                self.tape.primitive, self.tape.label = op, label
                return STRUCTURE[op](self.tape, inputs)
            exact = self.rounded.get(node.name)
            return self.operator(op, node.target.attributes, inputs, node.type, label, exact)
        return Slot.of_failure()

    def tail_call(self, node: Call, env: dict[str, Slot], depth: int, loop: Loop | None) -> Outcome:
        """Translate a call of a graph, or of a function that a value holds."""
        inputs = [self.lookup(name, env) for name in node.inputs]
        label = _label(node)
        with _Reported(self, "call of a graph", label):
            target: Any = node.target
            if isinstance(target, ValueRef):
                held = self.lookup(target.name, env)
                inputs.append(held)
                target = None if held.failed else held.read()
            if any(slot.failed for slot in inputs):
                raise _SkippedError
            self.tape.label = label
            arguments = inputs if isinstance(node.target, GraphRef) else inputs[:-1]
            return self.apply(target, arguments, depth, loop)
        return self.outcome(Slot.of_failure(), None)

    def problem(self, reason: str, label: str) -> None:
        """Note what is missing, to report everything at once."""
        self.problems.setdefault(reason, []).append(label)

    def problems_so_far(self) -> dict[str, list[str]]:
        """A copy to go back to."""
        return {reason: list(labels) for reason, labels in self.problems.items()}

    def operator(
        self,
        op: str,
        attributes: Mapping[str, Any],
        inputs: list[Slot],
        declared: Type | None,
        label: str,
        exact: Type | None = None,
    ) -> Slot:
        """Translate one operator by its row of the table.

        exact: its type in the file, where bfloat16 in it shall be rounded.
        """
        tape = self.tape
        values = [value for slot in inputs if not isinstance(value := slot.read(), Monad)]
        if exact is not None and op in _BY_NUMBER:  # MindSpore makes the number bfloat16 first
            values = [rounded_number(v) if type(v) is float else v for v in values]
        row = row_of(op, values, attributes, declared)
        if row is None and op in OPS:
            row = row_for(op, values)
        if row is None:
            raise UnsupportedOpError(why_not(op, attributes))
        tape.primitive, tape.label, tape.result = op, label, declared
        if quantised := is_quantised(attributes):
            values, tape.result = real_inputs(tape, attributes, values), real_type(declared)
        result = row.meaning(tape, **bind(row, values, attributes))
        if quantised:
            result = requantised(tape, attributes, result, declared)
        if exact is not None and not row.is_view:
            result = self.in_bfloat16(result, exact)
        self.declare(result, declared)
        if row.writes:
            self.changes += inputs[0].write(result)
            return inputs[0]

        def again(base: Any) -> Any:
            tape.primitive, tape.label, tape.result = op, label, declared
            made = row.meaning(tape, **bind(row, [base, *values[1:]], attributes))
            self.count(len(made) if isinstance(made, tuple) else 1)
            return made

        put = functools.partial(replaced, tape)
        return stored(result, inputs[0].view(again, put) if row.is_view else None)

    def in_bfloat16(self, result: Any, exact: Type) -> Any:
        """A result with the digits that its type in the file has."""
        if isinstance(result, tuple) and isinstance(exact, SequenceType):
            pairs = zip(result, exact.items, strict=False)
            return (*(self.in_bfloat16(*pair) for pair in pairs), *result[len(exact.items) :])
        is_narrow = isinstance(exact, TensorType) and exact.dtype.name == "bfloat16"
        if not is_narrow or not isinstance(result, ir.Value):
            return result
        return self.tape.rounded(result) if self.tape.dtype(result) == np.float32 else result

    def count(self, nodes: int) -> None:
        """Note what was walked, which a small file can ask for without end."""
        before, self.visited = self.visited, self.visited + nodes
        if self.visited > self.budget.max_nodes:
            raise too_many(self.budget.max_nodes)
        if before // _OFTEN != self.visited // _OFTEN:
            self.clock.check()

    def declare(self, result: Any, declared: Type | None) -> None:
        """Note what the file says about a result."""
        if isinstance(result, ir.Value) and isinstance(declared, TensorType):
            self.tape.declare(result, declared)
        elif isinstance(result, tuple) and isinstance(declared, SequenceType):
            for value, item in zip(result, declared.items, strict=False):
                self.declare(value, item)

    def outputs(self, result: Slot, inputs: list[ir.Value]) -> list[ir.Value]:
        """The results as distinct ONNX values: nested tuples flattened, None and words dropped.

        An input that is an output under its own name is that very input.
        """
        named = self.model.graph.given_outputs
        flat: list[Any] = []
        _flatten(result.read(), flat)
        outputs: list[ir.Value] = []
        for value in flat:
            if isinstance(value, Complex):
                self.tape.label = "output"
                outputs.append(to_border(self.tape, value))
                self.border["outputs"][str(outputs[-1].name)] = self.tape.dtype(value).name
                continue
            taken = value in outputs if isinstance(value, ir.Value) else True
            itself = value in inputs and value.name in named[len(outputs) : len(outputs) + 1]
            # a constant, an input handed through, or a repeat
            if taken or (value.producer() is None and not itself):
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


class _Reported:
    """Turns what goes wrong with one node into a line of the report."""

    def __init__(self, walk: Walk, op: str, label: str) -> None:
        self.walk, self.op, self.label = walk, op, label

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, exc: BaseException | None, trace: Any) -> bool:
        if isinstance(exc, _SkippedError):
            return True  # the node that failed first is in the list already
        if isinstance(exc, UnsupportedOpError):
            self.walk.problem(f"{self.op}: {exc}" if str(exc) else self.op, self.label)
            return True
        if isinstance(exc, Exception) and not isinstance(exc, ModelFileError | Raised):
            # a file may hold anything: no traceback for that
            self.walk.problem(f"{self.op}: arguments that make no sense ({exc!r})", self.label)
            return True
        return False


def _label(node: Call) -> str:
    return node.scope or local_name(node.name).rsplit(":", 1)[0]


def _flatten(value: Any, into: list[Any]) -> None:
    if isinstance(value, tuple | list):
        for item in value:
            _flatten(item, into)
    elif isinstance(value, ir.Value | Complex | bool | int | float):
        into.append(value)


def _report(problems: Mapping[str, list[str]]) -> str:
    lines = [f"the model needs {len(problems)} thing(s) that are not implemented:"]
    for reason, labels in problems.items():
        shown = ", ".join(labels[:5]) + (f" and {len(labels) - 5} more" if len(labels) > 5 else "")
        lines.append(f"  {reason} (at {shown})")
    lines.append("Export the network without them; CONTRIBUTING.md says how an operator is added.")
    return "\n".join(lines)
