"""A row for ops/custom.py; tests/ops/test_custom.py has the rest."""

from __future__ import annotations

import numpy as np
from onnx import helper
from support.op_case import Case

_NODE = helper.make_node("Max", ["a", "b"], ["y"]).SerializeToString()

CASES = [
    Case(
        "Custom",
        [(2, 3), (3,)],
        np.maximum,
        attributes={
            "reg_op_name": "ONNX",
            "onnx_node": np.frombuffer(_NODE, np.uint8),
            "onnx_inputs": ("a", "b"),
            "opset": 21,
        },
    ),
]
