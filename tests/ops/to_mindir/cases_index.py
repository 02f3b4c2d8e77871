"""Taking elements out."""

import numpy as np
from support.onnx_case import OnnxCase

_X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def _ints(*numbers: object) -> np.ndarray:
    return np.asarray(numbers, np.int64)


CASES = [
    OnnxCase("Gather", [_X, _ints(1, 0)], {"axis": 1}, primitives={"Gather"}),
    OnnxCase("Gather", [_X, _ints(1, -1)], {"axis": -1}, constants=[1]),
    OnnxCase("Gather", [_X, _ints(1, -1)], {"axis": 2}, note="computed"),
    OnnxCase("Gather", [_X, _ints(1, -1)], {"axis": 2}, constants=[1], open_dims=True),
    OnnxCase("Gather", [_X, np.asarray(1)], {"axis": 1}, constants=[1]),
    OnnxCase("Gather", [_X, np.asarray(-1)], {"axis": 0}, constants=[1]),
    OnnxCase("Gather", [_X, _ints([0, 1], [2, 2])], {"axis": 1}),
    OnnxCase("Gather", [_ints(7, 8, 9), np.asarray(2)], constants=[1], note="ints"),
    OnnxCase("Gather", [_X, np.asarray([1, 0], np.int32)], constants=[0], note="int32"),
    OnnxCase("GatherElements", [_X, _ints([[0, 1, 1, 0]])], primitives={"GatherD"}),
    OnnxCase("GatherElements", [_X[0], _ints([0, -1], [2, 1], [3, 3])], {"axis": 1}),
    OnnxCase("GatherElements", [_X[0], _ints([0, -1], [2, 1])], {"axis": -1}, constants=[1]),
    OnnxCase("GatherND", [_X, _ints([0, 1], [1, 2])], primitives={"GatherNd"}),
    OnnxCase("GatherND", [_X, _ints([[1], [0]])]),
    OnnxCase("GatherND", [_X, _ints([1], [2])], {"batch_dims": 1}),
    OnnxCase("GatherND", [_X, _ints([[1], [0]], [[2], [2]])], {"batch_dims": 1}),
    OnnxCase("GatherND", [_X, _ints([1], [2])], {"batch_dims": 1}, open_dims=True, custom="run"),
    OnnxCase("Compress", [_X, np.asarray([True, False, True])], {"axis": 1}),
    OnnxCase("Compress", [_X, np.asarray([False, True, True])], {"axis": -1}, note="short"),
    OnnxCase("Compress", [_X, np.asarray([False, True, True])], note="flat"),
    OnnxCase("NonZero", [_X % 5]),
    OnnxCase("NonZero", [_X > 7], open_dims=True),
    OnnxCase("NonZero", [np.asarray(3.0, np.float32)], custom="without axes"),
]
