"""Rows for ops/patches.py."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from ops.windows import patches, same_pads
from support.op_case import Case, K, numbers

X, INTS = (2, 3, 5, 6), numbers(1, 8, 4, 6, low=-9, high=9, dtype=np.int32)
NONE2 = ((0, 0), (0, 0))


def columns(
    x: np.ndarray, kernel: Any, stride: Any = (1, 1), dilation: Any = (1, 1), pads: Any = NONE2
) -> np.ndarray:
    """[N, C, kernel, windows]."""
    cut, counts = patches(x, kernel, stride, dilation, pads, 0, False)
    cut = np.moveaxis(cut, (-2, -1), (2, 3))
    return cut.reshape(*x.shape[:2], math.prod(kernel), math.prod(counts))


def image(x: np.ndarray, size: Any, kernel: Any, stride: Any, dilation: Any, pad: Any) -> Any:
    """Adds up windows [N, C, kernel, windows]."""
    n, c = x.shape[:2]
    y = np.zeros((n, c, size[0] + 2 * pad[0], size[1] + 2 * pad[1]), x.dtype)
    axes = zip(y.shape[2:], kernel, stride, dilation, strict=True)
    counts = [(s - d * (k - 1) - 1) // t + 1 for s, k, t, d in axes]
    parts = x.reshape(n, c, *kernel, *counts)
    for p, q, i, j in np.ndindex(*kernel, *counts):
        row, column = i * stride[0] + p * dilation[0], j * stride[1] + q * dilation[1]
        y[:, :, row, column] += parts[:, :, p, q, i, j]
    return y[:, :, pad[0] : pad[0] + size[0], pad[1] : pad[1] + size[1]]


WINDOWS = [
    Case("Im2Col", [X], lambda x: columns(x, (2, 3)), attributes={"ksizes": (2, 3)}, dynamic=True),
    Case("Im2Col", [X], lambda x: columns(x, (2, 3), (2, 1), (1, 2), ((1, 1), (0, 0))),
         attributes={"ksizes": (2, 3), "strides": (2, 1), "dilations": (1, 2), "pads": (1, 0)},
         dynamic=True),
    Case("Im2Col", [INTS], lambda x: columns(x, (2, 2), pads=((1, 1), (1, 1))),
         attributes={"ksizes": (2, 2), "pads": (1,)}),
    Case("Im2ColExt", [X, K((2, 3)), K((1, 2)), K((1, 0)), K((2, 1))],
         lambda x: columns(x, (2, 3), (2, 1), (1, 2), ((1, 1), (0, 0))).reshape(2, 18, -1),
         dynamic=True),
    Case("Im2ColExt", [(3, 5, 6), K(2), K(1), K(0), K(1)],
         lambda x: columns(x[None], (2, 2)).reshape(12, -1)),
    Case("Col2Im", [(2, 3, 4, 12), K(np.array([4, 5], np.int32))],
         lambda x: image(x, (4, 5), (2, 2), (1, 1), (1, 1), (0, 0)),
         attributes={"kernel_size": (2, 2), "stride": (1, 1), "dilation": (1, 1),
                     "padding": (0, 0)}, dynamic=True),
    Case("Col2Im", [(1, 2, 6, 9), K((5, 6))],
         lambda x: image(x, (5, 6), (2, 3), (2, 2), (2, 1), (1, 1)),
         attributes={"kernel_size": (2, 3), "stride": (2, 2), "dilation": (2, 1),
                     "padding": (1, 1)}),
    Case("Col2Im", [numbers(1, 2, 4, 4, dtype=np.float64), np.array([4, 4], np.int32)],
         lambda x, _: image(x, (4, 4), (2, 2), (2, 2), (1, 1), (0, 0)),
         attributes={"kernel_size": (2, 2), "stride": (2, 2)}),
    Case("Col2ImExt", [(2, 12, 12), K((4, 5)), K((2, 2)), K((1, 1)), K((0, 0)), K((1, 1))],
         lambda x: image(x.reshape(2, 3, 4, 12), (4, 5), (2, 2), (1, 1), (1, 1), (0, 0)),
         dynamic=True),
    Case("Col2ImExt", [(12, 12), K((4, 5)), K(2), K(1), K(0), K(1)],
         lambda x: image(x.reshape(1, 3, 4, 12), (4, 5), (2, 2), (1, 1), (1, 1), (0, 0))[0]),
]  # fmt: skip


def laid_out(x: np.ndarray, kernel: Any, stride: Any, rate: Any, same: bool) -> np.ndarray:
    """[N, kernel * C, windows...]."""
    pads = same_pads(x.shape[2:], kernel, stride, rate) if same else ((0, 0),) * len(kernel)
    cut, counts = patches(x, kernel, stride, rate, pads, 0, False)
    dims = len(kernel)
    order = [0, *range(2 + dims, 2 + 2 * dims), 1, *range(2, 2 + dims)]
    return cut.transpose(order).reshape(x.shape[0], -1, *counts)


LAID = [
    Case("ExtractImagePatches", [X], lambda x: laid_out(x, (2, 3), (2, 1), (1, 2), False),
         {"ksizes": (1, 1, 2, 3), "strides": (1, 1, 2, 1), "rates": (1, 1, 1, 2), "padding": 2},
         dynamic=True),
    Case("ExtractImagePatches", [X], lambda x: laid_out(x, (3, 2), (2, 2), (1, 1), True),
         {"ksizes": (1, 1, 3, 2), "strides": (1, 1, 2, 2), "rates": (1, 1, 1, 1), "padding": 1},
         dynamic=True),
    Case("ExtractVolumePatches", [(1, 2, 3, 4, 5)],
         lambda x: laid_out(x, (2, 3, 2), (1, 2, 1), (1, 1, 1), True),
         attributes={"kernel_size": (1, 1, 2, 3, 2), "strides": (1, 1, 1, 2, 1),
                     "padding": "SAME"}, dynamic=True),
]  # fmt: skip


def to_space(x: np.ndarray, r: int) -> np.ndarray:
    n, c, h, w = x.shape
    y = x.reshape(n, r, r, c // r // r, h, w).transpose(0, 3, 4, 1, 5, 2)
    return y.reshape(n, c // r // r, h * r, w * r)


def to_depth(x: np.ndarray, r: int) -> np.ndarray:
    n, c, h, w = x.shape
    y = x.reshape(n, c, h // r, r, w // r, r).transpose(0, 3, 5, 1, 2, 4)
    return y.reshape(n, c * r * r, h // r, w // r)


def shuffled(x: np.ndarray, r: int) -> np.ndarray:
    *n, c, h, w = x.shape
    y = np.empty((*n, c // r // r, h * r, w * r), x.dtype)
    for i, j in np.ndindex(r, r):
        y[..., i::r, j::r] = x[..., i * r + j :: r * r, :, :]
    return y


def to_batch(x: np.ndarray, block: Any, pads: Any) -> np.ndarray:
    padded = np.pad(x, [(0, 0)] * (x.ndim - 2) + list(pads))
    parts = [padded[..., i :: block[0], j :: block[1]] for i, j in np.ndindex(*block)]
    return np.concatenate(parts)


def from_batch(x: np.ndarray, block: Any, crops: Any, first: int = 2) -> np.ndarray:
    n = x.shape[0] // math.prod(block)
    x = np.moveaxis(x, (first, first + 1), (-2, -1))
    y = np.empty((n, *x.shape[1:-2], x.shape[-2] * block[0], x.shape[-1] * block[1]), x.dtype)
    for k, (i, j) in enumerate(np.ndindex(*block)):
        y[..., i :: block[0], j :: block[1]] = x[k * n : k * n + n]
    (a, b), (c, d) = crops
    y = y[..., a : y.shape[-2] - b, c : y.shape[-1] - d]
    return np.moveaxis(y, (-2, -1), (first, first + 1))


SHIFTS = ((1, 0), (0, 1))
BLOCKS = [
    Case("DepthToSpace", [INTS], lambda x: to_space(x, 2), attributes={"block_size": 2},
         dynamic=True),
    Case("DepthToSpace", [numbers(1, 8, 2, 3, dtype=np.float16)], lambda x: to_space(x, 2),
         attributes={"block_size": 2}),
    Case("DepthToSpace", [(1, 2, 3, 8)],
         lambda x: to_space(x.transpose(0, 3, 1, 2), 2).transpose(0, 2, 3, 1),
         attributes={"block_size": 2, "format": "NHWC"}),
    Case("SpaceToDepth", [INTS], lambda x: to_depth(x, 2), attributes={"block_size": 2},
         dynamic=True),
    Case("PixelShuffle", [(1, 8, 2, 3), K(2)], lambda x: shuffled(x, 2), dynamic=True),
    Case("PixelShuffle", [(2, 1, 8, 2, 3), K(2)], lambda x: shuffled(x, 2)),
    Case("PixelShuffle", [(9, 2, 3), K(3)], lambda x: shuffled(x, 3), dynamic=True),
    Case("ChannelShuffle", [(2, 6, 2, 3)],
         lambda x: x.reshape(2, 3, 2, 2, 3).swapaxes(1, 2).reshape(x.shape),
         attributes={"group": 3}, dynamic=True),
    Case("SpaceToBatchND", [(2, 3, 5, 6)], lambda x: to_batch(x, (2, 3), ((1, 0), (0, 3))),
         attributes={"block_shape": (2, 3), "paddings": ((1, 0), (0, 3))}, dynamic=True),
    Case("SpaceToBatchND", [INTS], lambda x: to_batch(x, (2, 2), NONE2),
         attributes={"block_shape": (2, 2), "paddings": NONE2}),
    Case("SpaceToBatch", [(1, 2, 4, 4)], lambda x: to_batch(x, (2, 2), ((1, 1), (0, 2))),
         attributes={"block_size": 2, "paddings": ((1, 1), (0, 2))}),
    Case("BatchToSpaceND", [(8, 2, 3, 2)], lambda x: from_batch(x, (2, 2), SHIFTS),
         attributes={"block_shape": (2, 2), "crops": SHIFTS}, dynamic=True),
    Case("BatchToSpaceND", [(12, 2, 3, 2)], lambda x: from_batch(x, (2, 3), NONE2),
         attributes={"block_shape": (2, 3), "crops": NONE2}),
    Case("BatchToSpace", [(8, 2, 3, 2)], lambda x: from_batch(x, (2, 2), SHIFTS),
         attributes={"block_size": 2, "crops": SHIFTS}),
    Case("BatchToSpaceNDV2", [(8, 3, 2, 2), K(np.array([2, 2], np.int32)),
                              K(np.array(SHIFTS, np.int32))],
         lambda x: from_batch(x, (2, 2), SHIFTS, 1), dynamic=True),
]  # fmt: skip

CASES = [*WINDOWS, *LAID, *BLOCKS]
