"""Rows for ops/lite_quant.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.op_case import Case, T, numbers

FLOAT, INT8, UINT8 = 43, 32, 37


def record(scale: Any, zero: Any) -> dict[str, list[Any]]:
    """A quantisation record as a file holds it."""
    return {"scale_list": [scale] if isinstance(scale, float) else scale,
            "zero_point_list": [zero] if isinstance(zero, int) else zero}  # fmt: skip


def quantised(x: np.ndarray, scale: Any, zero: Any, dtype: Any = np.int8) -> np.ndarray:
    limits = np.iinfo(dtype)
    scale, zero = np.asarray(scale, np.float32), np.asarray(zero)
    return np.clip(np.round(x / scale) + zero, limits.min, limits.max).astype(dtype)


def real(q: np.ndarray, scale: float, zero: int) -> np.ndarray:
    return (q.astype(np.float32) - zero) * np.float32(scale)


TO_INT8 = {"src_t": FLOAT, "dst_t": INT8, "axis": 0}
BYTES = numbers(2, 3, low=-9, high=9, dtype=np.int8)

CASES = [
    Case("QuantDTypeCast", [(2, 3)], lambda x: quantised(x, 0.5, 3),
         attributes={**TO_INT8, "quant_param": [record(0.5, 3)]}, dynamic=True),
    Case("QuantDTypeCast", [(2, 3)], lambda x: quantised(x, 0.01, 0),
         attributes={**TO_INT8, "quant_param": [record(0.01, 0)]}),
    Case("QuantDTypeCast", [(2, 3)], lambda x: quantised(x, 0.25, 128, np.uint8),
         attributes={"src_t": FLOAT, "dst_t": UINT8, "quant_param": [record(0.25, 128)]}),
    Case("QuantDTypeCast", [(2, 3)], lambda x: quantised(x, [[0.5], [0.25]], [[0], [1]]),
         attributes={**TO_INT8, "quant_param": [record([0.5, 0.25], [0, 1])]}),
    Case("QuantDTypeCast", [(2, 3)], lambda x: quantised(x, 0.5, 3),
         attributes={**TO_INT8, "quant_type": 5, "quant_param": [record(0.5, 3)]}),
    Case("QuantDTypeCast", [BYTES], lambda q: real(q, 0.5, 3),
         attributes={"src_t": INT8, "dst_t": FLOAT, "graph_input_quant_param": record(0.5, 3)}),
    Case("QuantDTypeCast", [(2, 3)], lambda x: x, attributes={"src_t": INT8, "dst_t": FLOAT}),
    Case("AddFusion", [BYTES, BYTES],
         lambda q, p: quantised(real(q, 0.5, 3) + real(p, 0.5, 3), 0.25, -1),
         attributes={"quant_type": 5, "graph_input_quant_param": record(0.5, 3),
                     "quant_param": [record(0.25, -1)]}, untyped=False),
    Case("Reshape", [BYTES], lambda q: q.reshape(3, 2),
         attributes={"quant_type": 5, "graph_input_quant_param": record(0.5, 3),
                     "quant_param": [record(0.5, 3)], "shape": (3, 2)}, untyped=False),
    Case("Concat", [BYTES, BYTES],
         lambda *q: quantised(real(np.concatenate(q), 0.5, 3), 1, 0),
         attributes={"quant_type": 5, "graph_input_quant_param": record(0.5, 3), "axis": 0,
                     "quant_param": [record(1.0, 0)]}, untyped=False),
    Case("Concat", [T(BYTES, BYTES)],
         lambda v: quantised(real(np.concatenate(v), 0.5, 3), 1, 0),
         attributes={"quant_type": 5, "graph_input_quant_param": record(0.5, 3), "axis": 0,
                     "quant_param": [record(1.0, 0)]}, untyped=False),
    Case("Split", [BYTES],
         lambda q: tuple(quantised(real(q[i : i + 1], 0.5, 3), s, 0) for i, s in ((0, 1), (1, 2))),
         attributes={"quant_type": 5, "graph_input_quant_param": record(0.5, 3), "axis": 0,
                     "output_num": 2, "quant_param": [record(1.0, 0), record(2.0, 0)]},
         untyped=False),
    Case("ReLU", [(2, 3)], lambda x: np.maximum(x, 0), attributes={"quant_type": 4}),
]  # fmt: skip
