"""engines/quirks.py: what ONNX Runtime would compute wrongly."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import pytest
from support.running import op_types, run_graph

from mindspore_lite.engines.quirks import keep_zeros_before_max_pool

X = -np.arange(1, 37, dtype=np.float32).reshape(1, 1, 6, 6)
PADS = [0, 0, 1, 1, 0, 0, 1, 1]


def padded_pool(**attributes: Any) -> ir.Model:
    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(X.shape))
    array = ir.Tensor(np.asarray(PADS))
    pads = ir.Value(name="pads", type=ir.TensorType(array.dtype), shape=array.shape,
                    const_value=array)  # fmt: skip
    pad = ir.node("Pad", [x, pads])
    pool = ir.node(
        "MaxPool", pad.outputs, {"kernel_shape": [3, 3], "strides": [2, 2], **attributes}
    )
    pool.outputs[0].name, pool.outputs[0].type = "y", ir.TensorType(ir.DataType.FLOAT)
    graph = ir.Graph([x], pool.outputs, nodes=[pad, pool], initializers=[pads],
                     opset_imports={"": 21}, name="main")  # fmt: skip
    return ir.Model(graph, ir_version=10)


def unoptimised(model: ir.Model) -> np.ndarray:
    settings = ort.SessionOptions()
    settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    data = ir.to_proto(model).SerializeToString()
    session = ort.InferenceSession(data, settings, providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"x": X})
    return np.asarray(found)


@pytest.mark.parametrize(
    "attributes",
    [{}, {"pads": [0, 0, 0, 0]}, {"pads": [1, 0, 0, 1]}, {"ceil_mode": 1}, {"auto_pad": "VALID"},
     {"auto_pad": "SAME_UPPER"}, {"strides": [1, 1]}],
    ids=str,
)  # fmt: skip
def test_zeros_around_count_in_a_max_pool(attributes: dict[str, Any]) -> None:
    wanted = unoptimised(padded_pool(**attributes))
    assert wanted.max() == 0  # windows at the border see the zeros, those inside none
    assert wanted.min() < 0
    (got,) = run_graph(padded_pool(**attributes), X)
    np.testing.assert_array_equal(got, wanted)


def test_other_pools_stay_as_they_are() -> None:
    model = padded_pool()
    pool = list(model.graph)[1]
    pool.replace_input_with(0, model.graph.inputs[0])
    assert keep_zeros_before_max_pool(model) == 0
    assert op_types(model) == ["Pad", "MaxPool"]
    assert "auto_pad" not in pool.attributes
