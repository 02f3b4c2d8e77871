"""Blocks of pixels."""

import numpy as np
from support.onnx_case import OnnxCase

_RNG = np.random.default_rng(9)


def _floats(*shape: int) -> np.ndarray:
    return _RNG.standard_normal(shape).astype(np.float32)


def _ints(*numbers: int) -> np.ndarray:
    return np.asarray(numbers, np.int64)


CASES = [
    *[
        OnnxCase("DepthToSpace", [_floats(2, 12, 3, 4)], {"blocksize": 2, "mode": mode})
        for mode in ("DCR", "CRD")
    ],
    OnnxCase("DepthToSpace", [_floats(2, 12, 3, 4)], {"blocksize": 2}, open_dims=True),
    OnnxCase("SpaceToDepth", [_floats(2, 3, 4, 6)], {"blocksize": 2}),
    OnnxCase("SpaceToDepth", [_floats(2, 3, 4, 6)], {"blocksize": 2}, open_dims=True),
    OnnxCase("Col2Im", [_floats(2, 12, 6), _ints(4, 6), _ints(2, 2)], {"strides": [2, 2]},
             constants=(1, 2)),
    OnnxCase("Col2Im", [_floats(1, 9, 20), _ints(5, 4), _ints(3, 3)], {"pads": [1, 1, 1, 1]},
             constants=(1, 2)),
    OnnxCase("Col2Im", [_floats(1, 4, 8), _ints(4, 6), _ints(2, 2)], {"dilations": [2, 2]},
             constants=(1, 2)),
    OnnxCase("Col2Im", [_floats(1, 9, 16), _ints(5, 4), _ints(3, 3)], {"pads": [1, 1, 0, 1]},
             constants=(1, 2), custom="uneven"),
]  # fmt: skip
