"""Small ONNX files and jobs for tests of conversion."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from mindspore_lite.conversion.job import Job

WEIGHTS = np.random.default_rng(0).normal(size=(16, 32)).astype(np.float32)


def dense_onnx(path: Path, rows: int | str = "n") -> Path:
    """y = relu(x @ WEIGHTS) for x of shape (rows, 16)."""
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["product"], name="dense"),
            helper.make_node("Relu", ["product"], ["y"], name="activation"),
        ],
        "dense",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, 32])],
        [numpy_helper.from_array(WEIGHTS, "w")],
    )
    return save(path, graph)


def unusual_onnx(path: Path) -> Path:
    """y = x * sigmoid(1.702 * x) by an operator of ONNX Runtime, which MindSpore does not know."""
    node = helper.make_node(
        "QuickGelu", ["x"], ["y"], "the_only", domain="com.microsoft", alpha=1.7
    )
    graph = helper.make_graph(
        [node],
        "unusual",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])],
    )
    return save(path, graph)


def save(path: Path, graph: onnx.GraphProto) -> Path:
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    path.write_bytes(model.SerializeToString())
    return path


def job(folder: Path, **settings: object) -> Job:
    """A job on dense_onnx in a folder; keyword arguments are fields of Job."""
    given = {"model": folder / "net.onnx", "output": folder / "net.mindir", **settings}
    if given["model"] == folder / "net.onnx" and not (folder / "net.onnx").exists():
        dense_onnx(folder / "net.onnx")
    return Job(**given)  # type: ignore[arg-type]
