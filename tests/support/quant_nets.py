"""Small networks that are worth quantising, and how the engine compiles them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: dict[str, tuple[int, Sequence[Any]]],
    outputs: Sequence[str],
    weights: dict[str, np.ndarray],
    ranks: int = 2,
) -> ir.Model:
    graph = helper.make_graph(
        list(nodes),
        "graph",
        [helper.make_tensor_value_info(n, kind, dims) for n, (kind, dims) in inputs.items()],
        [helper.make_tensor_value_info(name, FLOAT, [None] * ranks) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(made, full_check=True)
    return ir.from_proto(made)


def normal(*shape: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    rng = np.random.default_rng([seed, *shape])
    return (scale * rng.standard_normal(shape)).astype(np.float32)


def mlp(**attributes: Any) -> ir.Model:
    """x [n, 64] -> Gemm -> Relu -> MatMul -> y [n, 24]."""
    across = attributes.get("transB", 0)
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["h"], "fc1", **attributes),
        helper.make_node("Relu", ["h"], ["r"], "relu"),
        helper.make_node("MatMul", ["r", "w2"], ["y"], "fc2"),
    ]
    weights = {
        "w1": normal(*((48, 64) if across else (64, 48)), scale=0.2),
        "b1": normal(48),
        "w2": normal(48, 24, scale=0.2),
    }
    rows = attributes.get("transA", 0)
    return model_of(nodes, {"x": (FLOAT, [64, "n"] if rows else ["n", 64])}, ["y"], weights)


def cnn(channels: int = 24) -> ir.Model:
    """x [n, 3, 16, 16] -> Conv, Relu, MaxPool, depthwise Conv, Clip, Conv, Flatten, Gemm -> y."""
    nodes = [
        helper.make_node("Conv", ["x", "k1", "c1"], ["a"], "conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"], "relu"),
        helper.make_node("MaxPool", ["b"], ["c"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["c", "k2"], ["d"], "conv2", pads=[1, 1, 1, 1], group=channels),
        helper.make_node("Clip", ["d", "zero", "six"], ["e"], "clip"),
        helper.make_node("Conv", ["e", "k3"], ["f"], "conv3"),
        helper.make_node("Flatten", ["f"], ["g"], "flatten"),
        helper.make_node("Gemm", ["g", "w", "v"], ["y"], "fc", transB=1),
    ]
    weights = {
        "k1": normal(channels, 3, 3, 3, scale=0.3),
        "c1": normal(channels, scale=0.1),
        "k2": normal(channels, 1, 3, 3, scale=0.3),
        "zero": np.float32(0),
        "six": np.float32(6),
        "k3": normal(20, channels, 1, 1, scale=0.2),
        "w": normal(18, 1280, scale=0.05),
        "v": normal(18),
    }
    return model_of(nodes, {"x": (FLOAT, ["n", 3, 16, 16])}, ["y"], weights)


def conv1d() -> ir.Model:
    """x [n, 8, 32] -> Conv, Relu, Conv with a stride, Relu, depthwise Conv, mean -> y [n, 24]."""
    nodes = [
        helper.make_node("Conv", ["x", "k1", "c1"], ["a"], "conv1", pads=[1, 1]),
        helper.make_node("Relu", ["a"], ["b"], "relu1"),
        helper.make_node("Conv", ["b", "k2", "c2"], ["c"], "conv2", strides=[2], pads=[2, 0]),
        helper.make_node("Relu", ["c"], ["d"], "relu2"),
        helper.make_node("Conv", ["d", "k3"], ["e"], "conv3", dilations=[2], group=24),
        helper.make_node("ReduceMean", ["e", "axes"], ["y"], "mean", keepdims=0),
    ]
    weights = {
        "k1": normal(24, 8, 3, scale=0.3),
        "c1": normal(24, scale=0.1),
        "k2": normal(24, 24, 3, scale=0.2),
        "c2": normal(24, scale=0.1),
        "k3": normal(24, 1, 3, scale=0.3),
        "axes": np.array([2]),
    }
    return model_of(nodes, {"x": (FLOAT, ["n", 8, 32])}, ["y"], weights)


def embedding() -> ir.Model:
    """ids [n, 5] -> Gather, MatMul -> y [n, 5, 32]."""
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["e"], "look"),
        helper.make_node("MatMul", ["e", "w"], ["y"], "mix"),
    ]
    weights = {"table": normal(200, 40), "w": normal(40, 32, scale=0.2)}
    return model_of(nodes, {"ids": (INT64, ["n", 5])}, ["y"], weights, ranks=3)


def kernels(model: ir.Model, folder: Path) -> Counter[str]:
    """The operators that ONNX Runtime is left with once it has compiled a model."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.optimized_model_filepath = str(folder / "compiled.onnx")
    data = ir.to_proto(model).SerializeToString()
    ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return Counter(node.op_type for node in onnx.load(folder / "compiled.onnx").graph.node)
