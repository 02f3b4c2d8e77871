"""engines/prepare/quirks.py: what ONNX Runtime would compute wrongly."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import pytest
from support.running import op_types, run_graph

from mindspore_lite.engines.prepare.quirks import guard_empty_batches, keep_zeros_before_max_pool

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


# --- batches of no rows ---


@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
def test_a_batch_of_no_rows_does_not_end_the_process(engine: str) -> None:
    """In a process of its own, for it would: ONNX Runtime aborts, OpenVINO divides by zero."""
    done = subprocess.run(
        [sys.executable, "-c", EMPTY_BATCH, engine], capture_output=True, text=True, check=False
    )
    shapes = "[(5, 1, 3, 2), (1, 3, 2)] [(5, 1, 0, 2), (1, 0, 2)]"
    wanted = [f"{kind} {shapes}" for kind in ("LSTM", "GRU", "RNN")]
    assert (done.returncode, done.stdout.splitlines()) == (0, wanted), done.stderr


EMPTY_BATCH = """
import sys
import numpy as np, onnx.parser
import mindspore_lite as mslite
for kind, gates in ("LSTM", 4), ("GRU", 3), ("RNN", 1):
    model = onnx.parser.parse_model(
        f'''<ir_version: 10, opset_import: ["": 14]>
        g (float[S,B,3] x, float[1,{2 * gates},3] w, float[1,{2 * gates},2] r) => (float y, float h)
        {{ y, h = {kind} <hidden_size: int = 2> (x, w, r) }}'''
    )
    found = mslite.Model()
    settings = {"common_context": {"engine": sys.argv[1]}}
    found.build_from_buffer(model.SerializeToString(), mslite.ModelType.ONNX, config_dict=settings)
    weights = [np.ones((1, 2 * gates, n), np.float32) for n in (3, 2)]
    shapes = []
    for rows in (3, 0):
        outputs = found.predict([np.ones((5, rows, 3), np.float32), *weights])
        shapes.append([tuple(o.shape) for o in outputs])
    print(kind, *shapes, flush=True)
"""


def test_a_batch_that_has_rows_is_not_guarded() -> None:
    shape = ir.Shape([5, 3, 4])
    x, w, r = (ir.val(name, ir.DataType.FLOAT, shape) for name in "xwr")
    node = ir.node("LSTM", [x, w, r], {"hidden_size": 2})
    model = ir.Model(ir.Graph([x, w, r], node.outputs, nodes=[node]), ir_version=10)
    assert guard_empty_batches(model) == 0
    x.shape = ir.Shape([5, "batch", 4])
    assert guard_empty_batches(model) == 1
