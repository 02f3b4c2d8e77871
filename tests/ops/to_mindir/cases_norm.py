"""Normalisations."""

import numpy as np
from support.onnx_case import OnnxCase

_RNG = np.random.default_rng(4)


def _floats(*shape: int) -> np.ndarray:
    return _RNG.standard_normal(shape).astype(np.float32)


def _batch(*shape: int) -> list[np.ndarray]:
    channels = shape[1]
    return [_floats(*shape), *[_floats(channels) for _ in range(3)], np.abs(_floats(channels))]


_STATISTICS = (1, 2, 3, 4)

CASES = [
    *[
        OnnxCase(
            "BatchNormalization",
            _batch(*shape),
            {"epsilon": 1e-3},
            constants=_STATISTICS,
            open_dims=is_open,
            primitives={"BatchNorm"},
        )
        for shape in [(2, 3), (2, 3, 4), (2, 3, 4, 5), (2, 3, 2, 4, 5)]
        for is_open in (False, True)
    ],
    OnnxCase("BatchNormalization", _batch(2, 3, 4, 4), note="computed"),
    *[
        OnnxCase(
            "LayerNormalization",
            [_floats(2, 3, 4), _floats(*shape), _floats(*shape)],
            {"axis": axis, "epsilon": 1e-4},
            constants=(1, 2),
            primitives={"LayerNorm"},
        )
        for axis, shape in [(-1, (4,)), (1, (3, 4)), (2, (4,)), (0, (2, 3, 4))]
    ],
    OnnxCase("LayerNormalization", [_floats(2, 3, 4), _floats(4)], constants=[1]),
    OnnxCase(
        "LayerNormalization",
        [_floats(2, 3, 4), _floats(4), _floats(4)],
        constants=(1, 2),
        open_dims=True,
        primitives={"LayerNorm"},
    ),
    OnnxCase("LayerNormalization", [_floats(2, 3, 4), _floats(4), _floats(4)], outputs=3),
    OnnxCase(
        "LayerNormalization",
        [_floats(2, 3, 4), _floats(1), _floats(4)],
        constants=(1, 2),
        custom="repeated",
    ),
    *[
        OnnxCase(
            "InstanceNormalization",
            [_floats(*shape), _floats(3), _floats(3)],
            {"epsilon": 1e-3},
            constants=(1, 2),
            open_dims=is_open,
            primitives={"GroupNorm"},
        )
        for shape in [(2, 3, 4), (2, 3, 4, 5), (1, 3, 2, 4, 5)]
        for is_open in (False, True)
    ],
    *[
        OnnxCase(
            "GroupNormalization",
            [_floats(2, 4, 5, 6), _floats(4), _floats(4)],
            {"num_groups": groups},
            constants=(1, 2),
            open_dims=is_open,
        )
        for groups in (1, 2, 4)
        for is_open in (False, True)
    ],
    *[
        OnnxCase(
            "RMSNormalization",
            [_floats(2, 3, 4), _floats(*shape)],
            {"axis": axis, "epsilon": 1e-4},
            constants=[1],
            opset=23,
        )
        for axis, shape in [(-1, (4,)), (1, (3, 4))]
    ],
    OnnxCase(
        "RMSNormalization",
        [_floats(2, 3).astype(float), _floats(3).astype(float)],
        {"epsilon": 1e-2},
        constants=[1],
        opset=23,
        note="float64",
    ),
    OnnxCase(
        "SimplifiedLayerNormalization",
        [_floats(2, 3, 4), _floats(4)],
        {"axis": -1},
        constants=[1],
        primitives={"ReduceMean"},
    ),
    *[  # ONNX Runtime makes float32 statistics of float64
        OnnxCase(
            "LayerNormalization",
            [x.astype(kind) for x in (_floats(2, 3), _floats(3))],
            outputs=3,
            constants=[1],
            primitives={"LayerNorm"},
            note=kind,
        )
        for kind in ("float32", "float64")
    ],
    OnnxCase("LRN", [_floats(1, 7, 3, 4)], {"size": 3, "alpha": 0.1}, primitives={"LRN"}),
    OnnxCase("LRN", [_floats(1, 7, 3, 4)], {"size": 5, "bias": 2.0, "beta": 0.5}, open_dims=True),
    *[
        OnnxCase("LpNormalization", [x], {"axis": axis, "p": p})
        for x in (_floats(2, 3, 4), np.zeros((2, 3, 4), np.float32))
        for axis in (-1, 1)
        for p in (1, 2)
    ],
    OnnxCase("LpNormalization", [_floats(2, 3).astype(float)], note="float64"),
    OnnxCase("LpNormalization", [_floats(2, 3).astype(np.float16)], custom="half floats"),
    OnnxCase("MeanVarianceNormalization", [_floats(2, 3, 4, 5)]),
    OnnxCase("MeanVarianceNormalization", [_floats(2, 3, 4)], {"axes": [1, 2]}),
    OnnxCase(
        "MeanVarianceNormalization",
        [1 + _floats(2, 3, 4, 5) / 400],
        tolerance=1e-3,
        note="close together",
    ),
]
