"""Facts about a MindIR file, whether or not it can be translated, and its graphs as sketches."""

from __future__ import annotations

import math
import mmap
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import onnx_ir as ir

from mindspore_lite.errors import ModelFileError, UnsupportedOpError
from mindspore_lite.graph.source import mindir_source
from mindspore_lite.inspection import facts, operators
from mindspore_lite.inspection.memory import estimate
from mindspore_lite.inspection.onnx_model import ports
from mindspore_lite.mindir.read import read_file
from mindspore_lite.mindir.records import (
    Call,
    Graph,
    GraphRef,
    Model,
    Primitive,
    SequenceType,
    TensorType,
    Type,
    local_name,
)
from mindspore_lite.mindir.scan import fields

# Model.graph, Graph.parameter, Tensor.external_data, its location
_EXTERNAL_PATH = (7, 3, 12, 1)
_ROLES = {  # marks that MindSpore puts into the names of graphs
    "✓": "then branch",
    "✗": "else branch",
    "↵": "loop header",
    "↻": "loop body",
    "↓": "after a branch or loop",
    "↰": "then branch",
    "↱": "else branch",
    "CR_": "reused cell",
}


def examine(path: Path) -> tuple[facts.Facts, Model]:
    """Everything that is known without running the model, and the records of the file."""
    model = read_file(path)
    graph, problems = _translated(path, model)
    known = facts.Facts(
        file=str(path),
        size_bytes=path.stat().st_size,
        format="MindIR",
        producer=model.producer,
        producer_version=model.producer_version,
        ir_version=model.ir_version,
        mind_ir_version=model.mind_ir_version,
        encoding=_encoding(model),
        user_info=dict(model.user_info),
        inputs=ports(graph.graph.inputs) if graph else tuple(_declared_inputs(model)),
        outputs=ports(graph.graph.outputs) if graph else tuple(_declared_outputs(model)),
        weights=facts.weights_of(
            [(w.dtype.name, math.prod(w.shape), len(w.data)) for w in model.graph.parameters]
        ),
        external_files=tuple(_external_files(path)),
        operators=_operators(model, problems),
        in_place={n: c for n, c in _counted(model).items() if operators.writes_in_place(n)},
        graphs=_graphs(model),
        problems=problems,
        memory=estimate(graph) if graph else None,  # the last to look: it uses the graph up
    )
    return known, model


def graphs_of(model: Model) -> list[Graph]:
    """All graphs, the main one first."""
    return [model.graph, *model.functions.values()]


def calls_of(graph: Graph) -> Iterator[Call]:
    """The nodes that do something."""
    return (node for node in graph.nodes if isinstance(node, Call))


def op_of(node: Call) -> str:
    """The primitive of a node, or what stands for it where it calls a graph."""
    return node.target.op if isinstance(node.target, Primitive) else operators.CALL


def label_of(node: Call) -> str:
    """Where a node stands in the network, as the translator's errors name it."""
    return node.scope or local_name(node.name).rsplit(":", 1)[0]


def role_of(graph: Graph, model: Model) -> str:
    """What a graph is for, as far as MindSpore's marks tell."""
    if graph is model.graph:
        return "main"
    return next((role for mark, role in _ROLES.items() if mark in graph.name), "called graph")


def _translated(path: Path, model: Model) -> tuple[ir.Model | None, tuple[facts.Problem, ...]]:
    found: dict[str, list[str]]
    try:
        return mindir_source(path).translate(), ()
    except UnsupportedOpError as exc:
        found = {reason: list(places) for reason, places in exc.problems.items()}
        found = found or {str(exc): []}
    except ModelFileError as exc:  # it can be read, but what it says makes no sense
        found = {str(exc): []}
    for reason, places in _missing(model).items():
        found[reason] = list(dict.fromkeys([*found.get(reason, ()), *places]))
    return None, tuple(facts.Problem(reason, tuple(places)) for reason, places in found.items())


def _missing(model: Model) -> dict[str, list[str]]:
    """Nodes of primitives that are in no table: the translator stops before those behind others."""
    found: dict[str, list[str]] = {}
    for graph in graphs_of(model):
        for node in calls_of(graph):
            if operators.family_of(op_of(node)) is None:
                found.setdefault(op_of(node), []).append(label_of(node))
    return found


def _encoding(model: Model) -> str:
    if "fmk" in model.graph.attributes or "isOptimized" in model.graph.attributes:
        return "attribute form of converter_lite"
    if model.ir_version == "0.1.0":
        return "attribute form of MindSpore 1.6 and older"
    if model.mind_ir_version < 2:
        return "attribute form of MindSpore 1.7 to 2.2"
    return "argument form of MindSpore 2.3 and newer"


def _declared_inputs(model: Model) -> Iterator[facts.Port]:
    for declared in model.graph.inputs:
        yield from _ports(declared.given_name or local_name(declared.name), declared.type)


def _declared_outputs(model: Model) -> Iterator[facts.Port]:
    named = {node.name: node for node in calls_of(model.graph)}
    for name in model.graph.outputs:
        if name in named:
            yield from _ports(label_of(named[name]), named[name].type)
        else:
            yield facts.Port(local_name(name), "", None)


def _ports(name: str, kind: Type | None) -> Iterator[facts.Port]:
    if isinstance(kind, TensorType):
        yield facts.Port(name, kind.dtype.name, kind.shape)
    elif isinstance(kind, SequenceType):
        for number, item in enumerate(kind.items):
            yield from _ports(f"{name}:{number}", item)


def _external_files(path: Path) -> Iterator[facts.ExternalFile]:
    with open(path, "rb") as file:
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    names = sorted(set(_texts(data, 0, len(data), _EXTERNAL_PATH)))
    for name in names:
        place = path.parent / name
        yield facts.ExternalFile(name, place.stat().st_size if place.is_file() else None)


def _texts(data: memoryview, start: int, end: int, path: tuple[int, ...]) -> Iterator[str]:
    """The texts at a path of field numbers; nothing else of the file is looked at."""
    number, *deeper = path
    for field in fields(data, start, end):
        if field.number != number or not field.is_bytes:
            continue
        if deeper:
            yield from _texts(data, field.start, field.end, tuple(deeper))
        else:
            yield bytes(data[field.start : field.end]).decode("utf-8", "replace")


def _counted(model: Model) -> Counter[str]:
    return Counter(op_of(node) for graph in graphs_of(model) for node in calls_of(graph))


def _operators(model: Model, problems: tuple[facts.Problem, ...]) -> tuple[facts.Operator, ...]:
    refused = {problem.reason.partition(":")[0] for problem in problems}
    return tuple(
        facts.Operator(name, count, operators.family_of(name) or "", name not in refused)
        for name, count in sorted(_counted(model).items(), key=lambda item: (-item[1], item[0]))
    )


def _graphs(model: Model) -> tuple[facts.Graph, ...]:
    callers: dict[str, list[str]] = {}
    for graph in graphs_of(model):
        for node in calls_of(graph):
            called = {name for name in node.inputs if name in model.functions}
            if isinstance(node.target, GraphRef):
                called.add(node.target.name)
            for name in sorted(called):
                callers.setdefault(name, []).append(label_of(node))
    return tuple(
        facts.Graph(
            graph.name,
            role_of(graph, model),
            sum(1 for _ in calls_of(graph)),
            tuple(callers.get(graph.name, ())),
        )
        for graph in graphs_of(model)
    )


def refusals(problems: tuple[facts.Problem, ...]) -> Mapping[tuple[str, str], str]:
    """(operator, label) -> reason, to find the nodes that problems are about."""
    return {
        (problem.reason.partition(":")[0], place): problem.reason
        for problem in problems
        for place in problem.places
    }
