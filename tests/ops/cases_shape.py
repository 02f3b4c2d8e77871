"""Rows for ops/shape.py."""

from __future__ import annotations

import numpy as np
from support.op_case import Case, K, S, T, numbers, truths

F16, I32, I64 = np.float16, np.int32, np.int64

RESHAPING = [
    Case("Reshape", [(2, 3, 4), K((6, 4))], lambda x: x.reshape(6, 4), dynamic=True),
    Case("Reshape", [(2, 3, 4), K((-1, 2))], lambda x: x.reshape(-1, 2)),
    Case("Reshape", [(2, 3, 4), K([2, 12])], lambda x: x.reshape(2, 12)),
    Case("Reshape", [(1,), K(())], lambda x: x.reshape(())),
    Case("Reshape", [(2, 3), K(np.array([3, 2], I64))], lambda x: x.reshape(3, 2)),
    Case("Reshape", [(2, 3), K(np.array([3, 2], I32))], lambda x: x.reshape(3, 2)),
    Case("Reshape", [(2, 3), np.array([3, 2], I64)], lambda x, s: x.reshape(3, 2)),
    Case("Reshape", [(2, 3, 4), T(S(6), K(-1))], lambda x, s: x.reshape(6, 4)),
    Case("Reshape", [np.zeros((0, 3), np.float32), K((3, 0))], lambda x: x.reshape(3, 0)),
    Case("Reshape", [truths(2, 3), K((6,))], lambda x: x.reshape(6)),
    Case("Reshape", [(2, 3, 4), K((0, 12))], lambda x: x.reshape(2, 12), {"allowzero": 0}),
    Case("Flatten", [(2, 3, 4)], lambda x: x.reshape(2, 12), dynamic=True),
    Case("FlattenExt", [(2, 3, 4), K(0), K(-1)], lambda x: x.reshape(24)),
    Case("FlattenExt", [(2, 3, 4, 5), K(1), K(2)], lambda x: x.reshape(2, 12, 5), dynamic=True),
    Case("FlattenExt", [(2, 3), K(1), K(1)], lambda x: x),
    Case("FlattenExt", [(), K(0), K(-1)], lambda x: x.reshape(1)),
    Case("ExpandDims", [(2, 3), K(0)], lambda x: x[None]),
    Case("ExpandDims", [(2, 3), K(-1)], lambda x: x[..., None], dynamic=True),
    Case("ExpandDims", [numbers(3, high=9, dtype=I64), K(1)], lambda x: x[:, None]),
    Case("ExpandDimsView", [(2, 3), K(1)], lambda x: x[:, None]),
    Case("Squeeze", [(1, 3, 1)], lambda x: x.reshape(3)),
    Case("Squeeze", [(1, 3, 1)], lambda x: x.reshape(3), {"axis": ()}),
    Case("Squeeze", [(1, 3, 1)], lambda x: x.reshape(1, 3), {"axis": (2,)}),
    Case("Squeeze", [(1, 3, 1)], lambda x: x.reshape(3, 1), {"axis": (-3,)}),
    Case("Squeeze", [(1, 3, 1)], lambda x: x.reshape(3), {"axis": (0, -1)}),
    Case("Shape", [(2, 3)], lambda x: (I64(2), I64(3)), dynamic=True),
    Case("TensorShape", [(2, 3)], lambda x: np.array([2, 3], I64), dynamic=True),
    Case("DynamicShape", [(2, 3)], lambda x: np.array([2, 3], I64)),
    Case("Rank", [(2, 3, 4)], lambda x: I64(3), dynamic=True),
    Case("Size", [(2, 3, 4)], lambda x: I64(24), dynamic=True),
    Case("Size", [np.asarray(2, np.float32)], lambda x: I64(1)),
]

ORDER = [
    Case("Transpose", [(2, 3, 4), K((2, 0, 1))], lambda x: x.transpose(2, 0, 1), dynamic=True),
    Case("Transpose", [(2, 3), K((-1, 0))], lambda x: x.T),
    Case("Transpose", [truths(2, 3), K((1, 0))], lambda x: x.T),
    Case("TransposeView", [(2, 3), K((1, 0))], lambda x: x.T),
    Case("TransposeExtView", [(2, 3, 4), K(-1), K(0)], lambda x: x.swapaxes(0, 2)),
    Case("Tile", [(2, 3), K((2, 3))], lambda x: np.tile(x, (2, 3)), dynamic=True),
    Case("Tile", [(2, 3), K((4, 1, 2))], lambda x: np.tile(x, (4, 1, 2))),
    Case("Tile", [(2, 3), K((2,))], lambda x: np.tile(x, (2,))),
    Case("Tile", [(2, 3), T(S(2), K(1))], lambda x, s: np.tile(x, (2, 1))),
    Case("BroadcastTo", [(3,)], lambda x: np.broadcast_to(x, (2, 3)), {"shape": (2, 3)}),
    Case("BroadcastTo", [(2, 1), K((2, 4))], lambda x: np.broadcast_to(x, (2, 4))),
    Case("BroadcastTo", [(2, 1), K((5, -1, 4))], lambda x: np.broadcast_to(x, (5, 2, 4))),
    Case("BroadcastTo", [(1, 3), T(S(4), K(3))], lambda x, s: np.broadcast_to(x, (4, 3))),
    Case("BroadcastToView", [(1, 3), K((2, 3))], lambda x: np.broadcast_to(x, (2, 3))),
]

REPEATING = [
    Case("View", [(2, 3), K((3, 2))], lambda x: x.reshape(3, 2)),
    Case("ViewAs", [(2, 3), (3, 2)], lambda x, y: x.reshape(3, 2), dynamic=True),
    Case("TExt", [(2, 3)], lambda x: x.T, dynamic=True),
    Case("TExt", [(3,)], lambda x: x),
    Case("TransposeExtView", [(), K(0), K(-1)], lambda x: x),
    Case("FlattenExt", [np.zeros((0, 3, 4), np.float32), K(1), K(2)], lambda x: x.reshape(0, 12)),
    Case("FlattenExt", [(2, 3, 4), K(0), K(1)], lambda x: x.reshape(6, 4), dynamic=True),
    Case("Squeeze", [(1, 3, 1)], lambda x: x.reshape(3), dynamic=True),
    Case("Repeat", [(2, 3), K((4, 1, 2))], lambda x: np.tile(x, (4, 1, 2)), dynamic=True),
    Case("RepeatInterleaveInt", [(2, 3), K(2), K(None), K(None)], lambda x: x.repeat(2),
         dynamic=True),
    Case("RepeatInterleaveInt", [(2, 3), K(3), K(-1), K(9)], lambda x: x.repeat(3, 1),
         dynamic=True),
    Case("RepeatInterleaveInt", [(2, 3), S(2), K(0), K(None)], lambda x, n: x.repeat(2, 0)),
    Case("RepeatInterleaveInt", [truths(2, 3), K(2), K(0), K(None)], lambda x: x.repeat(2, 0)),
    Case("RepeatInterleaveTensor", [(3, 2), np.array([2, 0, 3], I64), K(0), K(None)],
         lambda x, n: x.repeat(n, 0), dynamic=True),
    Case("RepeatInterleaveTensor", [(2, 4), K(np.array([0, 1, 2, 0], I32)), K(1), K(3)],
         lambda x: x.repeat([0, 1, 2, 0], 1)),
    Case("RepeatInterleaveTensor", [(2, 3), np.array([2], I64), K(None), K(None)],
         lambda x, n: x.repeat(2)),
    Case("BroadcastTo", [(2, 1), np.array([3, -1, 4], I64)],
         lambda x, s: np.broadcast_to(x, (3, 2, 4))),
    Case("BroadcastTo", [truths(3), K((2, 3))], lambda x: np.broadcast_to(x, (2, 3))),
    Case("DynamicBroadcastTo", [(2, 1), np.array([2, 4], I64)],
         lambda x, s: np.broadcast_to(x, (2, 4))),
    Case("Expand", [(2, 1), K(np.array([2, 4], I32))], lambda x: np.broadcast_to(x, (2, 4))),
    Case("ExpandAs", [(2, 1), (3, 2, 4)], lambda x, y: np.broadcast_to(x, (3, 2, 4)), dynamic=True),
]  # fmt: skip


def depth_to_space(x: np.ndarray, b: int) -> np.ndarray:
    n, c, h, w = x.shape
    y = x.reshape(n, b, b, c // b**2, h, w).transpose(0, 3, 4, 1, 5, 2)
    return y.reshape(n, c // b**2, h * b, w * b)


def space_to_depth(x: np.ndarray, b: int) -> np.ndarray:
    n, c, h, w = x.shape
    y = x.reshape(n, c, h // b, b, w // b, b).transpose(0, 3, 5, 1, 2, 4)
    return y.reshape(n, c * b**2, h // b, w // b)


BLOCKS = [
    Case("DepthToSpace", [(1, 8, 2, 3)], lambda x: depth_to_space(x, 2),
         attributes={"block_size": 2, "format": "NCHW"}),
    Case("SpaceToDepth", [(1, 2, 4, 6)], lambda x: space_to_depth(x, 2),
         attributes={"block_size": 2, "format": "NCHW"}),
]  # fmt: skip

CASES = [*RESHAPING, *ORDER, *REPEATING, *BLOCKS]
