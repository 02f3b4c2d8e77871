"""Losses."""

import numpy as np
from support.onnx_case import OnnxCase

_RNG = np.random.default_rng(11)
_WEIGHTS = np.asarray([0.2, 0.3, 0.6, 0.1, 0.5], np.float32)


def _case(op_type: str, *image: int, weighed: bool = False, **attributes: object) -> OnnxCase:
    x = _RNG.standard_normal((3, 5, *image)).astype(np.float32)
    target = _RNG.integers(0, 5, (3, *image))
    inputs = [x, target, _WEIGHTS] if weighed else [x, target]
    note = "weighed" if weighed else ""
    return OnnxCase(op_type, inputs, attributes, constants=[2] if weighed else [], note=note)


CASES = [
    _case(op_type, *image, weighed=weighed, reduction=reduction, **more)
    for op_type in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
    for image in ((), (2, 3))
    for weighed in (False, True)
    for reduction in ("mean", "sum", "none")
    for more in ({}, {"ignore_index": 2})
]
