"""Graphs that ONNX Runtime would compute wrongly, written so that it does not.

Pad_Fusion (1.31 and older) puts a Pad of zeros into the MaxPool behind it. But a MaxPool takes what
lies outside to be minus infinity, so windows at the border lose their zero. It leaves a MaxPool
alone that says VALID, or that is asked for indices.
"""

from __future__ import annotations

import onnx_ir as ir


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
