"""Matrix products."""

import numpy as np
from support.onnx_case import OnnxCase

_RNG = np.random.default_rng(1)


def _floats(*shape: int) -> np.ndarray:
    return _RNG.standard_normal(shape).astype(np.float32)


_SHAPES = [
    ((2, 3, 4), (4, 5)), ((2, 3, 4, 5), (5, 2)), ((3, 4), (2, 4, 5)), ((4,), (4,)), ((4,), (4, 5)),
    ((3, 4), (4,)), ((2, 3, 4), (4,)), ((4,), (2, 4, 3)), ((1, 2, 3), (5, 3, 4)),
    ((2, 1, 3, 4), (5, 4, 2)),
]  # fmt: skip

CASES = [
    OnnxCase("MatMul", [_floats(2, 3), _floats(3, 4)], primitives={"MatMul"}),
    OnnxCase("MatMul", [_floats(5, 2, 3), _floats(5, 3, 4)], primitives={"BatchMatMul"}),
    *[OnnxCase("MatMul", [_floats(*a), _floats(*b)]) for a, b in _SHAPES],
    OnnxCase("MatMul", [_floats(2, 3, 4), _floats(4, 5)], constants=[1], open_dims=True),
    OnnxCase("MatMul", [_floats(2, 5, 3, 4), _floats(2, 5, 4, 2)], open_dims=True),
    OnnxCase("Gemm", [_floats(2, 3), _floats(3, 4), _floats(4)], primitives={"MatMul"}),
    OnnxCase(
        "Gemm",
        [_floats(3, 2), _floats(4, 3), _floats(2, 4)],
        {"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0},
    ),
    OnnxCase("Gemm", [_floats(2, 3), _floats(4, 3)], {"transB": 1}, constants=[1]),
    OnnxCase("Gemm", [_floats(2, 3), _floats(4, 3), _floats(4)], {"transB": 1}, constants=[1, 2]),
    OnnxCase("Gemm", [_floats(2, 3), _floats(3, 4), np.asarray(2, np.float32)], {"beta": 0.5}),
    *[
        OnnxCase("Einsum", [_floats(*a), _floats(*b)], {"equation": equation}, primitives={name})
        for equation, a, b, name in (
            ("bij, bjk -> bik", (2, 3, 4), (2, 4, 5), "BatchMatMul"),
            ("bhid,bhjd->bhij", (2, 3, 4, 5), (2, 3, 6, 5), "BatchMatMul"),
            ("bihd,bjhd->bhij", (2, 4, 3, 5), (2, 6, 3, 5), "BatchMatMul"),
            ("bhij,bjhd->bihd", (2, 3, 4, 6), (2, 6, 3, 5), "BatchMatMul"),
            ("ij,kj->ki", (2, 3), (4, 3), "MatMul"),
            ("bij,bij->b", (2, 3, 4), (2, 3, 4), "Einsum"),
            ("iij,jk->ik", (3, 3, 4), (4, 5), "Einsum"),
            ("...ij,...jk->...ik", (2, 3, 4), (2, 4, 5), "Einsum"),
        )
    ],
    OnnxCase("Einsum", [_floats(3, 4)], {"equation": "ij->i"}, primitives={"Einsum"}),
    OnnxCase("Det", [_floats(2, 3, 3)], tolerance=1e-4),
]
