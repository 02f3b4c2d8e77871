"""Activations."""

import numpy as np
from support.onnx_case import OnnxCase

_X = np.random.default_rng(5).standard_normal((2, 3, 4)).astype(np.float32) * 3
_SLOPES = np.asarray([0.1, -0.5, 2, 0.25], np.float32)


def _number(value: float) -> np.ndarray:
    return np.asarray(value, np.float32)


CASES = [
    OnnxCase("HardSwish", [_X * 2], primitives={"HSwish"}),
    OnnxCase("HardSigmoid", [_X * 2], {"alpha": 1 / 6}, primitives={"HSigmoid"}),
    OnnxCase("HardSigmoid", [_X]),
    OnnxCase("HardSigmoid", [_X], {"alpha": 0.5, "beta": 0.6}, open_dims=True),
    *[
        OnnxCase(op_type, [_X], {"axis": axis}, primitives={op_type})
        for op_type in ("Softmax", "LogSoftmax")
        for axis in (-1, 0, 1)
    ],
    OnnxCase("Softmax", [_X], open_dims=True),
    OnnxCase("Gelu", [_X], primitives={"Erf"}),
    OnnxCase("Gelu", [_X], {"approximate": "tanh"}, primitives={"GeLU"}),
    OnnxCase("Clip", [_X, _number(0), _number(6)], constants=(1, 2), primitives={"ReLU6"}),
    OnnxCase("Clip", [_X, _number(-1), _number(1)], constants=(1, 2)),
    OnnxCase("Clip", [_X, _number(-1)], constants=[1]),
    OnnxCase("Clip", [_X, None, _number(1)], constants=[2], open_dims=True),
    OnnxCase("Clip", [_X, _number(-1), _number(1)], note="computed"),
    OnnxCase("Clip", [_X, None, _number(1)], note="computed"),
    OnnxCase("Clip", [_X, _number(1), _number(-1)], constants=(1, 2), note="crossed"),
    OnnxCase("Clip", [_X], note="unbounded"),
    OnnxCase("Clip", [_X.astype(float)], note="unbounded float64"),
    OnnxCase("Clip", [_X.astype(float)], note="unbounded float64"),
    OnnxCase("Clip", [_X.astype(float), np.asarray(0.1)], constants=[1], note="float64"),
    OnnxCase(
        "Clip", [np.arange(-3, 4), np.asarray(-2), np.asarray(2)], constants=(1, 2), note="int64"
    ),
    *[OnnxCase(op_type, [_X]) for op_type in ("Mish", "Softplus", "Softsign")],
    OnnxCase("Elu", [_X], primitives={"Elu"}),
    OnnxCase("Elu", [_X], {"alpha": 2.0}),
    OnnxCase("Selu", [_X], primitives={"SeLU"}),
    OnnxCase("Selu", [_X], {"alpha": 2.0, "gamma": 3.0}),
    OnnxCase("Celu", [_X], {"alpha": 2.0}, primitives={"CeLU"}),
    OnnxCase("LeakyRelu", [_X], {"alpha": 0.1}, primitives={"PReLU"}),
    OnnxCase("LeakyRelu", [_X], {"alpha": 1.5}, open_dims=True),
    OnnxCase("LeakyRelu", [_X[0, 0]]),
    *[
        OnnxCase("PRelu", [_X, slope], constants=(1,) * constant, note=f"constant {constant}")
        for slope in (_SLOPES[:1], _SLOPES[:3, None], _SLOPES[None, :3, None], _SLOPES)
        for constant in (0, 1)
    ],
    OnnxCase("PRelu", [_X[:, 0], _SLOPES], constants=[1], primitives={"PReLU"}),
    OnnxCase("ThresholdedRelu", [_X], {"alpha": 0.7}),
    OnnxCase("Shrink", [_X], primitives={"HShrink"}),
    OnnxCase("Shrink", [_X], {"lambd": 1.5, "bias": 1.5}, primitives={"SoftShrink"}),
    OnnxCase("Shrink", [_X], {"lambd": 1.5, "bias": 1.0}),
    OnnxCase("Shrink", [np.arange(-3, 4)], {"lambd": 1.5}, custom="integers"),
    OnnxCase("Swish", [_X], opset=24, primitives={"SiLU"}),
    OnnxCase("Swish", [_X], {"alpha": 1.7}, opset=24),
    *[OnnxCase("Hardmax", [_X], {"axis": axis}) for axis in (0, 1, 2, -1)],
    OnnxCase("Hardmax", [_X], open_dims=True, custom="run time"),
    OnnxCase("Dropout", [_X]),
    OnnxCase("Dropout", [_X, _number(0.5)], constants=[1], outputs=2),
    OnnxCase(
        "Dropout",
        [_X, _number(0.0), np.asarray(True)],
        constants=(1, 2),
        outputs=2,
        custom="training_mode",
    ),
]
