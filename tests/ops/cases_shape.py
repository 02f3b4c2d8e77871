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

JOINING = [
    Case("Concat", [T((2, 3), (4, 3))], np.concatenate),
    Case("Concat", [T((2, 3), (2, 1), (2, 2))], lambda xs: np.concatenate(xs, 1), {"axis": 1},
         dynamic=True),
    Case("Concat", [T((2, 3), (2, 1))], lambda xs: np.concatenate(xs, -1), {"axis": -1}),
    Case("Concat", [T((2, 3))], lambda xs: xs[0], {"axis": 1}),
    Case("Concat", [T(numbers(2, high=9, dtype=I64), K(np.array([5], I64)))],
         lambda xs: np.append(xs[0], 5), {"axis": 0}),
    Case("Concat", [T((2,), K(np.array([5], I32)))],
         lambda xs: np.append(xs[0], np.float32(5)), {"axis": 0}),
    Case("Stack", [T((2, 3), (2, 3))], np.stack, attributes={"axis": 0, "num": 2}),
    Case("Stack", [T((2, 3), (2, 3))], lambda xs: np.stack(xs, -1), attributes={"axis": -1}),
    Case("Stack", [T((2, 3), (2, 3))], lambda xs: np.stack(xs, -2), attributes={"axis": -2}),
    Case("StackExt", [T((2, 3), (2, 3), (2, 3))], lambda xs: np.stack(xs, 1), {"dim": 1}),
    Case("StackExt", [T((), ())], np.stack, {"dim": 0}),
]  # fmt: skip


def even(x: np.ndarray, size: int, axis: int) -> tuple[np.ndarray, ...]:
    return tuple(np.split(x, range(size, x.shape[axis], size), axis))


CUTTING = [
    Case("Split", [(4, 6)], lambda x: tuple(np.split(x, 3, 1)), {"axis": 1, "output_num": 3},
         dynamic=True),
    Case("Split", [(4, 6)], lambda x: tuple(np.split(x, 2, 0)), {"axis": -2, "output_num": 2}),
    Case("Split", [(4, 6)], lambda x: (x,), {"axis": 0, "output_num": 1}),
    Case("SplitWithSize", [(2, 6), K((1, 2, 3)), K(1)],
         lambda x: (x[:, :1], x[:, 1:3], x[:, 3:])),
    Case("SplitWithSizeView", [(5, 2), K((4, 1)), K(-2)], lambda x: (x[:4], x[4:])),
    Case("SplitTensor", [(5, 2), K(2), K(0)], lambda x: even(x, 2, 0)),
    Case("SplitTensorView", [(2, 5), K(3), K(-1)], lambda x: even(x, 3, 1)),
    Case("SplitTensor", [(5, 2), K(9), K(0)], lambda x: (x,)),
    Case("Chunk", [(5, 2), K(3), K(0)], lambda x: even(x, 2, 0)),
    Case("ChunkView", [(2, 6), K(3), K(1)], lambda x: even(x, 2, 1)),
    Case("Unstack", [(3, 4)], lambda x: tuple(x), attributes={"axis": 0, "num": 3},
         dynamic=True),
    Case("Unstack", [(3, 2)], lambda x: tuple(x.T), attributes={"axis": -1}),
    Case("Unstack", [(1, 4)], lambda x: (x[0],), attributes={"axis": 0}),
    Case("UnstackExtView", [(3, 2), K(1)], lambda x: tuple(x.T)),
]  # fmt: skip

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
    Case("PadV3", [(2, 3), K((1, 2, 0, 3))], lambda x: np.pad(x, ((1, 0), (2, 3))),
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


def depth_to_space(x: np.ndarray, b: int) -> np.ndarray:
    n, c, h, w = x.shape
    y = x.reshape(n, b, b, c // b**2, h, w).transpose(0, 3, 4, 1, 5, 2)
    return y.reshape(n, c // b**2, h * b, w * b)


def space_to_depth(x: np.ndarray, b: int) -> np.ndarray:
    n, c, h, w = x.shape
    y = x.reshape(n, c, h // b, b, w // b, b).transpose(0, 3, 5, 1, 2, 4)
    return y.reshape(n, c * b**2, h // b, w // b)


MORE = [
    Case("Tril", [(4, 4)], np.tril),
    Case("Tril", [(2, 3, 4)], lambda x: np.tril(x, 1), attributes={"diagonal": 1}),
    Case("TrilExt", [(3, 4)], lambda x: np.tril(x, -1), {"diagonal": -1}),
    Case("Triu", [(3, 4)], np.triu, {"diagonal": 0}),
    Case("Triu", [numbers(3, 4, high=9, dtype=I64)], lambda x: np.triu(x, 2), {"diagonal": 2}),
    Case("ZerosLike", [(2, 3)], np.zeros_like, dynamic=True),
    Case("OnesLike", [numbers(3, high=9, dtype=I32)], np.ones_like),
    Case("OnesLike", [truths(3)], np.ones_like),
    Case("ZerosLikeExt", [(2, 3), K(None)], np.zeros_like),
    Case("ZerosLikeExt", [(2, 3), K(34)], lambda x: np.zeros_like(x, I32)),
    Case("OnesLikeExt", [(2, 3), K(42)], lambda x: np.ones_like(x, F16)),
    Case("DepthToSpace", [(1, 8, 2, 3)], lambda x: depth_to_space(x, 2),
         attributes={"block_size": 2, "format": "NCHW"}),
    Case("SpaceToDepth", [(1, 2, 4, 6)], lambda x: space_to_depth(x, 2),
         attributes={"block_size": 2, "format": "NCHW"}),
]  # fmt: skip

CASES = [*RESHAPING, *ORDER, *JOINING, *CUTTING, *PADDING, *MORE]
