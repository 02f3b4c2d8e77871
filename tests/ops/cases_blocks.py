"""Rows for ops/blocks.py."""

from __future__ import annotations

import numpy as np
from support.op_case import Case, K, numbers

F16, F32, F64 = np.float16, np.float32, np.float64
I8, I16, I32, I64 = np.int8, np.int16, np.int32, np.int64


def depth_to_space(x: np.ndarray, b: int) -> np.ndarray:
    n, c, h, w = x.shape
    y = x.reshape(n, b, b, c // b**2, h, w).transpose(0, 3, 4, 1, 5, 2)
    return y.reshape(n, c // b**2, h * b, w * b)


def space_to_depth(x: np.ndarray, b: int) -> np.ndarray:
    n, c, h, w = x.shape
    y = x.reshape(n, c, h // b, b, w // b, b).transpose(0, 3, 5, 1, 2, 4)
    return y.reshape(n, c * b**2, h // b, w // b)


DEPTH = [
    Case("DepthToSpace", [(1, 8, 2, 3)], lambda x: depth_to_space(x, 2),
         attributes={"block_size": 2, "format": "NCHW"}),
    Case("SpaceToDepth", [(1, 2, 4, 6)], lambda x: space_to_depth(x, 2),
         attributes={"block_size": 2, "format": "NCHW"}),
]  # fmt: skip


def nhwc(x: np.ndarray) -> np.ndarray:
    return x.transpose(0, 2, 3, 1)


def space_to_batch(x: np.ndarray, b: tuple[int, int]) -> np.ndarray:
    n, c, h, w = x.shape
    y = x.reshape(n, c, h // b[0], b[0], w // b[1], b[1]).transpose(3, 5, 0, 1, 2, 4)
    return y.reshape(-1, c, h // b[0], w // b[1])


def batch_to_space(x: np.ndarray, b: tuple[int, int]) -> np.ndarray:
    _, c, h, w = x.shape
    y = x.reshape(*b, -1, c, h, w).transpose(2, 3, 4, 0, 5, 1)
    return y.reshape(-1, c, h * b[0], w * b[1])


def pixel_shuffle(x: np.ndarray, r: int) -> np.ndarray:
    *lead, c, h, w = x.shape
    y = x.reshape(-1, c // r**2, r, r, h, w).transpose(0, 1, 4, 2, 5, 3)
    return y.reshape(*lead, c // r**2, h * r, w * r)


MORE = [
    Case("DepthToSpace", [(1, 2, 3, 8)],
         lambda x: nhwc(depth_to_space(x.transpose(0, 3, 1, 2), 2)), {"block_size": 2,
                                                                     "data_format": 1}),
    Case("SpaceToDepth", [numbers(1, 2, 4, 6, high=9, dtype=I32)], lambda x: space_to_depth(x, 2),
         attributes={"block_size": 2}),
    Case("PixelShuffle", [(1, 8, 2, 3), K(2)], lambda x: pixel_shuffle(x, 2), dynamic=True),
    Case("PixelShuffle", [(8, 2, 3), K(2)], lambda x: pixel_shuffle(x, 2)),
    Case("PixelShuffle", [(2, 3, 4, 2, 3), K(2)], lambda x: pixel_shuffle(x, 2), dynamic=True),
    Case("ChannelShuffle", [(1, 6, 2, 2)],
         lambda x: x.reshape(1, 2, 3, 2, 2).swapaxes(1, 2).reshape(x.shape),
         attributes={"group": 2}, dynamic=True),
    Case("SpaceToBatchND", [(2, 1, 4, 3)],
         lambda x: space_to_batch(np.pad(x, ((0, 0), (0, 0), (0, 0), (1, 2))), (2, 3)),
         attributes={"block_shape": [2, 3], "paddings": [[0, 0], [1, 2]]}, dynamic=True),
    Case("SpaceToBatch", [(1, 2, 4, 2)], lambda x: space_to_batch(x, (2, 2)),
         attributes={"block_size": 2, "paddings": ((0, 0), (0, 0))}),
    Case("BatchToSpaceND", [(12, 1, 2, 2)],
         lambda x: batch_to_space(x, (2, 3))[:, :, 1:, :-2],
         attributes={"block_shape": [2, 3], "crops": [[1, 0], [0, 2]]}, dynamic=True),
    Case("BatchToSpace", [(4, 2, 2, 1)], lambda x: batch_to_space(x, (2, 2)),
         attributes={"block_size": 2, "crops": ((0, 0), (0, 0))}),
    Case("BatchToSpaceNDV2", [(4, 2, 2, 1), K(np.array([2, 2], I64)),
                              K(np.array([[0, 1], [0, 0]], I64))],
         lambda x: batch_to_space(x, (2, 2))[:, :, :-1]),
]  # fmt: skip

CASES = [*DEPTH, *MORE]
