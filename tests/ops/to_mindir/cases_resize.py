"""Resizing."""

import numpy as np
from support.onnx_case import OnnxCase

_RNG = np.random.default_rng(7)
_X = _RNG.standard_normal((2, 3, 5, 6)).astype(np.float32)
_LINE = _X[:, :, 0]
_VOLUME = _RNG.standard_normal((1, 2, 3, 4, 5)).astype(np.float32)
_CENTRED = ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric")
_COORDINATES = (*_CENTRED, "align_corners", "asymmetric")


def _scales(*numbers: float) -> list[np.ndarray | None]:
    return [None, np.asarray(numbers, np.float32)]


def _sizes(*numbers: int) -> list[np.ndarray | None]:
    return [None, None, np.asarray(numbers, np.int64)]


def _mode(mode: str, how: str, rounding: str = "") -> dict[str, object]:
    found: dict[str, object] = {"mode": mode, "coordinate_transformation_mode": how}
    return {**found, "nearest_mode": rounding} if rounding else found


_KEPT = (1, 2, 3)  # everything but x is a weight

CASES = [
    *[
        OnnxCase("Resize", [_X, *to], _mode("nearest", how, rounding), constants=_KEPT)
        for how in _COORDINATES
        for rounding in ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
        for to in (_scales(1, 1, 2, 2), _sizes(2, 3, 8, 4))
    ],
    OnnxCase(
        "Resize",
        [_X, *_scales(1, 1, 2, 3)],
        _mode("nearest", "asymmetric", "floor"),
        constants=_KEPT,
        primitives={"ResizeNearestNeighborV2"},
        open_dims=True,
    ),
    OnnxCase("Resize", [_X, *_scales(1, 1, 2, 3)], constants=_KEPT, open_dims=True),
    OnnxCase(
        "Resize",
        [_X, *_scales(1, 1, 2, 3)],
        _mode("nearest", "asymmetric", "ceil"),
        constants=_KEPT,
        open_dims=True,
        custom="asymmetric and ceil",
    ),
    OnnxCase(
        "Resize",
        [_X, *_scales(1, 1, 0.7, 3)],
        constants=_KEPT,
        open_dims=True,
        custom="broken factor",
    ),
    *[
        OnnxCase("Resize", [x, *to], _mode("nearest", "asymmetric", "floor"), constants=_KEPT)
        for x, to in [(_LINE, _scales(1, 1, 2)), (_VOLUME, _sizes(1, 2, 6, 5, 5))]
    ],
    *[
        OnnxCase("Resize", [_X, *to], _mode("linear", how), constants=_KEPT, open_dims=is_open)
        for how in _COORDINATES
        for to in (_scales(1, 1, 2, 2), _scales(1, 1, 3, 1))
        for is_open in (False, True)
    ],
    *[
        OnnxCase("Resize", [_X, *_sizes(2, 3, 7, 4)], _mode("linear", how), constants=_KEPT)
        for how in _COORDINATES
    ],
    OnnxCase("Resize", [_X, *_sizes(7, 4)], {"mode": "linear", "axes": [2, 3]}, constants=_KEPT),
    OnnxCase("Resize", [_X, *_scales(1, 1, 0.7, 1.3)], {"mode": "linear"}, constants=_KEPT),
    OnnxCase("Resize", [_LINE, *_scales(1, 1, 2)], {"mode": "linear"}, constants=_KEPT),
    OnnxCase(
        "Resize", [_LINE, *_sizes(2, 3, 9)], _mode("linear", "align_corners"), constants=_KEPT
    ),
    OnnxCase("Resize", [_VOLUME, *_scales(1, 1, 2, 2, 1)], {"mode": "linear"}, constants=_KEPT),
    OnnxCase("Resize", [_X, *_scales(1, 1, 2, 2)], {"mode": "cubic"}, constants=_KEPT),
    OnnxCase("Resize", [_X, *_sizes(2, 3, 4, 9)], _mode("cubic", "align_corners"), constants=_KEPT),
    OnnxCase(
        "Resize",
        [_X, *_sizes(7, 4)],
        {"mode": "linear", "axes": [2, 3]},
        note="computed",
        primitives={"ResizeBilinearV2"},
    ),
    *[
        OnnxCase("Resize", [_X, *_scales(1, 1, 2, 2)], how, constants=_KEPT, custom=reason)
        for reason, how in {
            "antialias": {"mode": "linear", "antialias": 1},
            "cubic_coeff_a": {"mode": "cubic", "cubic_coeff_a": -0.5},
            "exclude_outside": {"mode": "cubic", "exclude_outside": 1},
        }.items()
    ],
    OnnxCase("Resize", [_X, *_scales(1, 2, 2, 2)], constants=_KEPT, custom="channels"),
    OnnxCase("Resize", [_X, *_sizes(2, 3, 9, 9)], {"mode": "linear"}, custom="of the run time"),
]
