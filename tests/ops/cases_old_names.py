"""Rows for ops/old_names.py."""

from __future__ import annotations

import numpy as np
from support.op_case import Case, W, numbers


def gelu(x: np.ndarray) -> np.ndarray:
    inner = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    return (x * (1 + np.tanh(inner)) / 2).astype(np.float32)


STATISTICS = [W(numbers(3, seed=i)) for i in range(3)] + [W(numbers(3, low=0.5))]

CASES = [
    Case("Gelu", [(2, 3)], gelu),
    Case("FastGelu", [(2, 3)], lambda x: x / (1 + np.exp(np.float32(-1.702) * x))),
    Case("ReLUV2", [(2, 3)], lambda x: np.maximum(x, 0), pick=0),
    Case("BNInfer", [(2, 3, 4, 4), *STATISTICS],
         lambda x, s, b, m, v: ((x.transpose(0, 2, 3, 1) - m) / np.sqrt(v + np.float32(1e-3)) * s
                                + b).transpose(0, 3, 1, 2), attributes={"epsilon": 1e-3}),
    *[Case(f"Reduce{name}D", [(2, 3, 4)], lambda x, how=how: how(x, (1, 2), keepdims=True),
           attributes={"axis": [1, -1], "keep_dims": True})
      for name, how in [("Mean", np.mean), ("Sum", np.sum), ("Max", np.max), ("Min", np.min),
                        ("Prod", np.prod)]],
    Case("ReduceSumD", [(2, 3)], lambda x: x.sum(0), attributes={"axis": (0,)}, dynamic=True),
    Case("TransposeD", [(2, 3, 4)], lambda x: x.transpose(2, 0, 1), attributes={"perm": [2, 0, 1]}),
]  # fmt: skip
