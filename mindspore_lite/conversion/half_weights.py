"""Stores float32 weights as float16, in half the space.

A weight keeps its name and is cast back to float32 where it enters the graph; engines do that once,
while compiling. The numbers lose digits beyond the eleventh bit, the computation stays float32.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

MIN_BYTES = 1024  # smaller ones are scales, bounds and shapes: nothing to gain, digits to lose


@dataclass(frozen=True)
class Halved:
    """What was done: weights that became float16, and those whose numbers float16 cannot hold."""

    count: int = 0
    saved_bytes: int = 0
    left: tuple[str, ...] = ()


def halve_weights(model: ir.Model) -> Halved:
    """Store the float32 weights of all graphs as float16, in place."""
    count = saved = 0
    left = []
    for graph in list(model.graphs()):
        for value in list(graph.initializers.values()):
            if not _is_weight(value):
                continue
            half = _halved(value)
            if half is None:
                left.append(str(value.name))
                continue
            _exchange(graph, value, half)
            count += 1
            saved += half.nbytes
    return Halved(count, saved, tuple(left))


def _is_weight(value: ir.Value) -> bool:
    tensor = value.const_value
    return (
        tensor is not None
        and tensor.dtype == ir.DataType.FLOAT
        and tensor.nbytes >= MIN_BYTES
        and bool(value.uses())
        and not value.is_graph_input()  # a default that callers may replace by a float32
        and not value.is_graph_output()
    )


def _halved(value: ir.Value) -> np.ndarray | None:
    """The numbers as float16; None if one of them becomes infinite, or if all of them become 0."""
    assert value.const_value is not None
    wide = value.const_value.numpy()
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        half: np.ndarray = wide.astype(np.float16)
    if np.count_nonzero(np.isinf(half)) != np.count_nonzero(np.isinf(wide)):
        return None
    return None if wide.any() and not half.any() else half


def _exchange(graph: ir.Graph, value: ir.Value, half: np.ndarray) -> None:
    cast = ir.node("Cast", [value], {"to": ir.DataType.FLOAT}, name=f"{value.name}:float32")
    (restored,) = cast.outputs
    restored.name, restored.shape = cast.name, value.shape
    restored.type = ir.TensorType(ir.DataType.FLOAT)
    value.replace_all_uses_with(restored)
    cast.replace_input_with(0, value)  # it was a use too
    graph.insert_before(graph[0], cast)
    value.const_value = ir.Tensor(half, name=value.name)
    value.type = ir.TensorType(ir.DataType.FLOAT16)
