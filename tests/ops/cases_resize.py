"""Rows for ops/resize.py."""

from __future__ import annotations

import numpy as np
from support.op_case import Case, K, S, T


def places(size: int, new: int, how: str) -> np.ndarray:
    """Where the pixels of the result lie in the image, as real numbers."""
    at = np.arange(new, dtype=np.float64)
    if how == "align_corners":
        return at * (size - 1) / max(new - 1, 1)
    if how == "half_pixel":
        return (at + 0.5) * size / new - 0.5
    return at * size / new


def linear_axis(x: np.ndarray, new: int, axis: int, how: str) -> np.ndarray:
    size = x.shape[axis]
    at = np.clip(places(size, new, how), 0, size - 1)
    low = np.floor(at).astype(int)
    high = np.minimum(low + 1, size - 1)
    share = (at - low).astype(np.float32).reshape([-1 if a == axis else 1 for a in range(x.ndim)])
    return np.take(x, low, axis) * (1 - share) + np.take(x, high, axis) * share


def linear(x: np.ndarray, size: tuple[int, int], how: str) -> np.ndarray:
    return linear_axis(linear_axis(x, size[0], 2, how), size[1], 3, how)


def nearest(x: np.ndarray, size: tuple[int, ...], how: str = "") -> np.ndarray:
    for axis, new in enumerate(size, start=2):
        at = places(x.shape[axis], new, how)
        if how == "align_corners":
            at = at + 0.5  # halves go up
        elif how == "half_pixel":
            at = np.ceil(at - 0.5)  # halves go down
        index = np.clip(np.floor(at).astype(int), 0, x.shape[axis] - 1)
        x = np.take(x, index, axis)
    return x


def how(align: bool, half: bool) -> dict[str, bool]:
    return {"align_corners": align, "half_pixel_centers": half}


IMAGE = (1, 2, 4, 5)

CASES = [
    Case("ResizeBilinearV2", [IMAGE, K((8, 7))], lambda x: linear(x, (8, 7), ""),
         how(False, False)),
    Case("ResizeBilinearV2", [IMAGE, K((8, 7))], lambda x: linear(x, (8, 7), "align_corners"),
         how(True, False)),
    Case("ResizeBilinearV2", [IMAGE, K((8, 7))], lambda x: linear(x, (8, 7), "half_pixel"),
         how(False, True), dynamic=True),
    Case("ResizeBilinearV2", [IMAGE, K((2, 3))], lambda x: linear(x, (2, 3), "half_pixel"),
         how(False, True)),
    Case("ResizeBilinear", [IMAGE], lambda x: linear(x, (6, 6), ""),
         attributes={"size": (6, 6), "align_corners": False}),
    Case("ResizeBilinearV2", [IMAGE, T(S(8), K(7))], lambda x, s: linear(x, (8, 7), "half_pixel"),
         how(False, True)),
    Case("ResizeNearestNeighbor", [IMAGE, K((8, 10))], lambda x: nearest(x, (8, 10)),
         how(False, False), dynamic=True),
    Case("ResizeNearestNeighbor", [IMAGE, K((3, 7))], lambda x: nearest(x, (3, 7)),
         how(False, False)),
    Case("ResizeNearestNeighbor", [IMAGE, K((7, 9))], lambda x: nearest(x, (7, 9), "align_corners"),
         how(True, False)),
    Case("ResizeNearestNeighborV2", [IMAGE, K((8, 10))], lambda x: nearest(x, (8, 10)),
         how(False, False)),
    Case("ResizeNearestNeighborV2", [IMAGE, K((3, 10))],
         lambda x: nearest(x, (3, 10), "half_pixel"), how(False, True)),
    Case("UpsampleNearest1D", [(1, 2, 5), K((10,)), K(None)], lambda x: nearest(x, (10,))),
    Case("UpsampleNearest2D", [IMAGE, K((8, 10)), K(None)], lambda x: nearest(x, (8, 10))),
    Case("UpsampleNearest2D", [IMAGE, K(None), K((2.0, 3.0))], lambda x: nearest(x, (8, 15))),
    Case("UpsampleNearest3D", [(1, 2, 2, 3, 2), K((4, 3, 4)), K(None)],
         lambda x: nearest(x, (4, 3, 4))),
]  # fmt: skip
