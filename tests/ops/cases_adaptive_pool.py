"""Rows for ops/adaptive_pool.py."""

from __future__ import annotations

import math

import numpy as np
from support.op_case import Case, K

IMG = (2, 4, 7, 8)


def adaptive(x: np.ndarray, axis: int, size: int) -> np.ndarray:
    n = x.shape[axis]
    bins = [(i * n // size, -(-(i + 1) * n // size)) for i in range(size)]
    parts = [np.take(x, range(a, b), axis).mean(axis, keepdims=True) for a, b in bins]
    return np.concatenate(parts, axis)


ADAPTIVE = [
    Case("AdaptiveAvgPool2D", [IMG], lambda x: x.mean((2, 3), keepdims=True),
         attributes={"output_size": (1, 1)}, dynamic=True),
    Case("AdaptiveAvgPool2D", [IMG], lambda x: adaptive(adaptive(x, 2, 3), 3, 5),
         attributes={"output_size": (3, 5)}),
    Case("AdaptiveAvgPool2D", [IMG], lambda x: adaptive(x, 3, 4),
         attributes={"output_size": (-1, 4)}),
    Case("AdaptiveAvgPool2D", [(4, 7, 8)], lambda x: adaptive(adaptive(x, 1, 2), 2, 2),
         attributes={"output_size": 2}),
    Case("AdaptiveAvgPool2DExt", [IMG, K((2, None))], lambda x: adaptive(x, 2, 2)),
    Case("AdaptiveAvgPool2DExt", [IMG, K((9, 9))], lambda x: adaptive(adaptive(x, 2, 9), 3, 9)),
]  # fmt: skip

SPACE = (1, 2, 4, 5, 6)


def all_axes(x: np.ndarray, *sizes: int) -> np.ndarray:
    for axis, size in enumerate(sizes, x.ndim - len(sizes)):
        x = adaptive(x, axis, size)
    return x


AVERAGES = [
    Case("AdaptiveAvgPool1D", [(2, 3, 9), K((4,))], lambda x: adaptive(x, 2, 4), dynamic=True),
    Case("AdaptiveAvgPool1D", [(3, 9), K(3)], lambda x: adaptive(x, 1, 3)),
    Case("AdaptiveAvgPool2D", [IMG], lambda x: all_axes(x, 3, 5),
         attributes={"output_size": (3, 5)}, dynamic=True),
    Case("AdaptiveAvgPool2D", [(2, 3, 6, 8)], lambda x: all_axes(x, 3, 4),  # even bins
         attributes={"output_size": (3, 4)}),
    Case("AdaptiveAvgPool2D", [np.random.default_rng(1).random((2, 3, 6, 8))],
         lambda x: all_axes(x, 3, 4), attributes={"output_size": (3, 4)}),
    Case("AdaptiveAvgPool3D", [SPACE], lambda x: all_axes(x, 3, 2, 4),
         attributes={"output_size": (3, 2, 4)}, dynamic=True),
    Case("AdaptiveAvgPool3D", [SPACE], lambda x: x.mean((2, 3, 4), keepdims=True),
         attributes={"output_size": (1, 1, 1)}, dynamic=True),
    Case("AdaptiveAvgPool3DExt", [SPACE, K((None, 2, 3))],
         lambda x: adaptive(adaptive(x, 3, 2), 4, 3)),
]  # fmt: skip


def largest(x: np.ndarray, *sizes: int, index: type = np.int64) -> tuple[np.ndarray, np.ndarray]:
    """(largest, its first flat place in its channel)."""
    image = x.shape[2:]
    y = np.empty((*x.shape[:2], *sizes), x.dtype)
    at = np.empty(y.shape, index)
    flat = np.arange(math.prod(image)).reshape(image)
    for place in np.ndindex(*sizes):
        cut = tuple(
            slice(p * n // s, -(-(p + 1) * n // s))
            for p, n, s in zip(place, image, sizes, strict=True)
        )
        window = x[(..., *cut)].reshape(*x.shape[:2], -1)
        y[(..., *place)] = window.max(-1)
        at[(..., *place)] = flat[cut].reshape(-1)[window.argmax(-1)]
    return y, at


TIES = np.random.default_rng(2).integers(0, 3, (2, 3, 7, 8)).astype(np.float32)
LARGEST = [
    Case("AdaptiveMaxPool1D", [(2, 3, 9), K((4,))], lambda x: largest(x, 4), dynamic=True),
    Case("AdaptiveMaxPool1D", [(2, 3, 9), K((3,))], lambda x: largest(x, 3), dynamic=True),
    Case("AdaptiveMaxPool2D", [TIES], lambda x: largest(x, 3, 5), {"output_size": (3, 5)},
         dynamic=True),
    Case("AdaptiveMaxPool2D", [TIES], lambda x: largest(x, 7, 3), {"output_size": (None, 3)},
         dynamic=True),
    Case("AdaptiveMaxPool2D", [(3, 7, 8)], lambda x: tuple(v[0] for v in largest(x[None], 2, 2)),
         {"output_size": (2, 2)}),
    Case("AdaptiveMaxPool3D", [SPACE, K((3, 2, 4))],
         lambda x: largest(x, 3, 2, 4, index=np.int32), untyped=False, dynamic=True),
]  # fmt: skip

CASES = [*ADAPTIVE, *AVERAGES, *LARGEST]
