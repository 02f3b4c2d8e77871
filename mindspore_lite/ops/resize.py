"""Resizing of images."""

from __future__ import annotations

import numpy as np

from mindspore_lite.ops.arguments import elements
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape


def resized(t: Tape, x: Val, size: Val, **attributes: Val) -> Val:
    """ONNX Resize of the spatial axes to a size."""
    batch_and_channels = t.op("Shape", [x], end=2)
    sizes = t.op("Concat", [batch_and_channels, t.int64s(elements(t, size))], axis=0)
    return t.op("Resize", [x, None, None, sizes], **attributes)


def coordinates(align_corners: Val, half_pixel: Val) -> str:
    """How output pixels map to input pixels."""
    if align_corners:
        return "align_corners"
    return "half_pixel" if half_pixel else "asymmetric"


@op("ResizeBilinearV2", "ResizeBilinear")
def resize_bilinear(
    t: Tape, x: Val, size: Val, *, align_corners: Val = False, half_pixel_centers: Val = False
) -> Val:
    """No smoothing when shrinking."""
    mode = coordinates(align_corners, half_pixel_centers)
    return resized(t, x, size, mode="linear", coordinate_transformation_mode=mode)


@op("ResizeNearestNeighbor", "ResizeNearestNeighborV2")
def resize_nearest(
    t: Tape, x: Val, size: Val, *, align_corners: Val = False, half_pixel_centers: Val = False
) -> Val:
    """The plain form rounds down; ONNX's default does not."""
    mode = coordinates(align_corners, half_pixel_centers)
    rounding = {"align_corners": "round_prefer_ceil", "half_pixel": "round_prefer_floor"}
    return resized(
        t,
        x,
        size,
        mode="nearest",
        coordinate_transformation_mode=mode,
        nearest_mode=rounding.get(mode, "floor"),
    )


@op("UpsampleNearest2D", "UpsampleNearest1D", "UpsampleNearest3D")
def upsample_nearest(t: Tape, x: Val, size: Val = None, scales: Val = None) -> Val:
    """By a size or by factors."""
    how: dict[str, Val] = {
        "mode": "nearest",
        "coordinate_transformation_mode": "asymmetric",
        "nearest_mode": "floor",
    }
    if size is not None:
        return resized(t, x, size, **how)
    factors = np.asarray([1.0, 1.0, *scales], np.float32)
    return t.op("Resize", [x, None, factors], **how)
