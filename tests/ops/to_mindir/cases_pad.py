"""Padding."""

import numpy as np
from support.onnx_case import OnnxCase

_X = np.random.default_rng(6).standard_normal((2, 3, 5, 6)).astype(np.float32)
_FILL = np.asarray(1.5, np.float32)


def _ints(*numbers: int) -> np.ndarray:
    return np.asarray(numbers, np.int64)


CASES = [
    OnnxCase("Pad", [_X, _ints(0, 0, 1, 2, 0, 0, 3, 0)], constants=[1], primitives={"PadV3"}),
    OnnxCase("Pad", [_X, _ints(1, 0, 0, 0, 0, 2, 0, 0), _FILL], constants=(1, 2)),
    OnnxCase("Pad", [_X, _ints(0, 0, 1, 2, 0, 0, 3, 0), _FILL], constants=[1], note="filler"),
    OnnxCase("Pad", [_X, _ints(0, 0, -1, 2, 0, 0, 0, -2)], constants=[1], note="crop"),
    OnnxCase("Pad", [_X, _ints(0, 0, -1, -1, 0, 0, -1, 0)], constants=[1], open_dims=True),
    OnnxCase("Pad", [_X, _ints(*[0] * 8)], constants=[1], note="nothing"),
    OnnxCase("Pad", [_X, _ints(1, 2, 3, 4), None, _ints(-1, 1)], constants=(1, 3)),
    OnnxCase("Pad", [_X, _ints(0, 0, 1, 2, 0, 0, 3, 0)], constants=[1], open_dims=True),
    OnnxCase("Pad", [_X, _ints(0, 0, 1, 2, 0, 1, 3, 0), _FILL], note="computed"),
    OnnxCase("Pad", [_X, _ints(1, 2, 3, 4), None, _ints(2, 3)], constants=[3], note="computed"),
    OnnxCase("Pad", [_X, _ints(1, 2), None, _ints(1)], constants=[3], custom="before the last"),
    OnnxCase("Pad", [np.arange(6).reshape(2, 3), _ints(1, 0, 0, 1)], constants=[1], note="int64"),
    *[
        OnnxCase("Pad", [x, _ints(*pads)], {"mode": mode}, constants=[1], open_dims=is_open)
        for mode in ("reflect", "edge", "wrap")
        for x, pads in [
            (_X, (0, 0, 1, 2, 0, 0, 2, 1)),
            (_X, (0, 0, 0, 2, 0, 0, 0, 1)),
            (_X[0], (0, 0, 1, 0, 0, 2)),
            (_X[0], (0, 1, 1, 0, 1, 2)),
        ]
        for is_open in (False, True)
    ],
    OnnxCase("Pad", [_X[0, 0], _ints(1, 1, 1, 1)], {"mode": "edge"}, constants=[1]),
    OnnxCase("Pad", [_X[0, 0], _ints(1, 1, 1, 1)], {"mode": "reflect"}, constants=[1]),
    OnnxCase(
        "Pad", [_X[0, 0], _ints(1, 1, 1, -1)], {"mode": "edge"}, constants=[1], custom="negative"
    ),
    OnnxCase("Pad", [_X[0, 0], _ints(1, 1, 1, 1)], {"mode": "edge"}, custom="run time"),
    *[
        OnnxCase("CenterCropPad", [_X[0], _ints(*shape)], constants=[1])
        for shape in [(3, 5, 6), (1, 2, 3), (6, 8, 9), (2, 8, 3), (4, 2, 8)]
    ],
    OnnxCase("CenterCropPad", [_X, _ints(8, 3)], {"axes": [-2, 1]}, constants=[1]),
    OnnxCase(
        "CenterCropPad", [_X[0], _ints(3, 5, 7)], constants=[1], open_dims=True, custom="run time"
    ),
]
