"""Comparison, logic, bits and choosing."""

import numpy as np
from support.onnx_case import OnnxCase

_X = np.asarray([[1, 2, 3], [4, 2, 0]], np.float32)
_Y = np.asarray([2, 2, 2], np.float32)
_I, _J = _X.astype(np.int32), _Y.astype(np.int32)
_B, _C = _X > 1, np.asarray([True, False, True])
_U = np.asarray([1, 2, 255], np.uint8)

CASES = [
    *[
        OnnxCase(op_type, pair)
        for op_type in ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
        for pair in ([_X, _Y], [_I.astype(np.int64), _J.astype(np.int64)])
    ],
    OnnxCase("Equal", [_B, _C]),
    *[OnnxCase(op_type, [_B, _C]) for op_type in ("And", "Or", "Xor")],
    OnnxCase("Not", [_B], primitives={"LogicalNot"}),
    *[OnnxCase(op_type, [_I, _J]) for op_type in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")],
    OnnxCase("BitwiseNot", [_I]),
    *[
        OnnxCase("BitShift", [_U, np.asarray([1, 2, 3], np.uint8)], {"direction": direction})
        for direction in ("LEFT", "RIGHT")
    ],
    OnnxCase(
        "BitShift",
        [np.asarray([2**63 + 5], np.uint64), np.asarray([1], np.uint64)],
        {"direction": "RIGHT"},
    ),
    OnnxCase("Where", [_B, _X, _Y], primitives={"Select"}),
    OnnxCase("Where", [_C, _I, np.asarray(7, np.int32)], constants=[2]),
    OnnxCase("Where", [_B, _X, _Y], open_dims=True),
]
