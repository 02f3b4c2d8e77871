"""Sampling from images and regions of them."""

import numpy as np
from support.onnx_case import OnnxCase

_RNG = np.random.default_rng(10)


def _floats(*shape: int) -> np.ndarray:
    return _RNG.standard_normal(shape).astype(np.float32)


_X = _floats(2, 3, 5, 6)
_GRID = _RNG.uniform(-1.2, 1.2, (2, 4, 3, 2)).astype(np.float32)
_ROIS = np.asarray([[0, 0, 4, 4], [1, 1, 4.5, 3], [2, 1, 2.3, 4]], np.float32)
_WHICH = np.asarray([0, 1, 1])
_BOXES = np.asarray(
    [[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1],
      [0, 100, 1, 101]]], np.float32,
)  # fmt: skip
_SCORES = np.asarray([[[0.9, 0.75, 0.6, 0.95, 0.5, 0.3]]], np.float32)


def _number(value: float) -> np.ndarray:
    return np.asarray([value], np.float32)


CASES = [
    *[
        OnnxCase("GridSample", [_X, _GRID], {"padding_mode": edge, "align_corners": align})
        for edge in ("zeros", "border", "reflection")
        for align in (0, 1)
    ],
    OnnxCase("GridSample", [_X, _GRID], open_dims=True),
    OnnxCase("GridSample", [_X, _GRID], {"mode": "cubic"}, custom="mode cubic"),
    OnnxCase("GridSample", [_X, _GRID], {"mode": "nearest"}, custom="mode nearest"),
    OnnxCase("GridSample", [_floats(1, 2, 3, 4, 5), _floats(1, 2, 2, 2, 3)]),
    *[
        OnnxCase(
            "AffineGrid",
            [_floats(2, dims, dims + 1), np.asarray([2, 3, 4, 5, 6][: dims + 2])],
            {"align_corners": align},
            constants=[1],
        )
        for dims in (2, 3)
        for align in (0, 1)
    ],
    OnnxCase(
        "AffineGrid",
        [_floats(1, 2, 3), np.asarray([1, 1, 1, 4])],
        {"align_corners": 1},
        constants=[1],
        custom="single pixel",
    ),
    *[
        OnnxCase(
            "RoiAlign",
            [_X, _ROIS, _WHICH],
            {
                "coordinate_transformation_mode": mode,
                "sampling_ratio": 2,
                "output_height": 2,
                "output_width": 3,
                "spatial_scale": scale,
            },
        )
        for mode in ("half_pixel", "output_half_pixel")
        for scale in (1.0, 0.5)
    ],
    OnnxCase("RoiAlign", [_X, _ROIS, _WHICH], custom="as many samples"),
    OnnxCase("RoiAlign", [_X, _ROIS, _WHICH], {"mode": "max"}, custom="mode max"),
    OnnxCase(
        "NonMaxSuppression",
        [_BOXES, _SCORES, np.asarray([3]), _number(0.5), _number(0.4)],
        constants=(2, 3, 4),
    ),
    OnnxCase("NonMaxSuppression", [_BOXES, _SCORES, np.asarray([5]), _number(0.5)], constants=[2]),
    OnnxCase(
        "NonMaxSuppression",
        [_BOXES.repeat(2, 0), _SCORES.repeat(2, 0), np.asarray([3])],
        constants=[2],
        custom="several images",
    ),
]
