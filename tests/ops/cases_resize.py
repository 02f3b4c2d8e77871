"""Rows for ops/resize.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.op_case import Case, K, S, T, numbers


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


def linear(x: np.ndarray, size: tuple[int, ...], how: str) -> np.ndarray:
    for axis, new in enumerate(size, start=2):
        x = linear_axis(x, new, axis, how)
    return x


def keys(distance: np.ndarray, a: float) -> np.ndarray:
    """The weight of a pixel at a distance."""
    d = np.abs(distance)
    near = (a + 2) * d**3 - (a + 3) * d**2 + 1
    far = a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


def cubic_axis(
    x: np.ndarray, new: int, axis: int, how: str, steps: int | None = None, a: float = -0.75
) -> np.ndarray:
    """With `steps`, distances are rounded; a = -0.5 leaves out what lies beyond the edge."""
    size = x.shape[axis]
    weights = np.zeros((new, size))
    for i, at in enumerate(places(size, new, how)):
        low = int(np.floor(at))
        share = at - low if steps is None else np.rint((at - low) * steps) / steps
        for j in range(low - 1, low + 3):
            if a == -0.5 and not 0 <= j < size:
                continue
            weights[i, min(max(j, 0), size - 1)] += keys(np.asarray(j - low - share), a)
    weights /= weights.sum(1, keepdims=True)
    moved = np.moveaxis(x, axis, -1).astype(np.float64)
    return np.moveaxis(moved @ weights.T, -1, axis)


def cubic(x: np.ndarray, size: tuple[int, ...], how: str, **more: Any) -> np.ndarray:
    found = cubic_axis(cubic_axis(x, size[0], 2, how, **more), size[1], 3, how, **more)
    return found.astype(x.dtype)


def area(x: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """The mean of a much finer image; sizes must divide 60 * length."""
    fine = np.repeat(np.repeat(x.astype(np.float64), 60, 1), 60, 2)
    for axis, new in enumerate(size, 1):
        fine = np.stack([p.mean(axis) for p in np.split(fine, new, axis)], axis)
    return fine.astype(np.float32)


def nearest(x: np.ndarray, size: tuple[int, ...], how: str = "") -> np.ndarray:
    for axis, new in enumerate(size, start=2):
        at = places(x.shape[axis], new, how)
        if how == "align_corners" or how == "half_pixel":
            at = at + 0.5  # halves go up
        index = np.clip(np.floor(at).astype(int), 0, x.shape[axis] - 1)
        x = np.take(x, index, axis)
    return x


def how(align: bool, half: bool) -> dict[str, bool]:
    return {"align_corners": align, "half_pixel_centers": half}


IMAGE = (1, 2, 4, 5)

CLASSIC = [
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

TABLE = {"steps": 1024}
I64, F64, F16 = np.int64, np.float64, np.float16


def keys_of(x: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    return cubic(x, size, "half_pixel", a=-0.5, **TABLE)


BICUBIC = [
    Case("ResizeBicubic", [IMAGE, K((9, 7))], lambda x: keys_of(x, (9, 7)), how(False, True)),
    Case("ResizeBicubic", [IMAGE, K((3, 3))], lambda x: keys_of(x, (3, 3)), how(False, True)),
    Case("ResizeBicubic", [IMAGE, K((9, 7))], lambda x: cubic(x, (9, 7), "align_corners", **TABLE),
         how(True, False)),
    Case("ResizeBicubic", [IMAGE, K((9, 7))], lambda x: cubic(x, (9, 7), "", **TABLE),
         how(False, False)),
    Case("ResizeBicubic", [numbers(1, 1, 4, 4, dtype=F64), K((6, 6))],
         lambda x: keys_of(x, (6, 6)), how(False, True)),
    # with free sizes ONNX's exact weights: 2e-3 of MindSpore's table
    Case("ResizeBicubic", [IMAGE, K((9, 7))], lambda x: keys_of(x, (9, 7)), how(False, True),
         dynamic=True, loose=20),
    Case("ResizeBicubic", [IMAGE, K((9, 7))], lambda x: cubic(x, (9, 7), "align_corners"),
         how(True, False), dynamic=True, loose=20),
    Case("UpsampleBicubic2D", [IMAGE, K((9, 7)), K(None), K(False)],
         lambda x: cubic(x, (9, 7), "half_pixel"), dynamic=True),
    Case("UpsampleBicubic2D", [IMAGE, K((9, 7)), K(None), K(True)],
         lambda x: cubic(x, (9, 7), "align_corners")),
    Case("UpsampleBicubic2D", [IMAGE, K(None), K((2.0, 3.0)), K(False)],
         lambda x: cubic(x, (8, 15), "half_pixel")),
]  # fmt: skip

LINEAR = [
    Case("ResizeLinear1D", [(1, 2, 5), K((8,))], lambda x: linear(x, (8,), "align_corners"),
         {"coordinate_transformation_mode": 1}, dynamic=True),
    Case("ResizeLinear1D", [(1, 2, 5), K((3,))], lambda x: linear(x, (3,), "half_pixel"),
         {"coordinate_transformation_mode": 2}),
    Case("ResizeLinear1D", [(1, 2, 5), K((8,))], lambda x: linear(x, (8,), "align_corners"),
         attributes={"coordinate_transformation_mode": "align_corners"}),
    Case("UpsampleLinear1D", [(1, 2, 5), K((8,)), K(None), K(False)],
         lambda x: linear(x, (8,), "half_pixel"), dynamic=True),
    Case("UpsampleBilinear2D", [IMAGE, K((8, 7)), K(None), K(True)],
         lambda x: linear(x, (8, 7), "align_corners"), dynamic=True),
    Case("UpsampleBilinear2D", [IMAGE, K(None), K((2.0, 3.0)), K(False)],
         lambda x: linear(x, (8, 15), "half_pixel"), dynamic=True),
    Case("UpsampleBilinear2D", [IMAGE, T(S(8), K(7)), K(None), K(False)],
         lambda x, _: linear(x, (8, 7), "half_pixel"), dynamic=True),
    Case("UpsampleTrilinear3D", [(1, 2, 2, 3, 2), K((4, 4, 3)), K(None)],
         lambda x: linear(x, (4, 4, 3), "half_pixel"), {"align_corners": False}, dynamic=True),
    Case("ResizeBilinearV2", [numbers(1, 2, 4, 5, dtype=F64), K((8, 7))],
         lambda x: linear(x, (8, 7), "half_pixel").astype(F64), how(False, True)),
]  # fmt: skip

LARGE = numbers(1, 2, 3, 4, low=-(2**60), high=2**60, dtype=I64)
ZEROS = np.zeros(4, np.float32)
REST = [
    Case("ResizeNearestNeighbor", [LARGE, K((5, 8))], lambda x: nearest(x, (5, 8)),
         how(False, False), dynamic=True),
    Case("ResizeNearestNeighborV2", [numbers(1, 2, 3, 4, dtype=F64), K((5, 7))],
         lambda x: nearest(x, (5, 7), "half_pixel"), how(False, True), dynamic=True),
    Case("ResizeNearestNeighborV2", [IMAGE, T(S(8), S(7))],
         lambda x, _: nearest(x, (8, 7), "align_corners"), how(True, False), dynamic=True),
    Case("DynamicResizeNearestNeighbor", [IMAGE, np.array([8, 7], np.int32)],
         lambda x, _: nearest(x, (8, 7)), attributes={"align_corners": False}),
    Case("UpsampleNearest3D", [numbers(1, 2, 2, 3, 2, dtype=F64), K(None), K((2.0, 1.5, 2.0))],
         lambda x: nearest(x, (4, 4, 4)), dynamic=True),
    Case("ResizeArea", [(1, 5, 6, 2), K(np.array([3, 4], np.int32))], lambda x: area(x, (3, 4))),
    Case("ResizeArea", [numbers(1, 4, 4, 2, low=0, high=255, dtype=np.uint8),
                        K(np.array([6, 2], np.int32))], lambda x: area(x, (6, 2))),
    Case("ResizeV2", [IMAGE, K(ZEROS), K(ZEROS), K(np.array([1, 2, 8, 7]))],
         lambda x: cubic(x, (8, 7), "align_corners"),
         attributes={"coordinate_transformation_mode": "align_corners", "mode": "cubic",
                     "cubic_coeff_a": -0.75}),
    Case("ResizeV2", [(1, 2, 1, 5), K(ZEROS), K(ZEROS), K(np.array([1, 2, 1, 8]))],
         lambda x: linear(x, (1, 8), "half_pixel"),
         attributes={"coordinate_transformation_mode": "half_pixel", "mode": "linear"},
         dynamic=True),
    Case("ResizeV2", [(1, 2, 1, 5), K(ZEROS), K(ZEROS), K(np.array([1, 2, 1, 8]))],
         lambda x: nearest(x, (1, 8)),
         attributes={"coordinate_transformation_mode": "half_pixel", "mode": "nearest"}),
]  # fmt: skip

CASES = [*CLASSIC, *BICUBIC, *LINEAR, *REST]
