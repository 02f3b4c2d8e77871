"""passes/fuse_linear.py: a bias joins a product of matrices where that means the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from support.onnx_graphs import F32, I64, feeds_for, model, node, ops, results
from support.running import assert_close
from support.torch_nodes import run_graph

from mindspore_lite.passes.fuse_linear import fuse_linear
from mindspore_lite.passes.infer_shapes import infer_shapes

RANDOM = np.random.default_rng(6)


def f32(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


def layer(
    x: tuple[int | str, ...],
    w: np.ndarray,
    bias: np.ndarray,
    order: tuple[str, str] = ("p", "bias"),
    outputs: tuple[Any, ...] = ("y",),
) -> onnx.ModelProto:
    nodes = [node("MatMul", ["x", "w"], ["p"]), node("Add", order, ["y"])]
    kind = F32 if w.dtype == np.float32 else I64
    ports = [(name, kind, None) for name in outputs]
    return model(nodes, [("x", kind, x)], ports, w=w, bias=bias)


def fused(proto: onnx.ModelProto) -> ir.Model:
    made = ir.from_proto(proto)
    infer_shapes(made)
    if fuse_linear(made):
        made.graph.remove(made.graph[0], safe=True)
    return made


@pytest.mark.parametrize("x", [(3, 4), ("n", "s", 4), (2, 3, "s", 4)])
@pytest.mark.parametrize("order", [("p", "bias"), ("bias", "p")])
def test_a_bias_joins_a_product_of_any_rank(
    x: tuple[int | str, ...], order: tuple[str, str]
) -> None:
    old = layer(x, f32(4, 5), f32(5), order)
    new = fused(old)
    assert ops(new) == ["Linear"]
    assert [value.name for value in new.graph[0].inputs] == ["x", "w", "bias"]
    feeds = feeds_for(old)
    (got,) = run_graph(new, [feeds["x"]])
    assert_close(got, results(old, feeds)["y"])


STAYS = {
    "a vector times a matrix": layer((4,), f32(4, 5), f32(5)),
    "more than one matrix": layer((2, 3, 4), f32(2, 4, 5), f32(5)),
    "one number": layer((3, 4), f32(4, 5), f32(1)),
    "a bias of rows": layer((5, 4), f32(4, 5), f32(5, 1)),
    "the product is used elsewhere": layer((3, 4), f32(4, 5), f32(5), outputs=("y", "p")),
    "whole numbers": layer((3, 4), np.ones((4, 5), np.int64), np.ones(5, np.int64)),
}


@pytest.mark.parametrize("name", STAYS)
def test_nothing_else_joins(name: str) -> None:
    assert ops(fused(STAYS[name])) == ["MatMul", "Add"]
