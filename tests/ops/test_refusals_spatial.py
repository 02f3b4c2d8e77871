"""What the ops over images refuse, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from support.mindir_builder import Net
from support.op_case import K
from support.refusal import Row, assert_refused, named

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.graph.from_mindir import from_mindir

POOL = {"kernel_size": (1, 1, 2, 2), "strides": (1, 1, 2, 2)}
BOXES = [(2, 5, 6, 2), (1, 4), np.zeros(1, np.int32), K((3, 3))]
ROI = {"pooled_height": 2, "pooled_width": 2, "spatial_scale": 1.0}
DEFORM = {"strides": (1, 1, 1, 1), "pads": (0, 0, 0, 0), "ksize": (2, 2)}
UNPOOL = {"ksize": (1, 1, 2, 2), "strides": (1, 1, 2, 2), "format": "NHWC"}

ROWS: list[Row] = [
    ("AvgPool", [(1, 1, 4, 4)], {**POOL, "pad_mode": "pad"}, "pad_mode 'pad' without pads"),
    ("Conv2D", [(1, 1, 4, 4), (1, 1, 2, 2)], {"stride": (1, 1, 1)}, "stride has 3 numbers"),
    ("Im2Col", [(1, 1, 4, 4)], {"ksizes": (2, 2), "pads": (1, -1000)}, "negative pads"),
    ("Conv2D", [np.zeros((1, 1, 4, 4), np.int8), np.zeros((1, 1, 2, 2), np.int8)], {},
     "Conv2D of int8"),
    ("ResizeBilinear", [np.zeros((1, 1, 4, 4), np.uint8)], {"size": (2, 2)}, "of uint8"),
    ("Conv2DPadding", [(1, 1, 4, 4), (1, 1, 2, 2), K(None), K(1), K(0)], {}, "padding 0"),
    ("ConvolutionStr", [(1, 1, 4, 4), (1, 1, 2, 2), K(None), K(1), K(1), K(1), K(True)], {},
     "transposed direction"),
    ("MaxPoolWithArgmax", [(1, 4, 4, 1)], {**POOL, "format": "NHWC"}, "in NHWC"),
    ("MaxUnpool2D", [(1, 2, 2, 1), np.zeros((1, 2, 2, 1), np.int64)], UNPOOL, "in NHWC"),
    ("DeformableOffsets", [(1, 4, 4, 2), (1, 3, 3, 12)], {**DEFORM, "format": "NHWC"}, "in NHWC"),
    ("DeformableOffsets", [(1, 2, 4, 4), (1, 12, 3, 3)], {**DEFORM, "ksize": (2, 2**31)}, "places"),
    ("CropAndResize", BOXES, {"method": "bilinear_v2"}, "by 'bilinear_v2'"),
    ("ROIAlign", [(1, 1, 4, 4), (1, 5)], {**ROI, "sample_num": 0}, "sample_num 0"),
    ("BatchToSpaceNDV2", [(4, 2, 2, 1), np.zeros(2, np.int32), np.zeros((2, 2), np.int32)], {},
     "must be constant"),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_an_option_that_is_not_implemented_is_refused_in_words(row: Row) -> None:
    assert_refused(row)


FREE = (-1, -1, -1, -1)


@pytest.mark.parametrize(
    ("primitive", "shapes", "arguments", "words"),
    [
        ("ResizeArea", [FREE], ((2, 2),), "needs a fixed size"),
        ("DepthwiseConv2dNative", [FREE, FREE], (), "channels must be known"),
        ("Conv2DTranspose", [FREE, FREE], ((1, 1, 4, 4),), "weight must have a fixed shape"),
        ("CombinedNonMaxSuppression", [FREE, (-1, -1, -1)], (3, 4, 0.5, 0.5), "share boxes"),
    ],
)
def test_what_must_be_known_is_named_when_it_is_free(
    primitive: str, shapes: Sequence[Any], arguments: Sequence[Any], words: str
) -> None:
    net = Net()
    inputs = [net.input(f"x{i}", shape) for i, shape in enumerate(shapes)]
    made = net.call(primitive, *inputs, *(net.constant(a) for a in arguments))
    with pytest.raises(UnsupportedOpError, match=words):
        from_mindir(net.model(made))


HUGE = 2**27


@pytest.mark.parametrize(
    ("primitive", "shape", "arguments", "attributes", "words"),
    [
        ("ResizeBicubic", (1, 1, 2, 2), ((HUGE, 2), False, True), {}, "weights of a resize"),
        ("ResizeBicubic", (1, 1, 1, 1), ((2**23, 2), False, True), {}, "weights of a resize"),
        ("ResizeNearestNeighbor", (1, 1, 3, 2), ((HUGE, 2), False, False), {}, "pixels of one"),
        ("AffineGrid", (1, 2, 3), ((1, 1, HUGE, 2),), {}, "numbers in a grid"),
        ("AdaptiveMaxPool2D", (1, 1, 3, 2), ((HUGE, 2),), {}, "bins of an adaptive"),
        ("Im2Col", (1, 1, 3, 2), (), {"ksizes": (HUGE, HUGE)}, "places in a window"),
    ],
)
def test_absurd_sizes_are_refused_before_any_work(
    primitive: str,
    shape: tuple[int, ...],
    arguments: Sequence[Any],
    attributes: Mapping[str, Any],
    words: str,
) -> None:
    net = Net()
    constants = [net.constant(a) for a in arguments]
    made = net.call(primitive, net.input("x", shape), *constants, **attributes)
    with pytest.raises(UnsupportedOpError, match=words):
        from_mindir(net.model(made))


def test_the_mask_of_a_masked_pool_cannot_be_used() -> None:
    net = Net()
    arguments = ((2, 2), None, (0, 0), (1, 1), False, 35)
    pooled = net.call(
        "MaxPoolWithMask", net.input("x", (1, 1, 4, 4)), *map(net.constant, arguments)
    )
    mask = net.call("TupleGetItem", pooled, net.constant(1))
    with pytest.raises(UnsupportedOpError, match="cannot be used as a tensor"):
        from_mindir(net.model(net.call("Neg", mask)))
