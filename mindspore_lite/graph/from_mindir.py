"""Translates MindIR records into an onnx-ir model."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from mindspore_lite.core.budget import DEFAULT, Budget
from mindspore_lite.graph.bfloat16 import KEY as BORDER
from mindspore_lite.graph.bfloat16 import (
    bfloat16_results,
    has_bfloat16,
    note_border,
    without_bfloat16,
)
from mindspore_lite.graph.notes import NOTES, read_notes
from mindspore_lite.graph.parameters import note_parameter
from mindspore_lite.graph.state import KEY as STATE
from mindspore_lite.graph.state import Kept, refuse, written
from mindspore_lite.graph.walk import Shape, Walk
from mindspore_lite.mindir.records import Call, Constant, GraphRef, Model
from mindspore_lite.ops.tape import IR_VERSION
from mindspore_lite.passes.fuse_conv_bias import fuse_conv_bias
from mindspore_lite.passes.fuse_gemm_bias import fuse_gemm_bias
from mindspore_lite.passes.join_conv1d import join_conv1d
from mindspore_lite.passes.node_count import node_weight, too_many


def from_mindir(
    model: Model,
    input_shapes: Mapping[str, Shape] | None = None,
    budget: Budget = DEFAULT,
    *,
    carries_state: bool = False,
    strict_bfloat16: bool = False,
) -> ir.Model:
    """Translate a model; `input_shapes` replaces the shapes of inputs that the file fixed.

    carries_state: whoever runs it carries what graph/state.py describes; else that is refused.
    strict_bfloat16: results of that type are rounded, not only where values leave.
    """
    narrow = has_bfloat16(model)
    notes = read_notes(model.graph.attributes.get(NOTES))
    plain = without_bfloat16(model) if narrow else model
    check_calls(plain, budget.max_nodes)
    shapes = dict(input_shapes or {})
    rounded = bfloat16_results(model) if narrow and strict_bfloat16 else {}
    walk = Walk(plain, shapes, notes, budget, rounded=rounded)
    inputs, outputs = walk.translate()
    if assigned := walk.written():  # once more, for none of these is a constant
        walk = Walk(plain, shapes, notes, budget, assigned, rounded)
        inputs, outputs = walk.translate()
    for name, first, _ in walk.weights:
        if name in notes.parameters and isinstance(first, ir.Value):
            note_parameter(first, notes.parameters[name])
    seen = list(inputs), list(outputs)
    state = _add_state(walk, model, inputs, outputs)
    if state and not carries_state:
        raise refuse(state[0].name)
    graph = ir.Graph(
        inputs,
        outputs,
        nodes=walk.tape.nodes,
        initializers=walk.tape.initializers,
        opset_imports=walk.tape.opsets,
        name="main",
    )
    metadata = {
        "producer": f"{model.producer} {model.producer_version}".strip(),
        "user_info": json.dumps(dict(model.user_info), sort_keys=True),  # the file has no order
    }
    if any(walk.border.values()):
        metadata[BORDER] = json.dumps(walk.border)
    if state:
        metadata[STATE] = written(state)
    if notes.border:
        metadata[BORDER] = notes.border
    made = ir.Model(graph, ir_version=IR_VERSION, producer_name="mslite", metadata_props=metadata)
    if narrow:
        note_border(made, model, seen)
    fuse_gemm_bias(made)
    fuse_conv_bias(made)
    join_conv1d(made)
    RemoveUnusedNodesPass()(made)
    return made


def _add_state(
    walk: Walk, model: Model, inputs: list[ir.Value], outputs: list[ir.Value]
) -> list[Kept]:
    """Give a network the inputs and outputs by which its state is carried."""
    narrow = {weight.name for weight in model.graph.parameters if weight.dtype.name == "bfloat16"}
    found = []
    for one, value in walk.state(outputs, narrow):
        inputs += (one.first, one.before)
        walk.tape.label = f"{one.initial.name}/after"
        after = walk.tape.op("Identity", [value])  # it may be an input, a constant, or an output
        after.type, after.shape = one.initial.type, one.initial.shape
        outputs.append(after)
        found.append(one.kept(str(after.name)))
    return found


def check_calls(model: Model, max_nodes: int) -> None:
    """Refuse graphs that call each other too often to be inlined, before anything is expanded.

    Only plain calls count, which are always expanded. Graphs that call themselves are loops: how
    they end is found by the walk, which counts as it goes.
    """
    graphs = {model.graph.name: model.graph, **model.functions}
    calls = {
        name: Counter(
            node.target.name
            for node in graph.nodes
            if isinstance(node, Call) and isinstance(node.target, GraphRef)
        )
        for name, graph in graphs.items()
    }
    sizes: dict[str, int] = {}
    try:
        order = list(TopologicalSorter(calls).static_order())
    except CycleError:
        return
    for name in order:
        own = sum(_weight_of(node) for node in graphs[name].nodes) if name in graphs else 0
        called = calls.get(name, {}).items()
        sizes[name] = min(own + sum(n * sizes[key] for key, n in called), max_nodes + 1)
    if sizes[model.graph.name] > max_nodes:
        raise too_many(max_nodes)


def _weight_of(node: Call | Constant) -> int:
    return node_weight(len(node.inputs)) if isinstance(node, Call) else 1
