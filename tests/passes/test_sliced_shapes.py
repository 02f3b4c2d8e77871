"""Slices that onnx's shape inference, and so every engine with it, would end the process on."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

from mindspore_lite import Context, Model, ModelType
from mindspore_lite.errors import ModelFileError
from mindspore_lite.passes.long_lists import inferred
from mindspore_lite.passes.sliced_shapes import NegativeSizeError

CUT = helper.make_node("Slice", ["m", "starts", "ends", "axes"], ["y"])
WINDOWS = {
    "pool": helper.make_node("MaxPool", ["x"], ["m"], kernel_shape=[9, 9]),
    "pad": helper.make_node("Pad", ["x", "pads"], ["m"]),
}
LISTS = {"starts": [0], "ends": [1], "axes": [2], "pads": [0, 0, -3, -3, 0, 0, -3, -3]}


def model_of(*nodes: NodeProto, size: int = 4) -> ModelProto:
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, size, size])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [helper.make_tensor(n, TensorProto.INT64, [len(v)], v) for n, v in LISTS.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("window", WINDOWS)
def test_inference_refuses_a_negative_size_in_front_of_a_slice(window: str) -> None:
    with pytest.raises(NegativeSizeError, match="'m' has a negative size, -"):
        inferred(model_of(WINDOWS[window], CUT))


@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
@pytest.mark.parametrize("window", WINDOWS)
def test_a_build_refuses_it(window: str, engine: str) -> None:
    pytest.importorskip(engine)
    data = model_of(WINDOWS[window], CUT).SerializeToString()
    with pytest.raises(ModelFileError, match=r"'m' has a negative size.*give the model larger"):
        Model().build_from_buffer(
            data, ModelType.ONNX, Context(), config_dict={"common_context": {"engine": engine}}
        )


def test_windows_and_slices_in_turns_are_inferred_to_the_end() -> None:
    nodes, last = [], "x"
    for at in range(5):
        nodes.append(
            helper.make_node("MaxPool", [last], [f"m{at}"], kernel_shape=[2, 2], strides=[1, 1])
        )
        last = "y" if at == 4 else f"s{at}"
        nodes.append(helper.make_node("Slice", [f"m{at}", "starts", "far", "axes"], [last]))
    made = model_of(*nodes, size=20)
    made.graph.initializer.append(helper.make_tensor("far", TensorProto.INT64, [1], [2**31]))
    found = inferred(made)
    dims = [d.dim_value for d in found.graph.output[0].type.tensor_type.shape.dim]
    assert dims == [1, 1, 15, 15]
    assert list(found.graph.node) == list(made.graph.node)


def test_a_model_that_fits_is_built_and_right() -> None:
    model = Model()
    model.build_from_buffer(
        model_of(WINDOWS["pool"], CUT, size=12).SerializeToString(), ModelType.ONNX, Context()
    )
    x = np.arange(144, dtype=np.float32).reshape(1, 1, 12, 12)
    (y,) = model.predict([x])
    np.testing.assert_array_equal(np.asarray(y)[0, 0], [[104, 105, 106, 107]])
