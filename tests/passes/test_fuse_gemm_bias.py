"""passes/fuse_gemm_bias.py: the bias joins the Gemm where Gemm means the same, and nowhere else."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx_ir.passes.common import RemoveUnusedNodesPass
from support.mindir_builder import Net
from support.running import op_types, run_graph

from mindspore_lite.graph.from_mindir import from_mindir
from mindspore_lite.passes.fuse_gemm_bias import fuse_gemm_bias

RNG = np.random.default_rng(0)
A = RNG.random((2, 3), dtype=np.float32)
B = RNG.random((4, 3), dtype=np.float32)


def constant(name: str, array: np.ndarray) -> ir.Value:
    return ir.Value(
        name=name,
        type=ir.TensorType(ir.DataType.from_numpy(array.dtype)),
        shape=ir.Shape(array.shape),
        const_value=ir.Tensor(array, name=name),
    )


def model(bias: np.ndarray | None, *, swapped: bool = False, **more: Any) -> ir.Model:
    """Add(Gemm(a, b), bias); bias None is an input of shape (4)."""
    a = ir.Value(name="a", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(A.shape))
    b = constant("b", B)
    held = ir.Value(name="bias", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([4]))
    if bias is not None:
        held = constant("bias", bias)
    if more.get("unknown_width"):
        b.shape = None
    first = [a, b, constant("c", np.ones(4, np.float32))] if more.get("has_bias") else [a, b]
    gemm = ir.node("Gemm", first, {"transB": 1}, name="gemm")
    product = gemm.outputs[0]
    product.name = "product"
    add = ir.node("Add", [held, product] if swapped else [product, held], name="add")
    add.outputs[0].name = "sum"
    nodes, outputs = [gemm, add], [add.outputs[0]]
    if more.get("used_twice"):
        nodes.append(ir.node("Neg", [product], name="neg"))
        outputs.append(nodes[-1].outputs[0])
    if more.get("is_output"):
        outputs.append(product)
    for value in outputs:
        value.type = ir.TensorType(ir.DataType.FLOAT)
    inputs = [a] if bias is not None else [a, held]
    known = [v for v in (b, held, *first[2:]) if v.const_value is not None]
    graph = ir.Graph(
        inputs, outputs, nodes=nodes, initializers=known, opset_imports={"": 21}, name="g"
    )
    return ir.Model(graph, ir_version=10)


@pytest.mark.parametrize("shape", [(4,), (1, 4), (1,), (1, 1)])
def test_a_bias_that_broadcasts_over_rows_is_fused(shape: tuple[int, ...]) -> None:
    bias = RNG.random(shape, dtype=np.float32)
    made = model(bias)
    assert fuse_gemm_bias(made) == 1
    RemoveUnusedNodesPass()(made)
    assert op_types(made) == ["Gemm"]
    (got,) = run_graph(made, A)
    np.testing.assert_allclose(got, A @ B.T + bias, rtol=1e-5)


def test_the_names_of_product_and_output_live_on() -> None:
    made = model(np.ones(4, np.float32))
    fuse_gemm_bias(made)
    RemoveUnusedNodesPass()(made)
    (node,) = made.graph
    assert (node.name, made.graph.outputs[0].name) == ("gemm", "sum")
    assert node.attributes["transB"].value == 1


REFUSED: dict[str, tuple[np.ndarray | None, dict[str, bool]]] = {
    "a bias per row": (np.ones((2, 1), np.float32), {}),
    "a whole matrix": (np.ones((2, 4), np.float32), {}),
    "more dims": (np.ones((1, 1, 4), np.float32), {}),
    "a width that is not known": (np.ones(4, np.float32), {"unknown_width": True}),
    "a scalar": (np.array(2, np.float32), {}),
    "a bias computed at run time": (None, {}),
    "a product used elsewhere": (np.ones(4, np.float32), {"used_twice": True}),
    "a product that is an output": (np.ones(4, np.float32), {"is_output": True}),
    "a Gemm that has a bias": (np.ones(4, np.float32), {"has_bias": True}),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_would_change_the_meaning_is_left_alone(why: str) -> None:
    bias, more = REFUSED[why]
    inputs = [A] if bias is not None else [A, np.ones(4, np.float32)]
    before = run_graph(model(bias, **more), *inputs)
    made = model(bias, **more)
    assert fuse_gemm_bias(made) == 0
    assert "Add" in op_types(made)
    for got, wanted in zip(run_graph(made, *inputs), before, strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_a_bias_that_makes_the_product_larger_is_left_alone() -> None:
    """Product (2, 1) plus bias (5) is (2, 5); Gemm's C must not be larger than the product."""
    net = Net()
    x = net.input("x", (2, 3))
    w, bias = net.weight("w", np.ones((1, 3), np.float32)), np.arange(5, dtype=np.float32)
    product = net.call("MatMul", x, w, transpose_b=True)
    made = from_mindir(net.model(net.call("Add", product, net.weight("b", bias))))
    (got,) = run_graph(made, A)
    np.testing.assert_allclose(got, A.sum(1, keepdims=True) + bias, rtol=1e-5)


def test_a_sum_with_the_bias_in_front_means_the_same() -> None:
    made = model(np.ones(4, np.float32), swapped=True)
    fuse_gemm_bias(made)
    (got,) = run_graph(made, A)
    np.testing.assert_allclose(got, A @ B.T + 1, rtol=1e-5)


def test_a_dense_layer_becomes_one_gemm() -> None:
    net = Net()
    x = net.input("x", (2, 3))
    product = net.call("MatMul", x, net.weight("weight", B), transpose_a=False, transpose_b=True)
    bias = np.arange(4, dtype=np.float32)
    y = net.call("BiasAdd", product, net.weight("bias", bias), format="NCHW")
    made = from_mindir(net.model(y))
    assert op_types(made) == ["Gemm"]
    (got,) = run_graph(made, A)
    np.testing.assert_allclose(got, A @ B.T + bias, rtol=1e-5)


def test_two_layers_are_both_fused() -> None:
    net = Net()
    y = net.input("x", (2, 3))
    for i in range(2):
        w = net.weight(f"w{i}", np.eye(3, dtype=np.float32) * (i + 2))
        y = net.call("MatMul", y, w, transpose_b=True)
        y = net.call("BiasAdd", y, net.weight(f"b{i}", np.full(3, i + 1, np.float32)))
    made = from_mindir(net.model(y))
    assert op_types(made) == ["Gemm", "Gemm"]
    (got,) = run_graph(made, A)
    np.testing.assert_allclose(got, (A * 2 + 1) * 3 + 2, rtol=1e-5)
