"""Rows for ops/pad.py."""

from __future__ import annotations

import numpy as np
from support.op_case import Case, K, S, T, numbers, truths

F16, F32, F64 = np.float16, np.float32, np.float64
I8, I16, I32, I64 = np.int8, np.int16, np.int32, np.int64

PADDING = [
    Case("Pad", [(2, 3)], lambda x: np.pad(x, ((1, 0), (2, 3))),
         attributes={"paddings": ((1, 0), (2, 3))}, dynamic=True),
    Case("Pad", [numbers(3, high=9, dtype=I32)], lambda x: np.pad(x, ((1, 2),)),
         attributes={"paddings": ((1, 2),)}),
    Case("PadV3", [(2, 3), K((1, 2))], lambda x: np.pad(x, ((0, 0), (1, 2)))),
    Case("PadV3", [(2, 3, 4), K((1, 2, 3, 0)), K(1.5)],
         lambda x: np.pad(x, ((0, 0), (3, 0), (1, 2)), constant_values=1.5),
         attributes={"mode": "constant", "paddings_contiguous": True}),
    Case("PadV3", [(2, 3, 4), K(np.array([1, 2, 3, 0], I64)), K(None)],
         lambda x: np.pad(x, ((0, 0), (3, 0), (1, 2)))),
    Case("PadV3", [(2, 3), K((1, 2, 0, 3))], lambda x: np.pad(x, ((2, 3), (1, 0))),
         attributes={"paddings_contiguous": False}),
    Case("PadV3", [(2, 5), K((2, 3))], lambda x: np.pad(x, ((0, 0), (2, 3)), "reflect"),
         attributes={"mode": "reflect"}),
    Case("PadV3", [(2, 5), K((2, 3))], lambda x: np.pad(x, ((0, 0), (2, 3)), "edge"),
         attributes={"mode": "edge"}),
    Case("PadV3", [(2, 5), K((2, 3))], lambda x: np.pad(x, ((0, 0), (2, 3)), "wrap"),
         attributes={"mode": "circular"}),
    Case("PadV3", [(2, 5), K((-1, 2))], lambda x: np.pad(x[:, 1:], ((0, 0), (0, 2)))),
    Case("PadV3", [numbers(4, high=9, dtype=I64), K((1, 1)), K(7)],
         lambda x: np.pad(x, 1, constant_values=7)),
]  # fmt: skip

MORE = [
    Case("PadV3", [(2, 3), T(S(1), S(2))], lambda x, p: np.pad(x, ((0, 0), (1, 2)))),
    Case("PadV3", [(2, 3), np.array([1, 2], I64), np.array(4, np.float32)],
         lambda x, p, v: np.pad(x, ((0, 0), (1, 2)), constant_values=4)),
    Case("PadV3", [(2, 3), K((1, 2)), K(np.array([4], np.float32))],
         lambda x: np.pad(x, ((0, 0), (1, 2)), constant_values=4)),
    Case("PadV3", [(2, 5), K((-1, 3))], lambda x: np.pad(x[:, 1:], ((0, 0), (0, 3)), "edge"),
         attributes={"mode": "edge"}),
    Case("PadV3", [(2, 5), K((2, -1))], lambda x: np.pad(x[:, :4], ((0, 0), (2, 0)), "reflect"),
         attributes={"mode": "reflect"}, dynamic=True),
    Case("PadV3", [(2, 3), K((0, 0, 0, 0))], lambda x: x),
    Case("PadV3", [numbers(2, 3, high=9, dtype=I16), K((1, 2)), K(5)],
         lambda x: np.pad(x, ((0, 0), (1, 2)), constant_values=5)),
    Case("ConstantPadND", [(2, 3), K((1, 2, 0, 1)), K(0.5)],
         lambda x: np.pad(x, ((0, 1), (1, 2)), constant_values=0.5), dynamic=True),
    Case("ConstantPadND", [numbers(4, high=9, dtype=I32), K((1, -1)), K(3)],
         lambda x: np.pad(x[:-1], (1, 0), constant_values=3)),
    Case("ReflectionPad1D", [(2, 4), K((2, 1))],
         lambda x: np.pad(x, ((0, 0), (2, 1)), "reflect"), dynamic=True),
    Case("ReflectionPad2D", [(1, 2, 3, 4), K((1, 2, 2, 0))],
         lambda x: np.pad(x, ((0, 0), (0, 0), (2, 0), (1, 2)), "reflect")),
    Case("ReflectionPad3D", [(1, 2, 3, 4), K((1, 2, 2, 0, 1, 1))],
         lambda x: np.pad(x, ((0, 0), (1, 1), (2, 0), (1, 2)), "reflect")),
    Case("ReplicationPad1D", [(2, 4), K((2, 1))], lambda x: np.pad(x, ((0, 0), (2, 1)), "edge")),
    Case("ReplicationPad2D", [(2, 3, 4), K((1, 2, 2, 0))],
         lambda x: np.pad(x, ((0, 0), (2, 0), (1, 2)), "edge"), dynamic=True),
    Case("ReplicationPad3D", [(1, 2, 2, 3, 4), K((1, 2, 2, 0, 1, 1))],
         lambda x: np.pad(x, ((0, 0), (0, 0), (1, 1), (2, 0), (1, 2)), "edge")),
    Case("MirrorPad", [(3, 4), K(np.array([[1, 2], [0, 3]], I64))],
         lambda x: np.pad(x, ((1, 2), (0, 3)), "reflect"), attributes={"mode": "REFLECT"}),
    Case("MirrorPad", [(3, 4), K(np.array([[1, 3], [0, 4]], I32))],
         lambda x: np.pad(x, ((1, 3), (0, 4)), "symmetric"), attributes={"mode": "SYMMETRIC"},
         dynamic=True),
    Case("MirrorPad", [truths(3), K(((1, 2),))], lambda x: np.pad(x, (1, 2), "symmetric"),
         attributes={"mode": "SYMMETRIC"}),
    Case("Padding", [(2, 1)], lambda x: np.pad(x, ((0, 0), (0, 3))),
         attributes={"pad_dim_size": 4}, dynamic=True),
]  # fmt: skip

CASES = [*PADDING, *MORE]
