"""Operators that networks spend their time in come back as the node that they were.

What they are written as may be several primitives; the reader and ONNX Runtime join them again.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest
from support.onnx_case import OnnxCase

from mindspore_lite.graph.from_mindir import from_mindir
from mindspore_lite.graph.to_mindir import to_mindir
from mindspore_lite.mindir.read import read_file
from mindspore_lite.mindir.write import write_file

_RNG = np.random.default_rng(12)


def _floats(*shape: int) -> np.ndarray:
    return _RNG.standard_normal(shape).astype(np.float32)


def _number(value: float) -> np.ndarray:
    return np.asarray(value, np.float32)


_X, _ROWS = _floats(1, 4, 8, 8), _floats(2, 3, 4)
_POOL = {"kernel_shape": [3, 3], "strides": [2, 2]}
_LSTM = [_floats(4, 2, 3), _floats(2, 20, 3), _floats(2, 20, 5), _floats(2, 40)]
CASES = [
    OnnxCase("Conv", [_X, _floats(4, 4, 3, 3), _floats(4)], {"pads": [1] * 4}, constants=(1, 2)),
    OnnxCase("ConvTranspose", [_X, _floats(4, 2, 2, 2), _floats(2)], constants=(1, 2)),
    OnnxCase("MaxPool", [_X], _POOL),
    OnnxCase("MaxPool", [_X], {**_POOL, "pads": [1] * 4}),
    OnnxCase("MaxPool", [_X], {**_POOL, "pads": [0, 0, 1, 1]}),
    OnnxCase("AveragePool", [_X], {**_POOL, "pads": [1] * 4}),
    OnnxCase("BatchNormalization", [_X, *[np.abs(_floats(4)) for _ in range(4)]],
             constants=(1, 2, 3, 4)),
    OnnxCase("InstanceNormalization", [_X, _floats(4), _floats(4)], constants=(1, 2)),
    OnnxCase("LayerNormalization", [_ROWS, _floats(4), _floats(4)], constants=(1, 2)),
    OnnxCase("LayerNormalization", [_ROWS, _floats(4)], constants=[1]),
    OnnxCase("Softmax", [_ROWS]),
    OnnxCase("Gelu", [_ROWS]),
    OnnxCase("LeakyRelu", [_ROWS]),
    OnnxCase("PRelu", [_X, _floats(4, 1, 1)], constants=[1]),
    OnnxCase("Clip", [_ROWS, _number(0), _number(6)], constants=(1, 2)),
    OnnxCase("Clip", [_ROWS, _number(-1)], constants=[1]),
    OnnxCase("Pad", [_X, np.asarray([0, 0, 1, 1] * 2)], {"mode": "reflect"}, constants=[1]),
    OnnxCase("Resize", [_X, None, np.asarray([1, 1, 2, 2], np.float32)], {"mode": "linear"},
             constants=[2]),
    OnnxCase("LSTM", _LSTM, {"hidden_size": 5, "direction": "bidirectional"}, outputs=3,
             constants=(1, 2, 3)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_comes_back_is_one_node(case: OnnxCase, tmp_path: Path) -> None:
    (path,) = write_file(to_mindir(case.model()).model, tmp_path / "case.mindir")
    model = ir.to_proto(from_mindir(read_file(path))).SerializeToString()
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    optimised = onnx.load(tmp_path / "optimised.onnx")
    assert [node.op_type for node in optimised.graph.node] == [case.op_type]
