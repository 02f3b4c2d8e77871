"""Pooling."""

import numpy as np
from support.onnx_case import OnnxCase

_RNG = np.random.default_rng(3)


def _floats(*shape: int) -> np.ndarray:
    return _RNG.standard_normal(shape).astype(np.float32)


_IMAGE, _LINE, _VOLUME = _floats(2, 3, 10, 11), _floats(2, 3, 12), _floats(1, 2, 6, 7, 8)
_PEAKS = _floats(1, 2, 2, 3)
_PLACES = np.asarray([0, 3, 5, 12, 15, 17, 24, 27, 29, 37, 40, 41]).reshape(1, 2, 2, 3)
_MAX = [
    ({"kernel_shape": [2, 2], "strides": [2, 2]}, {"MaxPool"}),
    ({"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}, {"MaxPoolWithArgmaxV2"}),
    ({"kernel_shape": [3, 2], "pads": [0, 1, 1, 0]}, {"MaxPool3D"}),
    ({"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}, {"MaxPool"}),
    ({"kernel_shape": [3, 3], "auto_pad": "SAME_LOWER"}, {"MaxPoolWithArgmaxV2"}),
    ({"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}, {"MaxPoolWithArgmaxV2"}),
    ({"kernel_shape": [3, 3], "strides": [3, 3], "ceil_mode": 1, "pads": [1, 0, 0, 1]},
     {"MaxPool3D"}),
    ({"kernel_shape": [3, 3], "dilations": [2, 2]}, {"MaxPoolWithArgmaxV2"}),
]  # fmt: skip
_AVERAGE = [
    ({"kernel_shape": [2, 2], "strides": [2, 2]}, {"AvgPool"}),
    ({"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}, {"AvgPool3D"}),
    ({"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}, {"AvgPool3D"}),
    ({"kernel_shape": [3, 3], "pads": [0, 1, 1, 0], "count_include_pad": 1}, {"AvgPool3D"}),
    ({"kernel_shape": [3, 2], "pads": [0, 1, 1, 0]}, {"AvgPool3D"}),
    ({"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}, {"AvgPool"}),
    ({"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}, {"AvgPool3D"}),
    ({"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1, "pads": [1, 1, 1, 1],
      "count_include_pad": 1}, {"AvgPool3D"}),
]  # fmt: skip

CASES = [
    *[OnnxCase("MaxPool", [_IMAGE], how, primitives=names) for how, names in _MAX],
    *[OnnxCase("MaxPool", [_IMAGE], how, open_dims=True, note="open") for how, _ in _MAX],
    OnnxCase("MaxPool", [_LINE], {"kernel_shape": [3], "strides": [2], "pads": [1, 1]}),
    OnnxCase("MaxPool", [_LINE], {"kernel_shape": [2]}, primitives={"MaxPool"}),
    OnnxCase("MaxPool", [_VOLUME], {"kernel_shape": [2, 3, 2], "pads": [0, 1, 1, 1, 0, 1]}),
    OnnxCase("MaxPool", [_VOLUME], {"kernel_shape": [2, 2, 2], "strides": [2, 2, 2]}),
    OnnxCase("MaxPool", [_VOLUME], {"kernel_shape": [2, 2, 2], "dilations": [1, 2, 1]}),
    OnnxCase("MaxPool", [_IMAGE], {"kernel_shape": [2, 2], "pads": [1, 1, 1, 1]}, outputs=2),
    OnnxCase("MaxPool", [_LINE], {"kernel_shape": [3]}, outputs=2),
    OnnxCase("MaxPool", [_VOLUME], {"kernel_shape": [2, 2, 2]}, outputs=2),
    OnnxCase(
        "MaxPool", [_IMAGE], {"kernel_shape": [2, 2]}, outputs=2, open_dims=True, custom="run time"
    ),
    OnnxCase(
        "MaxPool",
        [_IMAGE],
        {"kernel_shape": [2, 2], "storage_order": 1},
        outputs=2,
        custom="by columns",
    ),
    *[OnnxCase("AveragePool", [_IMAGE], how, primitives=names) for how, names in _AVERAGE],
    *[OnnxCase("AveragePool", [_IMAGE], how, open_dims=True, note="open") for how, _ in _AVERAGE],
    OnnxCase("AveragePool", [_LINE], {"kernel_shape": [3], "strides": [2], "pads": [1, 1]}),
    OnnxCase("AveragePool", [_VOLUME], {"kernel_shape": [2, 3, 2], "pads": [0, 1, 1, 1, 0, 1]}),
    OnnxCase(
        "AveragePool", [_IMAGE], {"kernel_shape": [2, 2], "dilations": [2, 2]}, custom="dilations"
    ),
    *[
        OnnxCase(op_type, [x], open_dims=is_open)
        for op_type in ("GlobalAveragePool", "GlobalMaxPool")
        for x in (_IMAGE, _LINE, _VOLUME)
        for is_open in (False, True)
    ],
    OnnxCase("MaxPool", [_IMAGE], {"kernel_shape": [3, 3], "pads": [2, 2, 2, 2]}),
    OnnxCase(
        "AveragePool",
        [_IMAGE],
        {"kernel_shape": [3, 3], "pads": [2, 2, 2, 2], "count_include_pad": 1},
    ),
    *[
        OnnxCase(
            op_type,
            [_IMAGE],
            {"kernel_shape": [3, 3], "pads": [2, 2, 2, 2], **how},
            custom="more than half a window",
        )
        for op_type, how in [("MaxPool", {"ceil_mode": 1}), ("AveragePool", {})]
    ],
    *[OnnxCase("GlobalLpPool", [x], {"p": p}) for x in (_IMAGE, _VOLUME) for p in (1, 2, 3)],
    *[
        OnnxCase("LpPool", [_IMAGE], {"kernel_shape": [3, 2], **how}, opset=22)
        for how in (
            {},
            {"p": 1, "strides": [2, 2]},
            {"p": 3, "pads": [1, 1, 1, 1]},
            {"p": 3, "pads": [2, 1, 0, 1]},
            {"pads": [0, 1, 1, 0], "strides": [2, 3]},
            {"ceil_mode": 1, "strides": [2, 3], "pads": [1, 0, 1, 0]},
        )
    ],
    OnnxCase("LpPool", [_LINE], {"kernel_shape": [3]}, opset=22),
    OnnxCase("LpPool", [_VOLUME], {"kernel_shape": [2, 2, 2]}, opset=22),
    OnnxCase("MaxUnpool", [_PEAKS, _PLACES], {"kernel_shape": [2, 2], "strides": [2, 2]}),
    OnnxCase(
        "MaxUnpool",
        [_PEAKS, _PLACES, np.asarray([1, 2, 7, 7])],
        {"kernel_shape": [2, 2], "strides": [2, 2]},
        constants=[2],
        custom="output_shape",
    ),
]
