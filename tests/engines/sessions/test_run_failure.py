"""engines/sessions/run_failure.py: a failed run is told in words about the request."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

import mindspore_lite as mslite
from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.engines.sessions.run_failure import run_failure
from mindspore_lite.errors import EngineError, ResourceError, ShapeError

F32 = np.dtype(np.float32)


def skeleton() -> bytes:
    """y = x @ w for w of 3 rows."""
    tensor = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")],
        "g",
        [tensor("x", onnx.TensorProto.FLOAT, ["n", "k"])],
        [tensor("y", onnx.TensorProto.FLOAT, ["n", 2])],
        [helper.make_tensor("w", onnx.TensorProto.FLOAT, [3, 2], [0.0] * 6)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


def failure(exc: Exception, shape: tuple[int, ...], info: tuple[int, ...] = (-1, -1)) -> Exception:
    infos = [TensorInfo("x", F32, info)]
    text = f"ONNX Runtime could not run the model: {exc}"
    return run_failure(text, exc, infos, skeleton(), [np.zeros(shape, np.float32)])


def test_shapes_that_the_graph_cannot_have_are_the_requests_fault() -> None:
    found = failure(RuntimeError("Non-zero status code"), (2, 5))
    assert isinstance(found, ShapeError)
    assert "the model cannot take the shapes {'x': [2, 5]}: MatMul" in str(found)
    assert found.input_name == "x"


def test_another_reason_stays_the_engines() -> None:
    for shape, info in (((2, 3), (-1, -1)), ((2, 3), (2, 3))):
        found = failure(RuntimeError("idx=9 must be within bounds"), shape, info)
        assert type(found) is EngineError
        assert "idx=9" in str(found)


def test_memory_that_ran_out_is_a_resource_error_with_the_size() -> None:
    text = "Failed to allocate memory for requested buffer of size 3145728"
    found = failure(RuntimeError(text), (2, 3))
    assert isinstance(found, ResourceError)
    for words in ("3.0 MiB", "fewer rows", "{'x': [2, 3]}"):
        assert words in str(found)


def test_a_run_that_wants_too_much_memory_says_so(tmp_path: Path) -> None:
    """2 PiB, more than a process can address."""
    tensor = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Expand", ["x", "s"], ["y"])],
        "g",
        [tensor("x", onnx.TensorProto.FLOAT, [1]), tensor("s", onnx.TensorProto.INT64, [1])],
        [tensor("y", onnx.TensorProto.FLOAT, ["n"])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save_model(model, tmp_path / "net.onnx")
    with mslite.Model() as built:
        built.build_from_file(tmp_path / "net.onnx", mslite.ModelType.ONNX)
        one = np.ones(1, np.float32)
        with pytest.raises(ResourceError, match=r"MiB more.*fewer rows in a request"):
            built.predict([one, np.array([1 << 49])])
        assert built.predict([one, np.array([2])])[0].shape == [2]  # and the model goes on
