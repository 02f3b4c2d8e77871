"""engines/torch/kernels/resize.py, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.torch_kernels import assert_as_onnxruntime, f32, lowered, one_node

MODES = [
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
]


def resize(x: np.ndarray, scales: list[float], sizes: list[int], **attributes: Any) -> None:
    """Compare a Resize by scales or by sizes."""
    settings = [np.array(scales, np.float32), np.array(sizes, np.int64)]
    inputs = [x, None, settings[0] if scales else None, *([settings[1]] if sizes else [])]
    assert_as_onnxruntime("Resize", inputs, constant=[len(inputs) - 1], **attributes)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["nearest", "linear", "cubic"])
def test_coordinates_are_those_of_onnxruntime(kind: str, mode: str) -> None:
    x = f32(1, 2, 5, 7)
    how = {"mode": kind, "coordinate_transformation_mode": mode}
    for scales in ([1, 1, 2, 3], [1, 1, 0.6, 1.4]):
        resize(x, scales, [], **how)
    resize(x, [], [1, 2, 8, 3], **how)


@pytest.mark.parametrize("round_", ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
def test_the_nearest_is_found_by_every_rule(round_: str) -> None:
    mode = "asymmetric"
    how = {"mode": "nearest", "nearest_mode": round_, "coordinate_transformation_mode": mode}
    resize(f32(1, 1, 6, 4), [1, 1, 0.5, 2], [], **how)
    resize(f32(2, 5), [1, 2.5], [], **how)


@pytest.mark.parametrize("kind", ["linear", "cubic"])
def test_a_smaller_image_can_see_all_of_the_larger(kind: str) -> None:
    resize(f32(1, 2, 12, 9), [], [1, 2, 5, 4], mode=kind, antialias=1)


def test_what_lies_outside_counts_nothing_where_that_is_asked_for() -> None:
    resize(f32(1, 2, 6, 5), [1, 1, 0.8, 2], [], mode="cubic", exclude_outside=1, cubic_coeff_a=-0.5)


def test_volumes_and_bytes_are_resized() -> None:
    resize(f32(1, 2, 3, 4, 5), [1, 1, 2, 1.5, 0.5], [], mode="linear")
    resize((f32(1, 1, 4, 4) * 50).astype(np.int8), [1, 1, 2, 2], [], mode="nearest")


def test_a_part_is_cut_out_and_what_it_lacks_is_filled() -> None:
    region = np.array([0, 0, 0.2, 0.4, 1, 1, 0.9, 1.3], np.float32)
    sizes = np.array([1, 2, 6, 8], np.int64)
    inputs = [f32(1, 2, 5, 7), region, None, sizes]
    for kind in ("nearest", "linear"):
        assert_as_onnxruntime(
            "Resize",
            inputs,
            constant=[1, 3],
            mode=kind,
            coordinate_transformation_mode="tf_crop_and_resize",
            extrapolation_value=9.5,
        )


def test_sizes_of_scales_are_rounded_as_float32_has_them() -> None:
    resize(f32(1, 10), [1, 0.7], [], mode="nearest")  # 6.9999999 in float64


def test_tables_are_weights_of_the_graph() -> None:
    inputs = [f32(1, 2, 5, 7), None, np.array([1, 1, 0.6, 1.4], np.float32)]
    by_table = lowered(one_node("Resize", inputs, [2], mode="linear"))
    assert sum(".table" in weight.name for weight in by_table.weights.values()) == 4
    inputs[2] = np.array([1, 1, 2, 2], np.float32)
    assert lowered(one_node("Resize", inputs, [2], mode="linear")).weights == {}  # torch's own
