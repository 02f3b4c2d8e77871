"""kernels/conv.py, conv_transpose.py and pool.py: where windows lie, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.torch_kernels import assert_as_onnxruntime, f32, lowered, one_node, whole

from mindspore_lite.errors import UnsupportedOpError

UNEVEN = {"pads": [1, 0, 0, 2]}
CASES: dict[str, tuple[str, list[np.ndarray], dict[str, Any]]] = {
    "pads that differ": ("Conv", [f32(1, 2, 5, 6), f32(3, 2, 3, 3), f32(3)], UNEVEN),
    "three dims, dilated": (
        "Conv", [f32(1, 2, 5, 6, 7), f32(2, 1, 2, 3, 2)],
        {"group": 2, "dilations": [1, 2, 2], "pads": [0, 1, 2, 1, 1, 0]},
    ),
    "one dim, same": ("Conv", [f32(2, 2, 7), f32(1, 2, 4)], {"auto_pad": "SAME_LOWER"}),
    "backwards, pads that differ": (
        "ConvTranspose", [f32(1, 2, 4, 5), f32(2, 3, 3, 3), f32(3)], UNEVEN,
    ),
    "backwards, more at the end": (
        "ConvTranspose", [f32(1, 4, 3, 4), f32(4, 1, 2, 3), f32(2)],
        {"strides": [2, 3], "output_padding": [1, 2], "group": 2},
    ),
    "backwards, a shape asked for": (
        "ConvTranspose", [f32(1, 1, 3, 3), f32(1, 2, 3, 3)],
        {"strides": [2, 2], "output_shape": [6, 7]},
    ),
    "backwards, dilated": (
        "ConvTranspose", [f32(1, 2, 4, 3, 3), f32(2, 1, 2, 2, 2)],
        {"dilations": [2, 1, 2], "strides": [1, 2, 1], "pads": [1, 0, 1, 1, 1, 0]},
    ),
    "means without uneven pads": (
        "AveragePool", [f32(1, 2, 5, 6)], {"kernel_shape": [3, 3], "pads": [0, 2, 1, 1]},
    ),
    "means with uneven pads, dilated": (
        "AveragePool", [f32(1, 2, 6, 6)],
        {"kernel_shape": [3, 2], "pads": [0, 1, 2, 0], "dilations": [2, 1], "count_include_pad": 1,
         "ceil_mode": 1, "strides": [2, 2]},
    ),
    "means in three dims of halves": (
        "AveragePool", [f32(1, 2, 4, 4, 4).astype(np.float16)], {"kernel_shape": [2, 2, 2]},
    ),
    "norms": (
        "LpPool", [f32(1, 2, 7)], {"kernel_shape": [3], "p": 3, "pads": [2, 1], "ceil_mode": 1},
    ),
    "bytes": ("MaxPool", [whole(-128, 127, np.int8, 1, 2, 5, 5)], {"kernel_shape": [3, 2]}),
    "regions": (
        "MaxRoiPool",
        [f32(2, 3, 8, 9), np.array([[0, 0, 1, 7, 7], [1, 3, 2, 9, 14], [1, 4, 4, 4, 4]], "f")],
        {"pooled_shape": [3, 2], "spatial_scale": 0.5},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_windows_lie_where_onnxruntime_has_them(name: str) -> None:
    op_type, inputs, attributes = CASES[name]
    assert_as_onnxruntime(op_type, inputs, **attributes)


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_places_of_the_largest_count_from_the_start_of_the_tensor(rank: int, order: int) -> None:
    attributes = {
        "kernel_shape": [3, 2, 2][:rank],
        "strides": [2, 1, 2][:rank],
        "pads": [2, 0, 1][:rank] + [0, 1, 1][:rank],
        "ceil_mode": 1,
    }
    x = f32(2, 2, *(5, 6, 4)[:rank])
    assert_as_onnxruntime("MaxPool", [x], outputs=2, storage_order=order, **attributes)


def test_four_dims_are_refused_with_their_number() -> None:
    x = np.zeros((1, 1, 3, 3, 3, 3), np.float32)
    for op_type in ("Conv", "ConvTranspose"):
        with pytest.raises(UnsupportedOpError, match=r"over 4 spatial dims.* has 1 to 3"):
            lowered(one_node(op_type, [x, x]))


def test_weights_of_convolutions_lie_channels_last_on_a_card() -> None:
    model = one_node("Conv", [f32(1, 3, 8, 8), f32(4, 3, 3, 3), f32(4)], constant=(1, 2))
    weights = lowered(model, "cuda").weights.values()
    assert {w.name: w.layout for w in weights} == {"x1": "channels_last", "x2": ""}
