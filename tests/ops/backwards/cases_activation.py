"""Activations."""

import numpy as np
from support.onnx_case import OnnxCase

_X = np.random.default_rng(5).standard_normal((2, 3, 4)).astype(np.float32) * 3


def _number(value: float) -> np.ndarray:
    return np.asarray(value, np.float32)


CASES = [
    OnnxCase("HardSwish", [_X * 2], primitives={"HSwish"}),
    OnnxCase("HardSigmoid", [_X * 2], {"alpha": 1 / 6}, primitives={"HSigmoid"}),
    OnnxCase("HardSigmoid", [_X]),
    OnnxCase("HardSigmoid", [_X], {"alpha": 0.5, "beta": 0.6}, open_dims=True),
    *[
        OnnxCase(op_type, [_X], {"axis": axis}, primitives={op_type})
        for op_type in ("Softmax", "LogSoftmax")
        for axis in (-1, 0, 1)
    ],
    OnnxCase("Softmax", [_X], open_dims=True),
    OnnxCase("Gelu", [_X], primitives={"Erf"}),
    OnnxCase("Gelu", [_X], {"approximate": "tanh"}, primitives={"GeLU"}),
    OnnxCase("Clip", [_X, _number(0), _number(6)], constants=(1, 2), primitives={"ReLU6"}),
    OnnxCase("Clip", [_X, _number(-1), _number(1)], constants=(1, 2)),
    OnnxCase("Clip", [_X, _number(-1)], constants=[1]),
    OnnxCase("Clip", [_X, None, _number(1)], constants=[2], open_dims=True),
    OnnxCase("Clip", [_X, _number(-1), _number(1)], note="computed"),
    OnnxCase("Clip", [_X, None, _number(1)], note="computed"),
    OnnxCase("Clip", [_X, _number(1), _number(-1)], constants=(1, 2), note="crossed"),
    OnnxCase("Clip", [_X], note="unbounded"),
    OnnxCase("Clip", [_X.astype(float), np.asarray(0.1)], constants=[1], note="float64"),
    OnnxCase(
        "Clip", [np.arange(-3, 4), np.asarray(-2), np.asarray(2)], constants=(1, 2), note="int64"
    ),
]
