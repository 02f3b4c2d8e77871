"""Rows for ops/lite_shape.py, and for ops that converter_lite writes in a way of its own."""

from __future__ import annotations

import numpy as np
from support.op_case import Case, K, W, numbers

I32, F32 = np.int32, np.float32


def ints(*values: int) -> K:
    """Integers as converter_lite keeps them."""
    return K(np.array(values, I32))


PAIRS = np.array([[0, 0], [1, 2], [2, 1]], I32)

PADS = [
    Case("PadFusion", [(2, 3, 4), K(PAIRS)],
         lambda x, how=how, more=more: np.pad(x, PAIRS, how, **more),
         attributes={"padding_mode": mode, "constant_value": value})
    for mode, value, how, more in [
        (0, 0.0, "constant", {}), (0, 1.5, "constant", {"constant_values": 1.5}),
        (1, 0.0, "reflect", {}), (2, 0.0, "symmetric", {}), (3, 0.0, "edge", {}),
    ]
] + [
    Case("PadFusion", [(2, 3, 4), K(PAIRS)], lambda x: np.pad(x, PAIRS, "symmetric"),
         attributes={"padding_mode": 2}, dynamic=True),
    Case("PadFusion", [(2, 3, 4), PAIRS], lambda x, p: np.pad(x, PAIRS),
         attributes={"padding_mode": 0}),
    Case("PadFusion", [(2, 3, 4), K(PAIRS.reshape(-1)), K(np.array(2, F32))],
         lambda x: np.pad(x, PAIRS, constant_values=2), attributes={"padding_mode": 0}),
    Case("PadFusion", [(2, 3, 4)], lambda x: np.pad(x, PAIRS),
         attributes={"padding_mode": 0, "paddings": [[0, 0], [1, 2], [2, 1]]}),
]  # fmt: skip

CUTS = [
    Case("SliceFusion", [(4, 5, 6), ints(1, 0, 2), ints(2, -1, 3)], lambda x: x[1:3, :, 2:5],
         attributes={"axes": [0, 1, 2]}, dynamic=True),
    Case("SliceFusion", [(4, 5, 6), ints(1, 2), ints(2, 3)], lambda x: x[:, 1:3, 2:5],
         attributes={"axes": [1, 2]}),
    Case("SliceFusion", [(4, 5), ints(1, 2), ints(2, 3)], lambda x: x[1:3, 2:5]),
    Case("SliceFusion", [(4, 5), np.array([1, 2], I32), np.array([2, -1], I32)],
         lambda x, b, s: x[1:3, 2:]),
    Case("SliceFusion", [(4, 5), np.array([1, 2], I32), ints(-1, 1)], lambda x, b: x[1:, 2:3]),
    Case("Crop", [(2, 6, 7, 3), (2, 4, 5, 3)], lambda x, y: x[:, 1:5, 2:7],
         attributes={"axis": 1, "offsets": [1, 2, 0]}, dynamic=True),
    Case("Crop", [(2, 6, 7), (2, 4, 5)], lambda x, y: x[:, 1:5, 1:6],
         attributes={"axis": -2, "offsets": [1]}),
    Case("StridedSlice", [(4, 5, 6), ints(1, -1), ints(3, -7), ints(0, 2), ints(1, -2)],
         lambda x: x[1:3, :, ::-2]),
    Case("StridedSlice", [(4, 5, 6), ints(1), ints(2**31 - 1), ints(-1), ints(2)],
         lambda x: x[..., 1::2], dynamic=True),
    Case("StridedSlice", [(4, 5), ints(1, 0), ints(3, 4), ints(1, 2)], lambda x: x[1:3, 0:4:2],
         attributes={"begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0,
                     "shrink_axis_mask": 0}),
    Case("Split", [(2, 6)], lambda x: (x[:, :1], x[:, 1:3], x[:, 3:]),
         attributes={"axis": 1, "output_num": 3, "size_splits": [1, 2, 3]}),
    Case("Split", [(2, 6)], lambda x: (x[:, :1], x[:, 1:4], x[:, 4:]),
         attributes={"axis": -1, "output_num": 3, "size_splits": [1, -1, 2]}),
    Case("Split", [(2, 6)], lambda x: (x[:, :3], x[:, 3:]),
         attributes={"axis": 1, "output_num": 2, "size_splits": [3, 3]}),
]  # fmt: skip

ROWS = numbers(1, 4, 2)
MOVES = [
    Case("TileFusion", [(2, 3), ints(2, 1)], lambda x: np.tile(x, (2, 1)),
         attributes={"dims": [0, 1]}, dynamic=True),
    Case("TileFusion", [(2, 3), ints(3)], lambda x: np.tile(x, (1, 3)), attributes={"dims": [1]}),
    Case("TileFusion", [(2, 3), ints(2, 2)], lambda x: np.tile(x, (2, 2))),
    Case("Unsqueeze", [(2, 3)], lambda x: x[:, None, :, None], attributes={"axis": [1, 3]}),
    Case("Unsqueeze", [(2, 3), ints(0)], lambda x: x[None], dynamic=True),
    Case("Splice", [ROWS],
         lambda x: np.concatenate([x[:, [0, 0, 1]], x[:, [0, 1, 2]], x[:, [1, 2, 3]]], -1),
         attributes={"context": [-1, 0, 1], "forward_indexes": [0, 0, 1, 0, 1, 2, 1, 2, 3],
                     "output_dim": 6}),
    Case("Concat", [(2, 3), (2, 4)], lambda x, y: np.concatenate([x, y], 1),
         attributes={"axis": 1, "inputNums": 2}, dynamic=True),
    Case("Concat", [(2, 3)], lambda x: x, attributes={"axis": 1}),
    Case("Stack", [(2, 3), (2, 3)], lambda x, y: np.stack([x, y], 1), attributes={"axis": 1}),
    Case("AddN", [(2, 3), (2, 3), (2, 3)], lambda x, y, z: x + y + z),
    Case("Transpose", [(2, 3, 4), ints(0, 2, 1)], lambda x: x.transpose(0, 2, 1), dynamic=True),
    Case("Reshape", [(2, 3, 4), ints(0, -1)], lambda x: x.reshape(2, 12)),
    Case("Reshape", [(2, 3, 4), K((0, -1))], lambda x: x.reshape(2, 12)),
    Case("Reshape", [(2, 3, 4), ints(0, -1)], lambda x: x.reshape(2, 12),
         attributes={"primitive_function": False}, dynamic=True),
    Case("Reshape", [(2, 3, 4), np.array([6, 4], I32)], lambda x, s: x.reshape(6, 4)),
    Case("Reshape", [np.zeros((0, 4), F32), ints(2, 0)], lambda x: x.reshape(2, 0)),
    Case("ExpandDims", [(2, 3), K(np.array(1, I32))], lambda x: x[:, None], dynamic=True),
    Case("Squeeze", [(2, 1, 3)], lambda x: x[:, 0], attributes={"axis": [1]}),
    Case("Flatten", [(2, 3, 4)], lambda x: x.reshape(6, 4), attributes={"axis": 2}),
    Case("BroadcastTo", [(1, 3)], lambda x: np.broadcast_to(x, (2, 3)),
         attributes={"shape": [2, 3]}),
    Case("Gather", [(4, 3), np.array([2, 0], I32), K(np.array(0, I32))], lambda x, i: x[[2, 0]]),
    Case("Softmax", [(2, 3)], lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True),
         attributes={"axis": [-1]}),
    Case("DepthToSpace", [(1, 2, 2, 8)],
         lambda x: x.reshape(1, 2, 2, 2, 2, 2).transpose(0, 1, 3, 2, 4, 5).reshape(1, 4, 4, 2),
         attributes={"block_size": 2, "format": 1, "mode": "DCR"}),
    Case("SpaceToDepth", [(1, 4, 4, 2)],
         lambda x: x.reshape(1, 2, 2, 2, 2, 2).transpose(0, 1, 3, 2, 4, 5).reshape(1, 2, 2, 8),
         attributes={"block_size": 2, "format": 1}),
]  # fmt: skip

MAKERS = [
    Case("ConstantOfShape", [ints(2, 3)], lambda: np.full((2, 3), 1.5, F32),
         attributes={"data_type": 43, "value": [1.5]}),
    Case("ConstantOfShape", [np.array([2, 3], I32)], lambda s: np.full((2, 3), 7, I32),
         attributes={"data_type": 34, "value": [7.0]}),
    Case("Shape", [(2, 3, 4)], lambda x: np.array([2, 3, 4], I32), untyped=False, dynamic=True),
    Case("Cast", [(2, 3), K(np.array(34, I32))], lambda x: x.astype(I32)),
    Case("Cast", [(2, 3)], lambda x: x.astype(np.float16), attributes={"dst_type": 42}),
    Case("OneHot", [np.array([1, 0, 5], I32), K(np.array(3, I32)), K(np.array([2, 9], F32))],
         lambda i: np.array([[2, 9, 2], [9, 2, 2], [2, 2, 2]], F32), attributes={"axis": -1}),
    Case("Where", [numbers(2, 3) > 0, (2, 3), (2, 3)], np.where, dynamic=True),
    Case("Where", [numbers(2, 3) > 0], lambda c: np.argwhere(c).astype(I32)),
]  # fmt: skip

BOXES = np.array([[[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3]]], F32)
SCORES = np.array([[[0.9, 0.8, 0.7]]], F32)
KEPT = np.array([[0, 0, 0], [0, 0, 2]], I32)
CHOSEN = [
    Case("NonMaxSuppression", [BOXES, SCORES, K(np.array([5], I32)), K(np.array([0.5], F32))],
         lambda b, s: KEPT, attributes={"center_point_box": 0}),
    Case("NonMaxSuppression",
         [BOXES, SCORES, K(np.array(5, np.int64)), K(np.array(0.5, F32)), K(np.array(0.8, F32))],
         lambda b, s: KEPT[:1]),
]  # fmt: skip

TAKEN = [
    Case("EmbeddingLookupFusion", [W(numbers(5, 3)), np.array([[4, 0]], I32)],
         lambda w, i: w[i], attributes={"max_norm": 0.0}),
    Case("ScatterElements", [(3, 2), np.array([[2, 0]], I32), (1, 2)],
         lambda x, i, u: np.where([[0, 1], [0, 0], [1, 0]], u, x).astype(F32),
         attributes={"axis": 0}),
    Case("InvertPermutation", [np.array([2, 0, 3, 1], I32)],
         lambda p: np.argsort(p).astype(I32), dynamic=True),
]  # fmt: skip

CASES = [*PADS, *CUTS, *MOVES, *MAKERS, *CHOSEN, *TAKEN]
