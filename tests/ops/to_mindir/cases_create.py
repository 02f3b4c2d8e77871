"""Tensors made from shapes and numbers."""

import numpy as np
import onnx_ir as ir
from support.onnx_case import OnnxCase

_I = np.asarray([[0, 2], [-1, -4], [5, 3]], np.int64)
_F = np.asarray([2, 7], np.float32)


def _number(value: object, kind: str) -> ir.Tensor:
    return ir.Tensor(np.asarray([value], kind))


CASES = [
    OnnxCase("Constant", [], {"value": _number(2.5, "float32")}, primitives={"TensorMove"}),
    OnnxCase("Constant", [], {"value_ints": [1, 2]}),
    OnnxCase("ConstantOfShape", [np.asarray([2, 3])], constants=[0], primitives={"FillV2"}),
    OnnxCase("ConstantOfShape", [np.asarray([2, 3])], {"value": _number(2.5, "float32")}),
    OnnxCase("ConstantOfShape", [np.asarray([2])], {"value": _number(7, "int64")}),
    OnnxCase("ConstantOfShape", [np.asarray([2])], {"value": _number(True, "bool")}),
    *[
        OnnxCase("Range", [np.asarray(v, kind) for v in bounds], note=f"{bounds} {kind}")
        for kind, bounds in (
            ("int64", (0, 5, 1)), ("int64", (8, 1, -2)), ("int32", (1, 6, 2)),
            ("float32", (0.5, 3, 0.5)),
        )
    ],
    OnnxCase("Range", [np.asarray(0), np.asarray(5), np.asarray(1)], constants=[0, 2]),
    OnnxCase("EyeLike", [np.zeros((2, 3), np.float32)], primitives={"Eye"}),
    OnnxCase("EyeLike", [np.zeros((3, 3), np.int32)], {"dtype": 1}),
    OnnxCase("EyeLike", [np.zeros((3, 4), np.float32)], {"k": 1}),
    OnnxCase("EyeLike", [np.zeros((3, 4), np.float32)], open_dims=True, custom="run time"),
    *[
        OnnxCase("OneHot", [_I, np.asarray(4), _F], {"axis": axis}, constants=[1, 2])
        for axis in (-1, 0, 1, -2)
    ],
    OnnxCase("OneHot", [_I, np.asarray(4), _F], constants=[1], note="computed values"),
    OnnxCase(
        "OneHot", [_I.astype("f"), np.asarray(4, "f"), _F], constants=[1, 2], note="floats"
    ),
    OnnxCase("OneHot", [_I, np.asarray(4), _F], constants=[2], custom="run time"),
]  # fmt: skip
