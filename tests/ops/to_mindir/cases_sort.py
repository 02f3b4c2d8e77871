"""Orders and distinct values."""

import numpy as np
from support.onnx_case import OnnxCase

_X = np.random.default_rng(5).permutation(24).astype(np.float32).reshape(2, 3, 4)
_TIES = np.asarray([[2, 1, 2, 1, 0]], np.float32)
_K = np.asarray([2])

CASES = [
    *[
        OnnxCase("TopK", [_X, _K], {"axis": axis, "largest": largest}, outputs=2, constants=[1])
        for axis in (-1, 1)
        for largest in (0, 1)
    ],
    OnnxCase("TopK", [_X.astype(np.int64), _K], {"largest": 0}, outputs=2, constants=[1]),
    OnnxCase("TopK", [_TIES, np.asarray([3])], outputs=2, constants=[1], note="equal ones"),
    OnnxCase("TopK", [_TIES, np.asarray([3])], {"largest": 0}, outputs=2, constants=[1]),
    OnnxCase("TopK", [_X, _K], outputs=2, note="computed"),
    OnnxCase("TopK", [_X, _K], outputs=2, constants=[1], open_dims=True),
    OnnxCase("Unique", [_TIES], {"sorted": 0}, primitives={"Unique"}),
    OnnxCase("Unique", [_TIES], custom="sorted values"),
    OnnxCase("Unique", [_TIES], {"sorted": 0, "axis": 1}, custom="rows of an axis"),
    OnnxCase("Unique", [_TIES], {"sorted": 0}, outputs=4, custom="places or counts"),
]
