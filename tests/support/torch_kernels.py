"""One node on torch, beside ONNX Runtime: what the node tests of the onnx package leave out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import torch
from onnx import helper
from support.random_onnx import computed
from support.running import assert_close
from support.torch_nodes import run_graph

from mindspore_lite.engines.torch.kernels.lower import Lowered, Target, lower

OPSET = 21
_RANDOM = np.random.default_rng(7)


def f32(*shape: int) -> np.ndarray:
    """Normal numbers."""
    return _RANDOM.normal(size=shape).astype(np.float32)


def whole(low: int, high: int, dtype: Any, *shape: int) -> np.ndarray:
    """Integers of a type."""
    return _RANDOM.integers(low, high, shape).astype(dtype)


def one_node(
    op_type: str,
    inputs: Sequence[np.ndarray | None],
    constant: Sequence[int] = (),
    outputs: int = 1,
    domain: str = "",
    **attributes: Any,
) -> ir.Model:
    """A model of one node; the inputs at the places in `constant` are weights."""
    values = [
        None
        if array is None
        else ir.val(f"x{at}", ir.DataType.from_numpy(array.dtype), array.shape)
        for at, array in enumerate(inputs)
    ]
    for at in constant:
        values[at].const_value = ir.tensor(inputs[at], name=f"x{at}")  # type: ignore[union-attr]
    node = ir.node(op_type, values, attributes, domain=domain, num_outputs=outputs, name="node")
    given = [v for at, v in enumerate(values) if v is not None and at not in constant]
    weights = [values[at] for at in constant]
    graph = ir.Graph(
        given, node.outputs, nodes=[node], initializers=weights, opset_imports={"": OPSET}
    )
    for at, value in enumerate(node.outputs):
        value.name = f"y{at}"
    return ir.Model(graph, ir_version=10)


def assert_as_onnxruntime(
    op_type: str,
    inputs: Sequence[np.ndarray | None],
    constant: Sequence[int] = (),
    outputs: int = 1,
    **attributes: Any,
) -> None:
    """What torch computes is what ONNX Runtime does, with known sizes and with open ones."""
    names = ["" if array is None else f"x{at}" for at, array in enumerate(inputs)]
    node = helper.make_node(op_type, names, [f"y{at}" for at in range(outputs)], **attributes)
    arrays = dict(zip(names, inputs, strict=True))
    wanted = computed(node, {name: arrays[name] for name in names if name}, OPSET)
    given = [a for at, a in enumerate(inputs) if a is not None and at not in constant]
    for dynamic in (False, True):
        model = one_node(op_type, inputs, constant, outputs, **attributes)
        for got, want in zip(run_graph(model, given, dynamic), wanted, strict=True):
            assert_close(got, want, op_type)


def lowered(model: ir.Model, device: str = "cpu", half: torch.dtype | None = None) -> Lowered:
    """A model for the shapes that it declares."""
    shapes = [[int(dim) for dim in value.shape or ()] for value in model.graph.inputs]
    return lower(model, shapes, Target(torch.device(device), half))
