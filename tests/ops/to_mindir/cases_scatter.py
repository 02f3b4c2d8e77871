"""Putting elements in."""

import numpy as np
from support.onnx_case import OnnxCase

_X = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
_PLACES = np.asarray([[0, 1], [2, 3], [0, 1]])
_NEW = np.asarray([50, 0.5, 3], np.float32)
_ROWS = np.asarray([[0, 2, 1, 0]])

CASES = [
    *[
        OnnxCase("ScatterND", [_X, _PLACES, _NEW], {"reduction": how})
        for how in ("add", "mul", "max", "min")
    ],
    OnnxCase("ScatterND", [_X, _PLACES[:2], _NEW[:2]], primitives={"TensorScatterUpdate"}),
    OnnxCase("ScatterND", [_X, np.asarray([[1], [0]]), -_X[:2]], note="rows"),
    OnnxCase("ScatterND", [_X, _PLACES[:2], _NEW[:2]], constants=[1], open_dims=True),
    OnnxCase("ScatterND", [_X, -_PLACES[:2], _NEW[:2]], constants=[1], note="negative"),
    OnnxCase("ScatterElements", [_X, _ROWS, _X[:1] * 10]),
    OnnxCase("ScatterElements", [_X, _ROWS, _X[:1] * 10], {"reduction": "add"}),
    OnnxCase("ScatterElements", [_X, np.asarray([[1, -1]]), _X[:1, :2] * 9], {"axis": 1}),
    OnnxCase(
        "ScatterElements", [_X, np.asarray([[1, -1]]), _X[:1, :2] * 9], {"axis": -1}, constants=[1]
    ),
    OnnxCase("ScatterElements", [_X, _ROWS, _X[:1]], {"reduction": "max"}, custom="reduction max"),
]
