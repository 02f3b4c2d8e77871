"""Elementwise arithmetic."""

import numpy as np
from support.onnx_case import OnnxCase

_X = np.random.default_rng(0).uniform(0.1, 0.9, (2, 3)).astype(np.float32)
_I = np.asarray([[-7, 7, -6], [5, 0, 9]], np.int32)
_J = np.asarray([2, -2, 3], np.int32)
_SPECIAL = np.asarray([[1, np.nan, np.inf], [-np.inf, 0, -2]], np.float32)
_UNARY = [
    "Abs", "Acos", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Floor",
    "Neg", "Relu", "Sigmoid", "Sign", "Sin", "Sinh", "Tan", "Tanh",
]  # fmt: skip


def _cast(x: np.ndarray, to: type, number: int) -> OnnxCase:
    return OnnxCase("Cast", [x], {"to": number}, primitives={"Cast"}, note=np.dtype(to).name)


CASES = [
    *[OnnxCase(op_type, [_X - 0.5]) for op_type in _UNARY],
    *[OnnxCase(op_type, [_X]) for op_type in ("Sqrt", "Log", "Reciprocal")],
    OnnxCase("Acosh", [_X + 1]),
    OnnxCase("Round", [np.asarray([0.5, 1.5, 2.5, -0.5, -1.5, 2.3], np.float32)]),
    *[OnnxCase(op_type, [_I]) for op_type in ("Abs", "Neg", "Sign")],
    *[OnnxCase(op_type, [_X, _X[:1]], primitives={op_type}) for op_type in ("Add", "Sub", "Mul")],
    *[OnnxCase(op_type, [_I, _J]) for op_type in ("Add", "Sub", "Mul")],
    OnnxCase("Mul", [_X, _X], open_dims=True, constants=[1]),
    OnnxCase("Div", [_X, _X[:1]], primitives={"Div"}),
    OnnxCase("Div", [_I, _J], primitives={"TruncateDiv"}),
    OnnxCase("Div", [_I.astype(np.int64), _J.astype(np.int64)], primitives={"TruncateDiv"}),
    OnnxCase("Mod", [_I, _J], primitives={"FloorMod"}),
    OnnxCase("Mod", [_I, _J], {"fmod": 1}),
    OnnxCase("Mod", [_I.astype(np.float32) / 2, _J.astype(np.float32)], {"fmod": 1}),
    OnnxCase("Pow", [_X, _X[:1]], primitives={"Pow"}),
    OnnxCase("Pow", [_X, np.asarray(2, np.int64)], constants=[1]),
    OnnxCase("Pow", [_X, np.asarray([2, 3, 1], np.int64)]),
    OnnxCase("Pow", [np.abs(_I), np.asarray([2, 1, 3], np.float32)], note="to int"),
    OnnxCase("Pow", [np.abs(_I), np.abs(_J)], note="of ints"),
    *[
        OnnxCase(op_type, [_X, _X[:1] * 2, _X[:, :1] + 0.1][:count])
        for op_type in ("Max", "Min", "Sum", "Mean")
        for count in (1, 2, 3)
    ],
    *[OnnxCase(op_type, [_I, _J]) for op_type in ("Max", "Min")],
    OnnxCase("Sum", [_X, _X * 2, _X - 1], primitives={"AddN"}),
    OnnxCase("IsNaN", [_SPECIAL]),
    OnnxCase("IsInf", [_SPECIAL], primitives={"IsInf"}),
    OnnxCase("IsInf", [_SPECIAL], {"detect_negative": 0}),
    OnnxCase("IsInf", [_SPECIAL], {"detect_positive": 0}),
    OnnxCase(
        "IsInf", [_SPECIAL], {"detect_positive": 0, "detect_negative": 0}, custom="no infinity"
    ),
    _cast(_I / np.float32(2), np.int32, 6),
    _cast(_I / np.float32(2), np.int64, 7),
    _cast(_I, np.float32, 1),
    _cast(_I, np.float16, 10),
    _cast(_I, np.bool_, 9),
    _cast(_X - 0.5, np.bool_, 9),
    _cast(_I > 0, np.float32, 1),
    _cast(np.abs(_I), np.uint8, 2),
    OnnxCase("Cast", [_X], {"to": 17}, custom="element type", note="float8"),
    OnnxCase("CastLike", [_X, _I], primitives={"Cast"}),
]
