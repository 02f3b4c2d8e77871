"""The last step of single-shot detectors, as converter_lite keeps it from TensorFlow Lite."""

from __future__ import annotations

import numpy as np

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops.spatial import zeros_around
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape, bounded

_F32, _I64 = np.dtype(np.float32), np.dtype(np.int64)


@op("DetectionPostProcess")
def detection_post_process(
    t: Tape,
    boxes: Val,
    scores: Val,
    anchors: Val,
    *,
    scale: Val,
    nms_iou_threshold: float,
    nms_score_threshold: float,
    max_detections: int,
    num_classes: int,
    detections_per_class: int = 100,
    max_classes_per_detection: int = 1,
    use_regular_nms: bool = False,
    out_quantized: bool = False,
) -> Val:
    """-> (boxes [1, n, 4], classes, scores, count) as floats, zeros after the last detection."""
    if out_quantized:
        raise UnsupportedOpError("DetectionPostProcess with quantised results is not supported")
    corners = _decoded(t, boxes, anchors, scale)
    width = t.shape(scores)[2]
    if width is None or width < num_classes:
        raise UnsupportedOpError(f"DetectionPostProcess of {num_classes} classes, got {width}")
    first = np.asarray([width - num_classes])  # the background, where there is one, comes first
    scores = t.op("Slice", [scores, first, np.asarray([width]), np.asarray([2])])
    limits = (nms_iou_threshold, nms_score_threshold)
    if use_regular_nms:
        per_class = np.asarray([detections_per_class], _I64)
        found = _each_class(t, corners, scores, per_class, limits, max_detections)
    else:
        classes = min(max_classes_per_detection, num_classes)
        found = _all_classes_at_once(t, corners, scores, max_detections, limits, classes)
    most = bounded(max_detections * max_classes_per_detection, "detections")
    count = t.op("Shape", [found[1]])
    missing = t.op("Sub", [np.asarray([most]), count])
    pads = t.op("Concat", [np.asarray([0]), missing], axis=0)
    padded = [zeros_around(t, part, pads, 0) for part in found]
    whole = [t.op("Unsqueeze", [part, np.asarray([0])]) for part in padded]
    return (*whole, t.cast(count, _F32))


def _decoded(t: Tape, boxes: Val, anchors: Val, scale: Val) -> Val:
    """[1, n, 4] of (top, left, bottom, right) from offsets to anchors (y, x, height, width)."""
    height, width, x, y = (float(s) for s in scale)
    centres, sizes = t.op("Split", [boxes], outputs=2, axis=2, num_outputs=2)
    places, extents = t.op("Split", [anchors], outputs=2, axis=1, num_outputs=2)
    moved = t.op("Mul", [t.op("Div", [centres, np.asarray([y, x], _F32)]), extents])
    centres = t.op("Add", [moved, places])
    grown = t.op("Exp", [t.op("Div", [sizes, np.asarray([height, width], _F32)])])
    half = t.op("Mul", [t.op("Mul", [grown, np.asarray(0.5, _F32)]), extents])
    ends = [t.op("Sub", [centres, half]), t.op("Add", [centres, half])]
    return t.op("Concat", ends, axis=2)


def _kept(t: Tape, corners: Val, scores: Val, most: Val, limits: tuple[float, float]) -> Val:
    """ONNX's suppression; it asks for more than the least score, this op for that much."""
    iou, least = limits
    at_least = np.nextafter(np.float32(least), np.float32(-np.inf))
    bounds = [most, np.asarray([iou], _F32), np.asarray([at_least], _F32)]
    return t.op("NonMaxSuppression", [corners, scores, *bounds])


def _all_classes_at_once(
    t: Tape, corners: Val, scores: Val, most: int, limits: tuple[float, float], classes: int
) -> list[Val]:
    """Boxes compete by their best score, whatever its class; each keeps its best classes."""
    best, kinds = t.op("TopK", [scores, np.asarray([classes])], outputs=2, axis=2)
    leading = t.op("Slice", [best, np.asarray([0]), np.asarray([1]), np.asarray([2])])
    ranked = t.op("Transpose", [leading], perm=[0, 2, 1])
    rows = _kept(t, corners, ranked, np.asarray([most], _I64), limits)
    picked = t.op("Gather", [rows, np.asarray(2)], axis=1)
    taken = t.op("Gather", [t.op("Squeeze", [corners, np.asarray([0])]), picked])
    repeated = t.op("Tile", [taken, np.asarray([1, classes])])
    values = [
        t.op("Gather", [t.op("Squeeze", [v, np.asarray([0])]), picked]) for v in (kinds, best)
    ]
    kinds, best = (t.op("Reshape", [v, np.asarray([-1])]) for v in values)
    return [t.op("Reshape", [repeated, np.asarray([-1, 4])]), t.cast(kinds, _F32), best]


def _each_class(
    t: Tape, corners: Val, scores: Val, per_class: Val, limits: tuple[float, float], most: int
) -> list[Val]:
    """Boxes compete inside their class; the best of all classes are kept."""
    by_class = t.op("Transpose", [scores], perm=[0, 2, 1])
    rows = _kept(t, corners, by_class, per_class, limits)
    values = t.op("GatherND", [by_class, rows])
    count = t.op("Min", [t.op("Shape", [values]), np.asarray([most])])
    best, order = t.op("TopK", [values, count], outputs=2, axis=0)
    kinds, picked = (
        t.op("Gather", [t.op("Gather", [rows, np.asarray(column)], axis=1), order])
        for column in (1, 2)
    )
    taken = t.op("Gather", [t.op("Squeeze", [corners, np.asarray([0])]), picked])
    return [taken, t.cast(kinds, _F32), best]
