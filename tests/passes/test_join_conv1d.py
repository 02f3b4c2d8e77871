"""passes/join_conv1d.py: convolutions over one axis that MindIR writes over two."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from support.onnx_graphs import F32, model, node
from support.running import run_graph

from mindspore_lite.passes.join_conv1d import join_conv1d
from mindspore_lite.passes.remove_dead import remove_dead

X = np.random.default_rng(0).standard_normal((2, 4, 9)).astype(np.float32)


def net(added: int = 2, taken: int = 2, **more: Any) -> ir.Model:
    """An int8 weight restored, and its convolution over an image of one row or column."""
    rng = np.random.default_rng(1)
    weights = {
        "q": rng.integers(-127, 127, (6, 4, 3)).astype(np.int8),
        "s": rng.random(6).astype(np.float32),
        "f": rng.random((6, 4, 3)).astype(np.float32),
        "b": rng.random(6).astype(np.float32),
        "added": np.array([added]),
        "taken": np.array(more.pop("both", [taken])),
        "another": np.array([more.pop("another", added)]),
    }
    bias = ["b"] if more.pop("bias", True) else []
    weight = more.pop("weight", "w")
    outputs = more.pop("outputs", ["y"])
    nodes = [
        node("DequantizeLinear", ["q", "s"], ["w"], axis=0),
        node("Unsqueeze", ["x", "added"], ["image"]),
        node("Unsqueeze", [weight, "another"], ["kernel"]),
        node("Conv", ["image", "kernel", *bias], ["wide"], **more),
        node("Squeeze", ["wide", "taken"], ["y"]),
    ]
    nodes[3].name = "conv"
    return ir.from_proto(model(nodes, [("x", F32, (2, 4, 9))], outputs, **weights))


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"bias": False},
        {"pads": [0, 2, 0, 1]},
        {"strides": [1, 2], "dilations": [1, 3], "kernel_shape": [1, 3]},
        {"auto_pad": "SAME_UPPER", "strides": [1, 2]},
        {"added": -2, "taken": 2},
        {"added": 3, "taken": -1, "pads": [2, 0, 1, 0], "strides": [2, 1]},
    ],
)
def test_it_computes_the_same_over_one_axis(more: dict[str, Any]) -> None:
    made = net(**more)
    (want,) = run_graph(made.clone(), X)
    assert join_conv1d(made) == 1
    remove_dead(made)
    assert [n.op_type for n in made.graph] == ["DequantizeLinear", "Conv"]
    assert made.graph[1].name == "conv"
    assert made.graph.outputs[0].name == "y"
    (got,) = run_graph(made, X)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    "more",
    [
        {"weight": "f"},  # float32 has faster kernels over two axes
        {"pads": [1, 1, 0, 1], "strides": [2, 1]},  # the row is not the same
        {"taken": 3, "added": 3, "another": 2, "pads": [0, 0, 0, 0]},
        {"outputs": ["y", "wide"]},
    ],
)
def test_others_stay(more: dict[str, Any]) -> None:
    made = net(**more)
    assert join_conv1d(made) == 0
    assert [n.op_type for n in made.graph][-2:] == ["Conv", "Squeeze"]
