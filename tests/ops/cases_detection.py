"""Rows for ops/detection.py."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from support.op_case import Case, K, numbers


def boxes(count: int, size: float = 20, seed: int = 0) -> np.ndarray:
    """Corners (x1, y1, x2, y2)."""
    first = numbers(count, 2, low=0, high=size, seed=seed)
    return np.concatenate([first, first + numbers(count, 2, low=size / 20, high=size / 2)], 1)


def shared(a: np.ndarray, b: np.ndarray, more: int) -> tuple[float, float, float]:
    """Common area of two boxes and their own; `more` is 1 where the last pixel counts."""
    sides = [max(min(a[k + 2], b[k + 2]) - max(a[k], b[k]) + more, 0) for k in (0, 1)]
    own = [(c[2] - c[0] + more) * (c[3] - c[1] + more) for c in (a, b)]
    return sides[0] * sides[1], own[0], own[1]


def overlaps(anchors: np.ndarray, found: np.ndarray, mode: str) -> np.ndarray:
    y = np.empty((len(found), len(anchors)))
    for i, j in np.ndindex(*y.shape):
        common, own, other = shared(found[i], anchors[j], 1)
        y[i, j] = common / (own if mode == "iof" else own + other - common)
    return y.astype(anchors.dtype)


def kept(corners: np.ndarray, scores: np.ndarray, overlap: float, least: float = -1) -> list[int]:
    """Greedily, best first."""
    chosen: list[int] = []
    for i in np.argsort(-scores, kind="stable"):
        pairs = [shared(corners[i], corners[j], 0) for j in chosen]
        if scores[i] > least and all(c / (a + b - c) <= overlap for c, a, b in pairs):
            chosen.append(int(i))
    return chosen


def masked(x: np.ndarray, overlap: float) -> Any:
    rows = x[np.argsort(-x[:, 4])]
    mask = np.zeros(len(x), np.bool_)
    mask[kept(rows, rows[:, 4], overlap)] = True
    return rows, np.arange(len(x), dtype=np.int32), mask


def first_rows(most: int, overlap: float, least: float) -> Any:
    def run(corners: np.ndarray, scores: np.ndarray) -> np.ndarray:
        return np.asarray(kept(corners, scores, overlap, least)[:most], np.int32)

    return run


def combined(
    corners: np.ndarray, scores: np.ndarray, each: int, total: int, overlap: float, least: float,
    size: int, clip: bool,
) -> Any:  # fmt: skip
    n, _, classes = scores.shape
    rows, best = np.zeros((n, size, 4), np.float32), np.zeros((n, size), np.float32)
    kinds, counts = np.zeros((n, size), np.float32), np.zeros(n, np.int32)
    for b in range(n):
        found = []
        for c in range(classes):
            own = corners[b, :, c if corners.shape[2] > 1 else 0]
            found += [(scores[b, i, c], c, own[i])
                      for i in kept(own, scores[b, :, c], overlap, least)[:each]]  # fmt: skip
        found = sorted(found, key=lambda f: -f[0])[: min(total, size)]
        counts[b] = len(found)
        for k, (score, kind, box) in enumerate(found):
            rows[b, k], best[b, k], kinds[b, k] = box, score, kind
    return np.clip(rows, 0, 1) if clip else rows, best, kinds, counts


def scalar(value: float, dtype: Any) -> K:
    return K(np.array(value, dtype))


def limits(each: int, total: int, overlap: float, least: float) -> list[K]:
    whole = [scalar(v, np.int32) for v in (each, total)]
    return whole + [scalar(v, np.float32) for v in (overlap, least)]


SCORED = np.concatenate([boxes(9), numbers(9, 1, low=0, high=1, seed=3)], 1)
SCORES = numbers(9, low=0, high=1, seed=4)
BATCH = numbers(2, 6, 3, low=0, high=1, seed=5)
SHARED, OWN = boxes(12, 1).reshape(2, 6, 1, 4), boxes(36, 1).reshape(2, 6, 3, 4)

SUPPRESSION = [
    Case("NMSWithMask", [SCORED], lambda x: masked(x, 0.1), attributes={"iou_threshold": 0.1},
         dynamic=True),
    Case("NMSWithMask", [SCORED], lambda x: masked(x, 0.5), attributes={"iou_threshold": 0.5}),
    Case("NMSWithMask", [SCORED.astype(np.float16)], lambda x: masked(x, 0.3),
         attributes={"iou_threshold": 0.3}),
    Case("NonMaxSuppressionV3", [boxes(9), SCORES, scalar(4, np.int32), scalar(0.1, np.float32),
                                 scalar(0, np.float32)], first_rows(4, 0.1, 0), dynamic=True),
    Case("NonMaxSuppressionV3", [boxes(9), SCORES, scalar(9, np.int32), scalar(0.9, np.float32),
                                 scalar(0.5, np.float32)], first_rows(9, 0.9, 0.5)),
    Case("CombinedNonMaxSuppression", [SHARED, BATCH, *limits(3, 4, 0.3, 0.2)],
         lambda b, s: combined(b, s, 3, 4, 0.3, 0.2, 4, True),
         attributes={"pad_per_class": False, "clip_boxes": True}),
    Case("CombinedNonMaxSuppression", [OWN, BATCH, *limits(2, 5, 0.1, 0.3)],
         lambda b, s: combined(b, s, 2, 5, 0.1, 0.3, 5, False),
         attributes={"pad_per_class": False, "clip_boxes": False}),
    Case("CombinedNonMaxSuppression", [SHARED, BATCH, *limits(2, 30, 0.3, 0.7)],
         lambda b, s: combined(b, s, 2, 30, 0.3, 0.7, 6, True),
         attributes={"pad_per_class": True, "clip_boxes": True}),
]  # fmt: skip

MEANS, STDS = (0.1, 0.0, 0.2, 0.0), (1.0, 2.0, 1.0, 0.5)


def encoded(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    (p, s), (q, r) = (((v[:, :2] + v[:, 2:]) / 2, v[:, 2:] - v[:, :2] + 1) for v in (a, b))
    found = np.concatenate([(q - p) / s, np.log(r / s)], 1)
    return ((found - MEANS) / STDS).astype(a.dtype)


def decoded(a: np.ndarray, deltas: np.ndarray, clip: float) -> np.ndarray:
    middle, size = (a[:, :2] + a[:, 2:]) / 2, a[:, 2:] - a[:, :2] + 1
    wide = deltas * np.asarray(STDS) + MEANS
    limit = abs(math.log(clip))
    at, half = middle + size * wide[:, :2], size * np.exp(np.clip(wide[:, 2:], -limit, limit)) / 2
    corners = np.concatenate([at - half + 0.5, at + half - 0.5], 1)
    return np.clip(corners, 0, [40, 30, 40, 30]).astype(a.dtype)


def valid(b: np.ndarray, image: np.ndarray) -> np.ndarray:
    height, width = image[:2] * image[2] - 1
    return (b[:, :2] >= 0).all(1) & (b[:, 2] <= width) & (b[:, 3] <= height)


CODE = {"means": MEANS, "stds": STDS}
BOXES = [
    Case("IOU", [boxes(4), boxes(3, seed=1)], lambda a, b: overlaps(a, b, "iou"),
         attributes={"mode": "iou"}, dynamic=True),
    Case("IOU", [boxes(4), boxes(3, seed=1)], lambda a, b: overlaps(a, b, "iof"),
         attributes={"mode": "iof"}),
    Case("IOU", [boxes(4).astype(np.float16), boxes(3, seed=1).astype(np.float16)],
         lambda a, b: overlaps(a, b, "iou"), attributes={"mode": "iou"}),
    Case("BoundingBoxEncode", [boxes(5), boxes(5, seed=1)], encoded, attributes=CODE,
         dynamic=True),
    Case("BoundingBoxDecode", [boxes(5), (5, 4)], lambda a, d: decoded(a, d, 0.016),
         attributes={"max_shape": (30, 40), **CODE}, dynamic=True),
    Case("BoundingBoxDecode", [boxes(5), (5, 4)], lambda a, d: decoded(a, d, 0.5),
         attributes={"max_shape": (30, 40), "wh_ratio_clip": 0.5, **CODE}),
    Case("CheckValid", [boxes(9), np.array([20, 24, 0.9], np.float32)], valid, dynamic=True),
    Case("CheckValid", [boxes(9) - 2, np.array([24, 20, 1], np.float32)], valid),
]  # fmt: skip

CASES = [*SUPPRESSION, *BOXES]
