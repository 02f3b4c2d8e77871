"""engines/torch/kernels/detection.py, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from support.torch_nodes import assert_like_onnxruntime

RANDOM = np.random.default_rng(3)
IMAGE = RANDOM.normal(size=(2, 3, 7, 9)).astype(np.float32)
ROIS = np.array([[0, 0, 5, 6], [1.3, 2.1, 3.2, 8.7], [-2, -1, 9, 12], [4, 4, 4, 4]], np.float32)
ITEMS = np.array([0, 1, 1, 0])


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("sampling_ratio", [0, 2])
@pytest.mark.parametrize("transformation", ["half_pixel", "output_half_pixel"])
def test_regions_are_brought_to_one_size(
    mode: str, sampling_ratio: int, transformation: str
) -> None:
    assert_like_onnxruntime(
        "RoiAlign", IMAGE, ROIS, ITEMS, mode=mode, sampling_ratio=sampling_ratio,
        coordinate_transformation_mode=transformation, output_height=3, output_width=2,
        spatial_scale=0.8,
    )  # fmt: skip


@pytest.mark.parametrize("center_point_box", [0, 1])
@pytest.mark.parametrize("least", [None, 0.4])
@pytest.mark.parametrize("overlap", [0.0, 0.3, 1.0])
def test_the_best_boxes_are_kept(
    center_point_box: int, least: float | None, overlap: float
) -> None:
    boxes = RANDOM.uniform(0, 10, (2, 30, 4)).astype(np.float32)
    scores = RANDOM.uniform(0, 1, (2, 2, 30)).astype(np.float32)
    limits = [np.array([value], np.float32) for value in (overlap, *([least] if least else []))]
    assert_like_onnxruntime(
        "NonMaxSuppression", boxes, scores, [7], *limits, center_point_box=center_point_box
    )
