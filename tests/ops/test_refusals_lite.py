"""What the ops of converter_lite refuse, in words."""

from __future__ import annotations

import numpy as np
import pytest
from support.op_case import K, W, numbers
from support.refusal import Row, assert_refused, named

I32 = np.int32
QUANT = {"src_t": 43, "dst_t": 32}

ROWS: list[Row] = [
    ("Activation", [(2, 4)], {"activation_type": 21}, "activation type 21 is not supported"),
    ("Activation", [(2, 4)], {"activation_type": 24}, "activation type 24 is not supported"),
    ("AddFusion", [(2, 4), (2, 4)], {"activation_type": 5}, "activation type 5"),
    ("Eltwise", [(2, 4), (2, 4)], {"mode": 3}, "mode 3"),
    ("PadFusion", [(2, 4), K(np.array([[0, 0], [-9, 1]]))], {}, "negative paddings"),
    ("ReduceFusion", [(2, 4)], {"mode": 12}, "mode 12"),
    ("ReduceFusion", [(2, 4), np.array([1], I32)], {"mode": 0}, "computed at run time"),
    ("ExpFusion", [(2, 4)], {"base": -2.0}, "base -2.0"),
    ("Conv2DFusion", [(1, 4, 4, 3), W(numbers(2, 3, 3, 3))], {"format": 2}, "format 2"),
    ("MaxPoolFusion", [(1, 4, 4, 3)], {"pad_mode": 3, "format": 1}, "pad_mode 3"),
    ("Resize", [(1, 4, 4, 3)], {"method": 3, "new_height": 2, "new_width": 2}, "method 3"),
    ("Resize", [(1, 4, 4, 3)], {"coordinate_transform_mode": 3}, "coordinates 3"),
    ("Resize", [(1, 4, 4, 3)], {"format": 1}, "Resize without a size"),
    ("Resize", [(1, 4, 4, 3)], {"preserve_aspect_ratio": True}, "preserve_aspect_ratio"),
    ("Resize", [(1, 4, 4, 3), K(np.array([1, 2, 3], I32))], {}, "size of 3 numbers"),
    ("PadFusion", [(2, 4), K(np.zeros((2, 2), I32))], {"padding_mode": 9}, "mode 9"),
    ("PadFusion", [(2, 4), np.zeros((2, 2), I32)], {"padding_mode": 2}, "mode 2"),
    ("TileFusion", [(2, 4), K(np.array([2], I32))], {}, "2 axes with 1 repeats"),
    ("LpNormalization", [(2, 4)], {"p": 3}, "order 3"),
    ("EmbeddingLookupFusion", [(2, 4), K(np.array([1], I32))], {"max_norm": 1.0}, "max_norm"),
    ("DetectionPostProcess", [(1, 4, 4), (1, 4, 3), (4, 4)],
     {"scale": [1.0] * 4, "nms_iou_threshold": 0.5, "nms_score_threshold": 0.5,
      "max_detections": 2**20, "num_classes": 3}, "1048576 detections"),
    ("DetectionPostProcess", [(1, 4, 4), (1, 4, 3), (4, 4)],
     {"scale": [1.0] * 4, "nms_iou_threshold": 0.5, "nms_score_threshold": 0.5,
      "max_detections": 2, "num_classes": 4}, "4 classes, got 3"),
    ("ROIAlign", [(1, 4, 4, 3), (2, 5)], {"format": 1}, "ROIAlign with channels last"),
    ("BatchToSpaceND", [(4, 2, 2, 1)],
     {"block_shape": [2, 2], "crops": [[0, 0], [0, 0]], "primitive_function": False},
     "does not name its layout"),
    ("TileFusion", [(2, 4), K(np.array([2**20, 2**20], I32))], {}, "1099511627776 repeats"),
    ("PadFusion", [(2,), K(np.array([[0, 2**30]], I32))], {}, "1073741824 elements around"),
    ("Resize", [(1, 4, 4, 3)], {"new_height": 2**30, "new_width": 2**30}, "pixels"),
    ("Splice", [(1, 4, 2)], {"context": [0, 1], "forward_indexes": [0, 1, 2]}, "3 rows, 2 at a"),
    ("ConstantOfShape", [K(np.array([2**20, 2**20], I32))], {}, "1099511627776 elements"),
    ("ConstantOfShape", [K(np.array([2], I32))], {"data_type": 999}, "element type 999"),
    ("QuantDTypeCast", [(2,)], QUANT, "without scale and zero point"),
    ("QuantDTypeCast", [(2,)], {**QUANT, "quant_param": [{}]}, "no scale and zero point"),
    ("QuantDTypeCast", [(2,)],
     {**QUANT, "quant_param": [{"scale_list": [-1.0], "zero_point_list": [0]}]}, "makes no sense"),
    ("QuantDTypeCast", [(2,)],
     {**QUANT, "quant_param": [{"scale_list": [1.0], "zero_point_list": [300]}]},
     "makes no sense"),
    ("QuantDTypeCast", [numbers(2, dtype=np.int8)], {"src_t": 32, "dst_t": 43},
     "'x1' is quantised, and its scale is not known"),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_an_option_that_is_not_implemented_is_refused_in_words(row: Row) -> None:
    assert_refused(row)
