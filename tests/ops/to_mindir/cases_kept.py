"""Operators that are carried as they are on purpose."""

import numpy as np
from support.onnx_case import OnnxCase

_X = np.asarray([[0.5, -1, 2]], np.float32)
_U = np.asarray([[1, 2, 3]], np.uint8)

CASES = [
    OnnxCase("QuantizeLinear", [_X, np.asarray(0.1, np.float32)], custom="int8 kernels"),
    OnnxCase("DequantizeLinear", [_U, np.asarray(0.1, np.float32)], custom="int8 kernels"),
    OnnxCase("DynamicQuantizeLinear", [_X], outputs=3, custom="int8 kernels"),
    OnnxCase("MatMulInteger", [_U, _U.T], custom="int8 kernels"),
]
