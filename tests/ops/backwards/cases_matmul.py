"""Matrix products."""

import numpy as np
from support.onnx_case import OnnxCase

_RNG = np.random.default_rng(1)


def _floats(*shape: int) -> np.ndarray:
    return _RNG.standard_normal(shape).astype(np.float32)


CASES = [
    OnnxCase("MatMul", [_floats(2, 3), _floats(3, 4)], primitives={"MatMul"}),
    OnnxCase("MatMul", [_floats(5, 2, 3), _floats(5, 3, 4)], primitives={"BatchMatMul"}),
    OnnxCase("Gemm", [_floats(2, 3), _floats(3, 4), _floats(4)], primitives={"MatMul"}),
    OnnxCase(
        "Gemm",
        [_floats(3, 2), _floats(4, 3), _floats(2, 4)],
        {"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0},
    ),
]
