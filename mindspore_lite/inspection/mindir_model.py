"""Facts about a MindIR file, whether or not it can be translated."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import onnx_ir as ir

from mindspore_lite.errors import ModelFileError, UnsupportedOpError
from mindspore_lite.graph.notes import NOTES, read_notes
from mindspore_lite.graph.open_rank import OpenRankError
from mindspore_lite.graph.source import ModelSource
from mindspore_lite.graph.state import kept_in
from mindspore_lite.inspection import facts, operators
from mindspore_lite.inspection.memory import estimate
from mindspore_lite.inspection.skeleton import Skeleton, skeleton_of
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


def facts_of(path: Path, model: Model, source: ModelSource) -> facts.Facts:
    """Everything that is known without running the model."""
    graph, problems = _translated(model, source)
    writer = read_notes(model.graph.attributes.get(NOTES)).writer
    kept = tuple(one.name for one in kept_in(graph.metadata_props)) if graph else ()
    skeleton = skeleton_of(graph) if graph else None
    return facts.Facts(
        file=str(path),
        size_bytes=path.stat().st_size,
        format="MindIR",
        producer=writer or model.producer,  # our own files name MindSpore, whose loader wants that
        producer_version="" if writer else model.producer_version,
        ir_version=model.ir_version,
        mind_ir_version=model.mind_ir_version,
        encoding=_encoding(model),
        user_info=dict(model.user_info),
        inputs=tuple(_inputs(model)),
        outputs=tuple(_outputs(model, skeleton, len(kept))),
        weights=facts.weights_of(
            [(w.dtype.name, math.prod(w.shape), len(w.data)) for w in model.graph.parameters]
        ),
        external_files=facts.external_files(source.files[1:]),
        operators=_operators(model, problems),
        in_place={n: c for n, c in _counted(model).items() if operators.writes_in_place(n)},
        kept=kept,
        graphs=_graphs(model),
        problems=problems,
        memory=estimate(skeleton) if skeleton else None,
    )


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
    """What a graph is for, as far as MindSpore's marks say."""
    if graph is model.graph:
        return "main"
    return next((role for mark, role in _ROLES.items() if mark in graph.name), "called graph")


def refusals(problems: tuple[facts.Problem, ...]) -> dict[tuple[str, str], str]:
    """(operator, label) -> reason, to find the nodes that problems are about."""
    return {
        (op_in(problem.reason), place): problem.reason
        for problem in problems
        for place in problem.places
    }


def op_in(reason: str) -> str:
    """The operator that a reason of the translator begins with."""
    return reason.partition(": ")[0]


def _translated(
    model: Model, source: ModelSource
) -> tuple[ir.Model | None, tuple[facts.Problem, ...]]:
    found: dict[str, list[str]]
    try:
        return source.translate(), ()
    except OpenRankError:  # it can run; what it needs depends on the number of dims
        return None, ()
    except UnsupportedOpError as exc:
        found = {reason: list(places) for reason, places in exc.problems.items()}
        found = found or {str(exc): []}
    except ModelFileError as exc:  # it can be read, but what it says makes no sense
        found = {str(exc): []}
    _add_missing(model, found)
    return None, tuple(facts.Problem(reason, tuple(places)) for reason, places in found.items())


def _add_missing(model: Model, found: dict[str, list[str]]) -> None:
    """Primitives that are in no table where the translator never came: behind other problems."""
    told = {(op_in(reason), place) for reason, places in found.items() for place in places}
    for graph in graphs_of(model):
        for node in calls_of(graph):
            op, label = op_of(node), label_of(node)
            if operators.family_of(op) is None and (op, label) not in told:
                told.add((op, label))
                found.setdefault(op, []).append(label)


def _encoding(model: Model) -> str:
    if "fmk" in model.graph.attributes or "isOptimized" in model.graph.attributes:
        return "attribute form of converter_lite"
    if model.ir_version == "0.1.0":
        return "attribute form of MindSpore 1.6 and older"
    if model.mind_ir_version < 2:
        return "attribute form of MindSpore 1.7 to 2.2"
    return "argument form of MindSpore 2.3 and newer"


def _inputs(model: Model) -> Iterator[facts.Port]:
    for declared in model.graph.inputs:
        yield from _ports(declared.given_name or local_name(declared.name), declared.type)


def _outputs(model: Model, skeleton: Skeleton | None, kept: int) -> list[facts.Port]:
    """Types as the file declares them, names as the translated model has them.

    The last ones of that are what it keeps from run to run.
    """
    named = {node.name: node for node in calls_of(model.graph)}
    declared: list[facts.Port] = []
    for name in model.graph.outputs:
        if name in named:
            declared += _ports(label_of(named[name]), named[name].type)
    if skeleton is None:
        return declared
    made = skeleton.outputs()
    made = made[: len(made) - kept]
    if len(made) != len(declared):  # the file does not give all types
        return list(made)
    return [replace(port, name=own.name) for port, own in zip(declared, made, strict=True)]


def _ports(name: str, kind: Type | None) -> Iterator[facts.Port]:
    if isinstance(kind, TensorType):
        yield facts.Port(name, kind.dtype.name, kind.shape)
    elif isinstance(kind, SequenceType):
        for number, item in enumerate(kind.items):
            yield from _ports(f"{name}_{number}", item)


def _counted(model: Model) -> Counter[str]:
    return Counter(op_of(node) for graph in graphs_of(model) for node in calls_of(graph))


def _operators(model: Model, problems: tuple[facts.Problem, ...]) -> tuple[facts.Operator, ...]:
    refused = {op_in(problem.reason) for problem in problems}
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
