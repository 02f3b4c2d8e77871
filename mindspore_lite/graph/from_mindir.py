"""MindIR records in, an onnx-ir model out."""

from __future__ import annotations

import json
from collections.abc import Mapping

import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from mindspore_lite.graph.bfloat16 import KEY as BORDER
from mindspore_lite.graph.bfloat16 import has_bfloat16, note_border, without_bfloat16
from mindspore_lite.graph.fuse_conv_bias import fuse_conv_bias
from mindspore_lite.graph.fuse_gemm_bias import fuse_gemm_bias
from mindspore_lite.graph.notes import NOTES, read_notes
from mindspore_lite.graph.walk import Shape, Walk
from mindspore_lite.mindir.records import Model
from mindspore_lite.ops.tape import IR_VERSION


def from_mindir(model: Model, input_shapes: Mapping[str, Shape] | None = None) -> ir.Model:
    """Translate a model; `input_shapes` replaces the shapes of inputs that the file fixed."""
    narrow = has_bfloat16(model)
    notes = read_notes(model.graph.attributes.get(NOTES))
    walk = Walk(without_bfloat16(model) if narrow else model, dict(input_shapes or {}), notes)
    inputs, outputs = walk.translate()
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
    if notes.border:
        metadata[BORDER] = notes.border
    made = ir.Model(graph, ir_version=IR_VERSION, producer_name="mslite", metadata_props=metadata)
    if narrow:
        note_border(made, model)
    fuse_gemm_bias(made)
    fuse_conv_bias(made)
    RemoveUnusedNodesPass()(made)
    walk.refuse_state()
    return made
