"""Shape and order of elements, joining and cutting."""

import numpy as np
from support.onnx_case import OnnxCase

_X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def _ints(*numbers: int) -> np.ndarray:
    return np.asarray(numbers, np.int64)


def _reshape(*dims: int, **options: object) -> OnnxCase:
    return OnnxCase("Reshape", [_X, _ints(*dims)], constants=[1], note=f"{dims}", **options)  # type: ignore[arg-type]


CASES = [
    OnnxCase("Identity", [_X], primitives={"TensorMove"}),
    OnnxCase("Identity", [_X], open_dims=True),
    OnnxCase("Shape", [_X], primitives={"TensorShape"}),
    OnnxCase("Shape", [_X], open_dims=True),
    *[
        OnnxCase("Shape", [_X], dict(zip(("start", "end"), bounds, strict=False)), open_dims=True)
        for bounds in ((1,), (-1,), (0, 2), (-2, -1), (2, 1), (0, 9))
    ],
    OnnxCase("Size", [_X]),
    OnnxCase("Size", [_X], open_dims=True),
    _reshape(6, 4),
    _reshape(-1, 4),
    _reshape(0, 0, 2, 2),
    _reshape(0, 12, open_dims=True),
    _reshape(0, -1, open_dims=True),
    _reshape(0, -1, 2, 2, open_dims=True),
    _reshape(-1, open_dims=True),
    OnnxCase(
        "Reshape", [np.zeros((0, 3), np.float32), _ints(3, 0)], {"allowzero": 1}, constants=[1]
    ),
    OnnxCase("Reshape", [_X, _ints(4, 6)], note="computed"),
    OnnxCase("Reshape", [_X, _ints(4, -1)], open_dims=True, custom="run time"),
    *[OnnxCase("Flatten", [_X], {"axis": axis}) for axis in (0, 1, 2, 3, -1)],
    OnnxCase("Flatten", [_X], open_dims=True),
    OnnxCase("Flatten", [_X], {"axis": 0}, open_dims=True),
    OnnxCase("Flatten", [_X], {"axis": 2}, open_dims=True, custom="run time"),
    OnnxCase("Transpose", [_X]),
    OnnxCase("Transpose", [_X], {"perm": [1, 0, 2]}, open_dims=True),
    OnnxCase("Squeeze", [_X[:1, :, :1], _ints(0, -1)], constants=[1]),
    OnnxCase("Squeeze", [_X[:1, :, :1]]),
    OnnxCase("Squeeze", [_X[:1], _ints(0)], constants=[1], open_dims=True),
    OnnxCase("Unsqueeze", [_X, _ints(1)], constants=[1], primitives={"ExpandDims"}),
    OnnxCase("Unsqueeze", [_X, _ints(-1, 0, 2)], constants=[1]),
    OnnxCase("Unsqueeze", [np.asarray(3, np.int64), _ints(0)], constants=[1]),
    OnnxCase("Expand", [_X[:, :1], _ints(3, 1)], constants=[1]),
    OnnxCase("Expand", [_X[:, :1], _ints(5, 1, 3, 4)], constants=[1]),
    OnnxCase("Expand", [_X[0], _ints(2, 1, 1)], constants=[1]),
    OnnxCase("Expand", [_X[:, :1], _ints(1, 3, 1)], constants=[1], open_dims=True),
    OnnxCase("Expand", [_X[:, :1], _ints(2, 3, 4)], note="computed"),
    OnnxCase("Expand", [np.asarray(2.5, np.float32), _ints(2, 3)], note="computed"),
    OnnxCase("Tile", [_X, _ints(1, 2, 3)], constants=[1]),
    OnnxCase("Tile", [_X, _ints(2, 1, 2)], note="computed"),
    OnnxCase("Concat", [_X, _X[:, :1]], {"axis": 1}, primitives={"Concat"}),
    OnnxCase("Concat", [_X, _X + 1, _X], {"axis": -1}, open_dims=True),
    OnnxCase("Concat", [_X], {"axis": 0}),
    OnnxCase("Concat", [_ints(1, 2), _ints(3)], {"axis": 0}, constants=[1]),
    OnnxCase("Split", [_X, _ints(2, 2)], {"axis": -1}, outputs=2, constants=[1]),
    OnnxCase("Split", [_X, _ints(1, 3)], {"axis": 2}, outputs=2, constants=[1]),
    OnnxCase("Split", [_X, _ints(1, 2)], {"axis": 1}, outputs=2, constants=[1], open_dims=True),
    OnnxCase("Split", [_X], {"axis": 1, "num_outputs": 3}, outputs=3, primitives={"Split"}),
    OnnxCase("Split", [_X], {"axis": 1, "num_outputs": 2}, outputs=2, note="uneven"),
    OnnxCase("Split", [_X], {"axis": 2, "num_outputs": 1}),
    OnnxCase(
        "Split", [_X], {"axis": 2, "num_outputs": 2}, outputs=2, open_dims=True, custom="run time"
    ),
    OnnxCase("ReverseSequence", [_X[0], _ints(1, 2, 3, 2)], {}),
    OnnxCase("ReverseSequence", [_X[0], _ints(1, 4, 2)], {"batch_axis": 0, "time_axis": 1}),
    *[
        OnnxCase("Trilu", [_X, np.asarray(k)], {"upper": upper}, constants=[1], note=f"k={k}")
        for k in (-1, 0, 2)
        for upper in (0, 1)
    ],
    OnnxCase("Trilu", [_X]),
    OnnxCase("Trilu", [_X, np.asarray(1)], custom="run time"),
]
