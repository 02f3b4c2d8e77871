"""Rewrites graphs that ONNX Runtime would compute wrongly.

1. Pad_Fusion (1.31 and older) puts a Pad of zeros into the MaxPool behind it. But a MaxPool takes
   what lies outside to be minus infinity, so windows at the border lose their zero. It leaves a
   MaxPool alone that says VALID, or that is asked for indices.
2. LSTM and GRU (1.31 and older) end the process by abort() when they are given a batch of no rows:
   their threads are left behind when the rows cannot be divided among them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from mindspore_lite.passes.edit import before, dims_of, ints, name_all


def keep_zeros_before_max_pool(model: ir.Model) -> int:
    """Guard each MaxPool that follows a Pad; returns how many there were."""
    count = 0
    for pool in list(model.graph.all_nodes()):
        source = pool.inputs[0] if pool.op_type == "MaxPool" and not pool.domain else None
        maker = source.producer() if source is not None else None
        if maker is None or maker.op_type != "Pad" or len(pool.outputs) > 1:
            continue
        count += 1
        if _has_no_pads(pool):
            pool.attributes.pop("pads", None)
            pool.attributes["auto_pad"] = ir.AttrString("auto_pad", "VALID")
        elif "auto_pad" not in pool.attributes:
            _ask_for_indices(pool)
    return count


def _has_no_pads(pool: ir.Node) -> bool:
    """Whether VALID means the same: that rounds down, whatever ceil_mode says."""
    pads = pool.attributes.get("pads")
    return (
        "auto_pad" not in pool.attributes
        and not pool.attributes.get_int("ceil_mode", 0)
        and not any(pads.as_ints() if pads is not None else ())
    )


def _ask_for_indices(pool: ir.Node) -> None:
    first, graph = pool.outputs[0], pool.graph
    assert graph is not None
    asked = ir.node(
        "MaxPool",
        list(pool.inputs),
        dict(pool.attributes),
        outputs=[
            ir.Value(type=first.type, shape=first.shape),
            ir.Value(name=f"{first.name}:indices", type=ir.TensorType(ir.DataType.INT64)),
        ],
        name=pool.name,
        version=pool.version,
    )
    graph.insert_after(pool, asked)
    name, first.name = first.name, None
    first.replace_all_uses_with(asked.outputs[0], replace_graph_outputs=True)
    asked.outputs[0].name = name
    graph.remove(pool, safe=True)


def guard_empty_batches(model: ir.Model, kinds: tuple[str, ...] = ("LSTM", "GRU")) -> int:
    """Let no such node have a batch without rows; returns how many might have had one."""
    found = [
        node
        for node in model.graph.all_nodes()
        if node.op_type in kinds and not node.domain and not _has_rows(node)
    ]
    for node in found:
        _guard(node)
    if found:
        name_all(model)
    return len(found)


def _has_rows(node: ir.Node) -> bool:
    dims = dims_of(node.inputs[0])  # time, batch, features
    return dims is not None and len(dims) > 1 and bool(dims[1])


def _guard(node: ir.Node) -> None:
    """Put a node into a branch that is taken where there are rows; else its outputs are empty."""
    graph, x = node.graph, node.inputs[0]
    assert graph is not None
    rows = before(node, "Gather", [before(node, "Shape", [x]), ints(node, 1, "one")], label="batch")
    some = before(node, "Greater", [rows, ints(node, 0, "none")], label="some")
    wanted = [output for output in node.outputs if output.name]
    made = [ir.Value(type=output.type, shape=output.shape) for output in wanted]
    branches = {"then_branch": _computed(node), "else_branch": _empty(node, wanted)}
    choice = ir.node("If", [some], branches, outputs=made, name=f"{node.name}_guard")
    graph.insert_before(node, choice)
    for old, new in zip(wanted, made, strict=True):
        name, old.name = old.name, None
        ir.convenience.replace_all_uses_with(old, new, replace_graph_outputs=True)
        new.name = name
    graph.remove(node, safe=True)


def _computed(node: ir.Node) -> ir.Graph:
    names = [f"{output.name}_rows" if output.name else "" for output in node.outputs]
    outputs = [ir.Value(name=name) for name in names]
    inner = ir.node(
        node.op_type,
        list(node.inputs),
        dict(node.attributes),
        outputs=outputs,
        name=node.name,
        version=node.version,
    )
    kept = [value for value in outputs if value.name]
    return ir.Graph([], kept, nodes=[inner], name=f"{node.name}_rows")


def _empty(node: ir.Node, wanted: list[ir.Value]) -> ir.Graph:
    """Outputs of no rows: (time, directions, 0, size) of the first, the others without time."""
    x, recurrent = node.inputs[0], node.inputs[2]
    assert recurrent is not None
    dtype = recurrent.dtype or (x.dtype if x is not None else None) or ir.DataType.FLOAT
    nodes: list[ir.Node] = []

    def add(op: str, inputs: list[ir.Value | None], label: str, **more: Any) -> ir.Value:
        name = f"{node.name or node.op_type}_{label}"
        made = ir.node(op, inputs, more, outputs=[ir.Value(name=name)], name=name)
        nodes.append(made)
        return made.outputs[0]

    def size(value: ir.Value | None, at: int, label: str) -> ir.Value:
        place = add("Constant", [], f"{label}_at", value=ir.tensor(np.array([at], np.int64)))
        return add("Gather", [add("Shape", [value], f"{label}_shape"), place], label)

    sides = [size(recurrent, 0, "directions"), size(x, 1, "batch"), size(recurrent, 2, "size")]
    time = size(x, 0, "time")
    outputs = []
    for at, output in enumerate(node.outputs):
        if output not in wanted:
            continue
        dims = add("Concat", [time, *sides] if at == 0 else list(sides), f"dims{at}", axis=0)
        zero = ir.tensor(np.zeros(1, dtype.numpy()), dtype)
        outputs.append(add("ConstantOfShape", [dims], f"empty{at}", value=zero))
    return ir.Graph([], outputs, nodes=nodes, name=f"{node.name}_empty")
