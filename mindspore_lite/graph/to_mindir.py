"""Translates an onnx-ir model into MindIR records that MindSpore 2.10 loads and runs.

Every node is written as MindSpore primitives by its row of ops/to_mindir. One that has no
equivalent becomes a `Custom` primitive with the ONNX node inside, which ops/custom.py restores.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir
from onnx_ir.passes.common import LiftConstantsToInitializersPass

from mindspore_lite.core.dtypes import from_numpy
from mindspore_lite.core.json_text import read_json
from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.graph.bfloat16 import KEY as BORDER
from mindspore_lite.graph.from_mindir import from_mindir
from mindspore_lite.graph.notes import NOTES, Notes, type_text, write_notes
from mindspore_lite.graph.parameters import Parameter, is_worth_noting, parameters_of
from mindspore_lite.graph.write_control import CONTROL
from mindspore_lite.mindir.records import (
    Call,
    Graph,
    GraphRef,
    Input,
    Model,
    OtherType,
    Primitive,
    Tensor,
)
from mindspore_lite.ops.to_mindir import families  # noqa: F401 - fills the table
from mindspore_lite.ops.to_mindir.custom import captured, carried
from mindspore_lite.ops.to_mindir.kept import KEPT
from mindspore_lite.ops.to_mindir.table import BACKWARDS, NoEquivalentError, write
from mindspore_lite.ops.to_mindir.writer import (
    Made,
    MindirWriter,
    Names,
    Operand,
    tensor,
    tensor_type,
)
from mindspore_lite.ops.unread import UnreadTensor
from mindspore_lite.passes.infer_shapes import SAID
from mindspore_lite.version import __version__

MAIN = "main"
_PRODUCER = "MindSpore"  # its loader looks at the name
_RELEASE = "2.10.0"  # whose primitives are written
# what comes of sizes and attributes that contradict each other, or that nobody thought of
_UNFORESEEN = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_OWN = {"producer", "user_info", BORDER}  # metadata that from_mindir made


@dataclass(frozen=True)
class Written:
    """A model as MindIR, and how its operators were written."""

    model: Model
    primitives: Counter[str]  # of the result
    custom: Mapping[str, list[str]]  # "operator: reason" -> the nodes that travel as they are


def to_mindir(model: ir.Model) -> Written:
    """Write a model, whose shapes were inferred, as MindIR; its constants become weights.

    What was written is translated back at once: a node whose primitives our own reader cannot
    take, for want of a rank say, is carried as it is after all.
    """
    # also the small ones, which the pass would leave: axes, shapes and the like are among them
    LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)
    as_is: set[str] = set()
    while True:
        written = Writing(model, as_is).result()
        refused = _refused(written.model) - as_is
        if not refused:
            return written
        as_is |= refused


def _refused(model: Model) -> set[str]:
    """The ONNX nodes that cannot be read back."""
    try:
        from_mindir(model)
    except UnsupportedOpError as exc:
        return {label for labels in exc.problems.values() for label in labels}
    return set()


@dataclass
class Scope:
    """One graph being written: its writer, and what its values are called."""

    writer: MindirWriter
    names: dict[ir.Value, str] = field(default_factory=dict)


class Writing:
    """The translation of one model."""

    def __init__(self, model: ir.Model, as_is: Set[str]) -> None:
        self.source = model
        self.as_is = as_is  # nodes that are not to become primitives
        self.names = Names()
        self.parameters: dict[ir.Value, Tensor] = {}
        self.functions: dict[str, Graph] = {}
        self.custom: dict[str, list[str]] = {}
        shapes = [value.shape for value in model.graph.inputs if value.shape is not None]
        self.open = {d.value for shape in shapes for d in shape if not isinstance(d, int)} - {None}
        self.dims: dict[str, list[str | None]] = {}  # of nodes: which open dims of inputs they have

    def result(self) -> Written:
        """The whole file."""
        graph = self.source.graph
        scope = self.scope(MAIN)
        inputs = [self.input(value, scope) for value in graph.inputs if _is_fed(value)]
        self.nodes(graph, scope)
        outputs = [self.output(value, scope) for value in graph.outputs]
        main = Graph(
            name=MAIN,
            inputs=tuple(inputs),
            nodes=tuple(scope.writer.nodes),
            outputs=tuple(outputs),
            parameters=tuple(self.parameters.values()),
            attributes={NOTES: write_notes(self.notes())},
            given_outputs=tuple(str(value.name) for value in graph.outputs),
        )
        made = Model(
            graph=main,
            functions=self.functions,
            producer=_PRODUCER,
            producer_version=_RELEASE,
            ir_version="1.1",
            mind_ir_version=2,
            user_info=self.user_info(),
        )
        return Written(made, _primitives([main, *self.functions.values()]), self.custom)

    # --- what is said about the model -----------------------------------------------------------

    def user_info(self) -> dict[str, str]:
        """The metadata of the source; that of a MindIR file was packed into one text."""
        metadata = dict(self.source.metadata_props)
        packed = _packed(metadata.get("user_info"))
        if self.source.producer_name != "mslite" or packed is None:
            return metadata
        return {**{key: text for key, text in metadata.items() if key not in _OWN}, **packed}

    def notes(self) -> Notes:
        """What MindIR has no field for."""
        borders = (*self.source.graph.inputs, *self.source.graph.outputs)
        dims = {
            str(value.name): [d if isinstance(d, int) else d.value for d in value.shape]
            for value in borders
            if value.shape is not None and not value.shape.is_static()
        }
        border = self.source.metadata_props.get(BORDER, "")
        types = {
            str(value.name): type_text(value)
            for value in self.source.graph.inputs
            if _is_fed(value) and tensor_type(value) is None
        }
        return Notes(f"mslite {__version__}", dims, types, self.dims, border, self.trained())

    def trained(self) -> dict[str, Parameter]:
        """The framework's parameters behind weights that do not have their names any more."""
        found = parameters_of(self.source)
        pairs = [(str(value.name), held.name) for value, held in self.parameters.items()]
        return {
            written: found[name]
            for name, written in pairs
            if name in found and is_worth_noting(name, found[name])
        }

    # --- graphs and values ----------------------------------------------------------------------

    def scope(self, name: str) -> Scope:
        """A new graph."""
        names: dict[ir.Value, str] = {}

        def name_of(value: ir.Value) -> str:
            if value in names:
                return names[value]
            if self.is_weight(value):
                return self.weight(value, scope)
            raise UnsupportedOpError(f"{value.name!r} is used before it is defined")

        scope = Scope(MindirWriter(name, name_of, self.names), names)
        return scope

    def function(self, name: str, graph: ir.Graph, outer: list[ir.Value]) -> GraphRef:
        """Write a sub-graph as a function of its own inputs after these outer values."""
        scope = self.scope(self.names.take(name))
        inputs = [self.input(value, scope) for value in (*outer, *graph.inputs)]
        self.nodes(graph, scope)
        outputs = [self.output(value, scope) for value in graph.outputs]
        if len(outputs) > 1:
            outputs = [scope.writer.tuple([Made(name) for name in outputs]).name]
        made = Graph(scope.writer.graph, tuple(inputs), tuple(scope.writer.nodes), tuple(outputs))
        self.functions[made.name] = made
        return GraphRef(made.name)

    def is_weight(self, value: ir.Value) -> bool:
        """Whether every graph sees the value without being given it."""
        return value.const_value is not None and value.producer() is None

    def input(self, value: ir.Value, scope: Scope) -> Input:
        """A graph input under its own name; types that MindIR lacks are kept in the notes."""
        name = self.names.take(f"{scope.writer.graph}:{value.name}")
        scope.names[value] = name
        kind = tensor_type(value)
        if kind is None:
            return Input(name, OtherType("ONNX"))
        return Input(name, kind, str(value.name) if scope.writer.graph == MAIN else "")

    def output(self, value: ir.Value, scope: Scope) -> str:
        """The name of a graph's output, which must be a node of its own."""
        made = scope.writer.value(Operand(value))
        if value.producer() is None:  # an input or weight handed through
            scope.writer.label = str(value.name)
            made = scope.writer.call("TensorMove", made, type=tensor_type(value))
        return made.name

    def weight(self, value: ir.Value, scope: Scope) -> str:
        """A weight under its own name, whichever graph uses it first."""
        if value not in self.parameters:
            held = value.const_value
            assert held is not None
            name = self.names.take(f"{MAIN}:{value.name}")
            try:
                self.parameters[value] = _weight(name, held)
            except NoEquivalentError:  # an element type that MindIR does not know
                scope.writer.label = str(value.name)
                if isinstance(held, ir.ExternalTensor):  # what is carried names no other files
                    held = ir.external_data.convert_tensors_from_external([held])[0]
                node = ir.node("Constant", [], {"value": held}, outputs=[ir.Value(name=value.name)])
                made = carried(scope.writer, node, [], self.opset(""))
                scope.names[value] = made[0].name
                return made[0].name
        return self.parameters[value].name

    def opset(self, domain: str) -> int:
        """The version of a domain's operators that the source uses."""
        return self.source.opset_imports.get(domain, 1)

    # --- nodes ----------------------------------------------------------------------------------

    def nodes(self, graph: ir.Graph, scope: Scope) -> None:
        """Write every node of a graph, in order."""
        for node in graph:
            self.node(node, scope)

    def node(self, node: ir.Node, scope: Scope) -> None:
        """Write one node; what it takes back half-way is forgotten."""
        writer = scope.writer
        writer.label = str(node.name or node.outputs[0].name)
        writer.outputs = tuple(Operand(value) for value in node.outputs)
        before = len(writer.nodes)
        try:
            results = self.equivalent(node, scope)
        except (NoEquivalentError, *_UNFORESEEN) as exc:
            writer.forget(before)
            self.custom.setdefault(_why(node, exc), []).append(writer.label)
            results = carried(writer, node, captured(node), self.opset(node.domain))
        for value, made in zip(node.outputs, results, strict=False):
            scope.names[value] = made.name
            writer.declare(made, tensor_type(value))
            if writer.graph == MAIN:
                self.note_dims(value, made.name)

    def note_dims(self, value: ir.Value, name: str) -> None:
        """Keep the names of open dims: by them ONNX Runtime knows that two shapes are the same.

        Behind a Reshape the file may name some that inference does not find. No pass of ours relies
        on these, but ONNX Runtime would with the file itself.
        """
        found, said = (self.open_names(s) for s in (value.shape, value.meta.get(SAID)))
        if len(found) == len(said):
            found = [a or b for a, b in zip(found, said, strict=True)]
        if any(found):
            self.dims[name] = found

    def open_names(self, shape: ir.Shape | None) -> list[str | None]:
        """What a shape calls those dims that are dims of inputs too."""
        dims = [None if isinstance(d, int) else d.value for d in shape or ()]
        return [d if d in self.open else None for d in dims]

    def equivalent(self, node: ir.Node, scope: Scope) -> tuple[Made, ...]:
        """The node as primitives."""
        if node.domain not in ("", "ai.onnx"):
            raise NoEquivalentError(f"domain {node.domain}")
        if scope.writer.label in self.as_is:
            raise NoEquivalentError("its primitives could not be read back")
        if node.op_type in CONTROL:
            return CONTROL[node.op_type](self, node, scope)
        row = BACKWARDS.get(node.op_type)
        if row is None:
            raise NoEquivalentError(KEPT.get(node.op_type, ""))
        inputs = [None if value is None else Operand(value) for value in node.inputs]
        results = write(row, scope.writer, inputs, _attributes(node))
        if isinstance(results, tuple | list):
            return tuple(results)
        return (results,)


def _weight(name: str, held: ir.TensorProtocol) -> Tensor:
    """A weight of the file; one that nobody has looked at is read when it is written."""
    if isinstance(held, UnreadTensor) and (dtype := from_numpy(held.dtype.numpy())) is not None:
        return Tensor(name, dtype, tuple(held.shape.numpy()), held.unread)
    return tensor(name, held.numpy())


def _why(node: ir.Node, exc: Exception) -> str:
    """Why a node travels as it is; the engine has the last word on one that makes no sense."""
    if not isinstance(exc, NoEquivalentError):
        return f"{node.op_type}: unforeseen inputs or attributes ({type(exc).__name__})"
    return f"{node.op_type}: {exc}" if str(exc) else node.op_type


def _packed(text: str | None) -> dict[str, str] | None:
    """The texts that from_mindir packed into one; None where it did not."""
    try:
        found = read_json(text or "")
    except ValueError:
        return None
    texts = isinstance(found, dict) and all(isinstance(value, str) for value in found.values())
    return found if texts else None


def _is_fed(value: ir.Value) -> bool:
    """Old models list their weights among the inputs."""
    return value.const_value is None


def _attributes(node: ir.Node) -> dict[str, Any]:
    """The attributes as Python values."""
    found = {}
    for name, attr in node.attributes.items():
        if attr.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS):
            raise NoEquivalentError("a sub-graph")
        value = attr.value
        if attr.type == ir.AttributeType.TENSOR:
            value = np.asarray(value.numpy())
        elif isinstance(value, list | tuple):
            value = list(value)
        found[name] = value
    return found


def _primitives(graphs: Iterable[Graph]) -> Counter[str]:
    calls = (node for graph in graphs for node in graph.nodes if isinstance(node, Call))
    return Counter(
        call.target.op if isinstance(call.target, Primitive) else "call of a graph"
        for call in calls
    )
