"""Rows for ops/lite_detection.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.op_case import Case, W, numbers

F32 = np.float32
SCALE = [5.0, 4.0, 10.0, 8.0]  # height, width, x, y
ANCHORS = np.concatenate([numbers(12, 2, low=0, high=1), numbers(12, 2, low=0.2, high=0.6)], 1)
OFFSETS = numbers(1, 12, 4, seed=2)
SCORES = numbers(1, 12, 4, low=0, high=1, seed=3)  # background first


def decoded(offsets: np.ndarray, anchors: np.ndarray) -> np.ndarray:
    h, w, x, y = SCALE
    centre = offsets[:, :2] / np.array([y, x], F32) * anchors[:, 2:] + anchors[:, :2]
    half = np.exp(offsets[:, 2:] / np.array([h, w], F32)) * anchors[:, 2:] / 2
    return np.concatenate([centre - half, centre + half], 1)


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    low, high = np.maximum(a[:2], b[:2]), np.minimum(a[2:], b[2:])
    common = np.prod(np.maximum(high - low, 0))
    return float(common / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - common))


def kept(boxes: np.ndarray, scores: np.ndarray, most: int, iou: float, least: float) -> list[int]:
    chosen: list[int] = []
    for i in np.argsort(-scores, kind="stable"):
        is_apart = all(overlap(boxes[i], boxes[j]) <= iou for j in chosen)
        if len(chosen) < most and scores[i] >= least and is_apart:
            chosen.append(int(i))
    return chosen


def fast(o: Any, s: Any, a: Any, most: int, per_box: int, least: float) -> tuple[Any, ...]:
    boxes, scores = decoded(o[0], a), s[0, :, 1:]
    rows = []
    for i in kept(boxes, scores.max(1), most, 0.3, least):
        for c in np.argsort(-scores[i], kind="stable")[:per_box]:
            rows.append((boxes[i], c, scores[i, c]))
    return filled(rows, most * per_box)


def regular(o: Any, s: Any, a: Any, most: int, per_class: int, least: float) -> tuple[Any, ...]:
    boxes, scores = decoded(o[0], a), s[0, :, 1:]
    rows = [(boxes[i], c, scores[i, c]) for c in range(3)
            for i in kept(boxes, scores[:, c], per_class, 0.3, least)]  # fmt: skip
    return filled(sorted(rows, key=lambda r: -r[2])[:most], most)


def filled(rows: list[Any], size: int) -> tuple[Any, ...]:
    boxes, classes, scores = np.zeros((1, size, 4), F32), *np.zeros((2, 1, size), F32)
    for i, (box, kind, score) in enumerate(rows):
        boxes[0, i], classes[0, i], scores[0, i] = box, kind, score
    return boxes, classes, scores, np.array([len(rows)], F32)


def how(**more: Any) -> dict[str, Any]:
    return {"scale": SCALE, "nms_iou_threshold": 0.3, "nms_score_threshold": 0.1, "format": 1,
            "num_classes": 3, "max_detections": 5, "detections_per_class": 3,
            "max_classes_per_detection": 1, "use_regular_nms": False, "out_quantized": False,
            **more}  # fmt: skip


INPUTS = [OFFSETS, SCORES, W(ANCHORS)]
CASES = [
    Case("DetectionPostProcess", INPUTS, lambda *a: fast(*a, 5, 1, 0.1), attributes=how()),
    Case("DetectionPostProcess", INPUTS, lambda *a: fast(*a, 20, 2, 0.6),
         attributes=how(max_detections=20, max_classes_per_detection=2, nms_score_threshold=0.6)),
    Case("DetectionPostProcess", INPUTS, lambda *a: fast(*a, 5, 1, 2.0),
         attributes=how(nms_score_threshold=2.0)),
    Case("DetectionPostProcess", INPUTS, lambda *a: regular(*a, 5, 3, 0.1),
         attributes=how(use_regular_nms=True)),
    Case("DetectionPostProcess", INPUTS, lambda *a: regular(*a, 50, 3, 0.5),
         attributes=how(use_regular_nms=True, max_detections=50, nms_score_threshold=0.5)),
]  # fmt: skip
