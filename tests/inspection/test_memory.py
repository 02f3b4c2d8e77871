"""inspection/memory.py: the largest sum of tensors alive at once, counted by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
from onnx import TensorProto, helper, numpy_helper

from mindspore_lite.inspection import memory
from mindspore_lite.inspection.facts import Memory
from mindspore_lite.inspection.skeleton import skeleton_of

KIB = 1024  # float32 of shape (256,)


def model(
    nodes: list[Any], weights: dict[str, np.ndarray] | None = None, dim: Any = 256
) -> ir.Model:
    """y from x, both float32 vectors."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [dim])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()],
    )
    return ir.from_proto(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    )


def estimate(made: ir.Model) -> Memory:
    return memory.estimate(skeleton_of(made))


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    return helper.make_node(
        op, inputs.split(), outputs.split(), name=f"{op}-{outputs}", **attributes
    )


def test_a_chain_holds_two_results_and_the_input() -> None:
    made = estimate(model([node("Relu", "x", "a"), node("Neg", "a", "b"), node("Abs", "b", "y")]))
    assert made.activations_bytes == 3 * KIB  # x, a, b; then x, b, y
    assert made.peak_at == "Neg-b"
    assert not made.open_dims_as_one
    assert made.unknown_tensors == 0


def test_a_value_that_is_read_late_stays_alive() -> None:
    nodes = [
        node("Relu", "x", "early"),
        node("Neg", "x", "a"),
        node("Abs", "a", "b"),
        node("Add", "b early", "y"),
    ]
    assert estimate(model(nodes)).activations_bytes == 4 * KIB


def test_a_reshape_costs_nothing_and_keeps_its_source_alive() -> None:
    shape = {"shape": np.asarray([16, 16], np.int64)}
    nodes = [
        node("Relu", "x", "a"),
        node("Reshape", "a shape", "view"),
        node("Neg", "view", "b"),
        node("Add", "view b", "y"),
    ]
    found = estimate(model(nodes, shape))
    assert found.activations_bytes == 4 * KIB  # x, a seen as view, b, y


def test_weights_are_counted_apart_and_large_ones_too() -> None:
    weights = {"w": np.ones(256, np.float32), "big": np.ones((4, 256), np.float32)}
    nodes = [node("Add", "x w", "a"), node("Mul", "a big", "y")]
    found = estimate(model(nodes, weights))
    assert found.weights_bytes == 5 * KIB
    assert found.activations_bytes == (1 + 1 + 4) * KIB


def test_open_dims_count_as_one_wherever_they_lead() -> None:
    shape = {"shape": np.asarray([-1, 2], np.int64)}
    made = model([node("Concat", "x x", "a", axis=0), node("Reshape", "a shape", "y")], shape, "n")
    found = estimate(made)
    assert found.open_dims_as_one
    assert found.activations_bytes == 4 + 8


def test_a_size_that_depends_on_data_is_said_to_be_unknown() -> None:
    nodes = [node("NonZero", "x", "places"), node("Cast", "places", "y", to=TensorProto.FLOAT)]
    found = estimate(model(nodes))
    assert found.unknown_tensors == 2
    assert found.activations_bytes == KIB


def branch(name: str, count: int) -> Any:
    """A graph that holds `count` vectors at once."""
    nodes = [node("Relu", "x", f"{name}{i}") for i in range(count)]
    nodes.append(node("Sum", " ".join(f"{name}{i}" for i in range(count)), f"{name}_out"))
    out = helper.make_tensor_value_info(f"{name}_out", TensorProto.FLOAT, [256])
    return helper.make_graph(nodes, name, [], [out])


def test_the_larger_branch_counts_while_its_node_runs() -> None:
    nodes = [
        node("ReduceMax", "x", "top", keepdims=0),
        node("Cast", "top", "flag", to=TensorProto.BOOL),
        node("If", "flag", "y", then_branch=branch("t", 2), else_branch=branch("e", 5)),
    ]
    found = estimate(model(nodes))
    assert found.peak_at == "If-y"
    assert found.activations_bytes == (1 + 1 + 5 + 1) * KIB + 1  # x, y, branch with its sum, flag
