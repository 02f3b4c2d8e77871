"""ONNX operators that sample images or choose regions, as MindSpore primitives."""

from __future__ import annotations

from typing import Any

import numpy as np

from mindspore_lite.ops.to_mindir.table import back
from mindspore_lite.ops.to_mindir.writer import Made, MindirWriter, Operand

_LINEAR = 0
_GRID_EDGES = {"zeros": 0, "border": 1, "reflection": 2}


@back("GridSample")
def grid_sample(
    p: MindirWriter,
    x: Operand,
    grid: Operand,
    *,
    align_corners: int = 0,
    mode: str = "linear",
    padding_mode: str = "zeros",
) -> Made:
    """At places between -1 and 1."""
    p.require(x.rank in (4, 5), f"{x.rank} dims")
    p.require(x.dtype == grid.dtype, "a grid of another type")
    # between two pixels MindSpore's nearest one is another, and its cubic kernel is broken
    p.require(mode == "linear", f"mode {mode}")
    primitive = f"GridSampler{x.rank - 2}D"
    return p.call(primitive, x, grid, _LINEAR, _GRID_EDGES[padding_mode], bool(align_corners))


@back("AffineGrid")
def affine_grid(p: MindirWriter, theta: Operand, size: Operand, *, align_corners: int = 0) -> Made:
    """The places that a matrix for each image makes of a size."""
    sizes = size.numbers()
    # ONNX puts a lone aligned pixel at -1, MindSpore at 0
    p.require(not align_corners or min(sizes[2:]) > 1, "a single pixel with align_corners")
    return p.call("AffineGrid", theta, tuple(sizes), align_corners=bool(align_corners))


@back("RoiAlign")
def roi_align(
    p: MindirWriter,
    x: Operand,
    rois: Operand,
    batch_indices: Operand,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Made:
    """Regions by their means; MindSpore has the image's number before each region."""
    p.require(mode == "avg", f"mode {mode}")
    p.require(sampling_ratio > 0, "as many samples as a region has pixels")
    corners: Any = rois
    shifted = coordinate_transformation_mode == "half_pixel"
    if shifted:  # regions that end with their last pixel are moved by a half as well
        half = 0.5 / spatial_scale
        moved = np.asarray([half, half, half + 1, half + 1], rois.dtype)
        corners = p.call("Sub", rois, moved)
    which = p.call("ExpandDims", p.cast(batch_indices, rois.dtype), 1)
    return p.call(
        "ROIAlign",
        x,
        p.call("Concat", p.tuple([which, corners]), 1),
        pooled_height=output_height,
        pooled_width=output_width,
        spatial_scale=spatial_scale,
        sample_num=sampling_ratio,
        roi_end_mode=int(shifted),
    )


@back("NonMaxSuppression")
def non_max_suppression(
    p: MindirWriter,
    boxes: Operand,
    scores: Operand,
    most: Operand | None = None,
    overlap: Operand | None = None,
    least: Operand | None = None,
    *,
    center_point_box: int = 0,
) -> Made:
    """The boxes of one class in one image."""
    p.require(scores.shape[:2] == (1, 1), "several images or classes")
    p.require(not center_point_box, "boxes by their centres")
    p.require(most is not None, "no largest number of boxes")
    assert most is not None
    zero, lowest = np.zeros((), np.float32), np.asarray(-3e38, np.float32)
    kept = p.call(
        "NonMaxSuppressionV3",
        p.call("Squeeze", boxes, (0,)),
        p.call("Squeeze", scores, (0, 1)),
        p.call("Reshape", p.cast(most, np.int32), ()),
        zero if overlap is None else p.call("Reshape", overlap, ()),
        lowest if least is None else p.call("Reshape", least, ()),
    )
    rows = p.call("ExpandDims", p.cast(kept, np.int64), 1)
    none = p.call("ZerosLike", rows)
    return p.call("Concat", p.tuple([none, none, rows]), 1)
