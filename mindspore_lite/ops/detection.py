"""Boxes: overlap, suppression, coding."""

from __future__ import annotations

import math

import numpy as np

from mindspore_lite.errors import UnsupportedOpError
from mindspore_lite.ops.arguments import number
from mindspore_lite.ops.spatial import F32, zeros_around
from mindspore_lite.ops.table import Val, op
from mindspore_lite.ops.tape import Tape

I64, I32 = np.dtype(np.int64), np.dtype(np.int32)
_LOWEST = np.asarray(np.finfo(np.float32).min, F32)  # the score of what was suppressed


def columns(t: Tape, boxes: Val, count: int = 4) -> tuple[Val, ...]:
    """The columns of a table of boxes, each [n, 1]."""
    found: tuple[Val, ...] = t.op("Split", [boxes], outputs=count, axis=-1, num_outputs=count)
    return found


@op("IOU")
def iou(t: Tape, anchors: Val, boxes: Val, *, mode: str = "iou") -> Val:
    """[boxes, anchors]: the common area over the joint one, or with 'iof' over the box's own.

    Corners are pixels that count in: a width is x2 - x1 + 1.
    """
    dtype = t.dtype(anchors)
    one, zero = np.asarray(1, F32), np.asarray(0, F32)

    def length(first: Val, last: Val) -> Val:
        return t.op("Add", [t.op("Sub", [last, first]), one])

    rows = columns(t, t.cast(boxes, F32))
    turned = t.op("Transpose", [t.cast(anchors, F32)], perm=[1, 0])
    across = t.op("Split", [turned], outputs=4, axis=0, num_outputs=4)
    common = [
        t.op("Max", [length(t.op("Max", [rows[i], across[i]]),
                            t.op("Min", [rows[i + 2], across[i + 2]])), zero])
        for i in (0, 1)
    ]  # fmt: skip
    shared = t.op("Mul", common)
    areas = [t.op("Mul", [length(b[0], b[2]), length(b[1], b[3])]) for b in (rows, across)]
    whole = areas[0] if mode == "iof" else t.op("Sub", [t.op("Add", areas), shared])
    return t.cast(t.op("Div", [shared, whole]), dtype)


# --- suppression ----------------------------------------------------------------------------------


@op("NMSWithMask")
def nms_with_mask(t: Tape, boxes: Val, *, iou_threshold: float = 0.5) -> Val:
    """Rows (x1, y1, x2, y2, score) -> (rows by falling score, 0, 1, 2, ..., which are kept)."""
    wide = t.cast(boxes, F32)
    scores = t.op("Slice", [wide, np.asarray([4]), np.asarray([5]), np.asarray([1])])
    scores = t.op("Squeeze", [scores, np.asarray([1])])
    count = t.op("Shape", [scores])
    _, order = t.op("TopK", [scores, count], outputs=2)
    falling = t.op("Gather", [boxes, order], axis=0)
    kept = suppressed(
        t, t.op("Gather", [wide, order], axis=0), t.op("Gather", [scores, order]), count,
        number(iou_threshold, "iou_threshold"), None,
    )  # fmt: skip
    places = t.op("Range", [np.asarray(0), t.op("Squeeze", [count]), np.asarray(1)])
    none = t.op("Expand", [np.asarray(False), count])
    found = t.op("Expand", [np.asarray(True), t.op("Shape", [kept])])
    return falling, t.cast(places, I32), t.op("ScatterElements", [none, kept, found], axis=0)


def suppressed(t: Tape, boxes: Val, scores: Val, most: Val, overlap: Val, least: Val) -> Val:
    """The rows that ONNX's NonMaxSuppression keeps, best first."""
    corners = t.op("Slice", [boxes, np.asarray([0]), np.asarray([4]), np.asarray([1])])
    picked = t.op(
        "NonMaxSuppression",
        [
            t.op("Unsqueeze", [t.cast(corners, F32), np.asarray([0])]),
            t.op("Unsqueeze", [t.cast(scores, F32), np.asarray([0, 1])]),
            t.op("Reshape", [t.cast(most, I64), np.asarray([1])]),
            t.cast(overlap, F32),
            None if least is None else t.cast(least, F32),
        ],
    )
    return t.op("Gather", [picked, np.asarray(2)], axis=1)


@op("NonMaxSuppressionV3")
def nms_v3(
    t: Tape, boxes: Val, scores: Val, max_output_size: Val, iou_threshold: Val, score_threshold: Val
) -> Val:
    """The rows to keep, best first, as int32."""
    return t.cast(
        suppressed(t, boxes, scores, max_output_size, iou_threshold, score_threshold), I32
    )


@op("CombinedNonMaxSuppression")
def combined_nms(
    t: Tape,
    boxes: Val,
    scores: Val,
    max_output_size_per_class: Val,
    max_total_size: Val,
    iou_threshold: Val,
    score_threshold: Val,
    *,
    pad_per_class: Val = False,
    clip_boxes: Val = True,
) -> Val:
    """Per class, then the best of all -> (boxes, scores, classes, how many), zeros at the end.

    Boxes are [images, n, classes or 1, 4], scores [images, n, classes].
    """
    images, classes, count = (t.op("Shape", [scores], start=a, end=a + 1) for a in (0, 2, 1))
    shared = t.shape(boxes)[2] == 1
    if t.shape(boxes)[2] is None:
        raise UnsupportedOpError("it must be known whether classes share boxes")
    own = t.op("Transpose", [boxes], perm=[0, 2, 1, 3])
    every = t.op("Transpose", [scores], perm=[0, 2, 1])
    # classes with boxes of their own are to NonMaxSuppression images of one class
    heads = [images, classes] if shared else [t.op("Mul", [images, classes]), [1]]
    every = t.op("Reshape", [every, t.op("Concat", [*heads, count], axis=0)])
    stacked = t.op("Reshape", [own, t.op("Concat", [heads[0], count, [4]], axis=0)])
    limit, total = (
        t.op("Reshape", [t.cast(v, I64), [1]]) for v in (max_output_size_per_class, max_total_size)
    )
    thresholds = [t.cast(iou_threshold, F32), t.cast(score_threshold, F32)]
    picked = t.op("NonMaxSuppression", [stacked, every, limit, *thresholds])
    room = t.op("Expand", [_LOWEST, t.op("Shape", [every])])
    kept = t.op("ScatterND", [room, picked, t.op("GatherND", [every, picked])])
    kept = t.op("Reshape", [kept, t.op("Concat", [images, [-1]], axis=0)])
    size = t.op("Min", [total, t.op("Mul", [limit, classes])]) if pad_per_class else total
    some = t.op("Min", [size, t.op("Shape", [kept], start=1)])
    best, places = t.op("TopK", [kept, some], outputs=2, axis=1)
    found = t.op("Greater", [best, _LOWEST])
    rows = t.op("Reshape", [own, t.op("Concat", [images, [-1, 4]], axis=0)])
    at = t.op("Mod", [places, count]) if shared else places
    rows = t.op("GatherND", [rows, t.op("Unsqueeze", [at, [2]])], batch_dims=1)
    if clip_boxes:
        rows = t.op("Clip", [rows, np.asarray(0, F32), np.asarray(1, F32)])
    kinds = t.cast(t.op("Div", [places, count]), F32)
    missing = t.op("Sub", [size, some])
    amount = t.op("ReduceSum", [t.cast(found, I32), [1]], keepdims=0)
    return *(_filled(t, v, found, missing) for v in (rows, best, kinds)), amount


def _filled(t: Tape, x: Val, found: Val, missing: Val) -> Val:
    """Zeros where nothing was found, and `missing` more of them at the end of axis 1."""
    if t.rank(x) == 3:
        found = t.op("Unsqueeze", [found, [2]])
    kept = t.op("Where", [found, x, np.asarray(0, F32)])
    return zeros_around(t, kept, t.op("Concat", [[0], missing], axis=0), 1)


# --- coding ---------------------------------------------------------------------------------------


def middles(t: Tape, boxes: Val) -> tuple[Val, Val]:
    """Middles and sizes of boxes, [n, 2] each; corners are pixels that count in."""
    first, last = t.op("Split", [boxes], outputs=2, axis=1, num_outputs=2)
    middle = t.op("Mul", [t.op("Add", [first, last]), np.asarray(0.5, F32)])
    return middle, t.op("Add", [t.op("Sub", [last, first]), np.asarray(1, F32)])


@op("BoundingBoxEncode")
def encode(
    t: Tape, anchors: Val, boxes: Val, *, means: Val = (0.0,) * 4, stds: Val = (1.0,) * 4
) -> Val:
    """How far boxes lie from anchors, in sizes of the anchors and logarithms."""
    dtype = t.dtype(anchors)
    (at, size), (want, wide) = (middles(t, t.cast(v, F32)) for v in (anchors, boxes))
    moves = t.op("Div", [t.op("Sub", [want, at]), size])
    growth = t.op("Log", [t.op("Div", [wide, size])])
    found = t.op("Sub", [t.op("Concat", [moves, growth], axis=1), np.asarray(means, F32)])
    return t.cast(t.op("Div", [found, np.asarray(stds, F32)]), dtype)


@op("BoundingBoxDecode")
def decode(
    t: Tape,
    anchors: Val,
    deltas: Val,
    *,
    max_shape: Val,
    means: Val = (0.0,) * 4,
    stds: Val = (1.0,) * 4,
    wh_ratio_clip: float = 0.016,
) -> Val:
    """The boxes that BoundingBoxEncode described, inside an image of max_shape (h, w)."""
    dtype = t.dtype(anchors)
    at, size = middles(t, t.cast(anchors, F32))
    wide = t.op("Mul", [t.cast(deltas, F32), np.asarray(stds, F32)])
    wide = t.op("Add", [wide, np.asarray(means, F32)])
    moves, growth = t.op("Split", [wide], outputs=2, axis=1, num_outputs=2)
    limit = np.asarray(abs(math.log(wh_ratio_clip)), F32)
    growth = t.op("Clip", [growth, -limit, limit])
    middle = t.op("Add", [at, t.op("Mul", [moves, size])])
    half = t.op("Mul", [t.op("Mul", [size, t.op("Exp", [growth])]), np.asarray(0.5, F32)])
    half = t.op("Sub", [half, np.asarray(0.5, F32)])
    corners = t.op("Concat", [t.op("Sub", [middle, half]), t.op("Add", [middle, half])], axis=1)
    height, width = max_shape[:2]
    ends = np.asarray([width, height, width, height], F32)
    return t.cast(t.op("Max", [t.op("Min", [corners, ends]), np.asarray(0, F32)]), dtype)


@op("CheckValid")
def check_valid(t: Tape, boxes: Val, img_metas: Val) -> Val:
    """Whether boxes lie inside an image of (height, width, ratio)."""
    first, last = t.op("Split", [t.cast(boxes, F32)], outputs=2, axis=1, num_outputs=2)
    size = t.op("Gather", [t.cast(img_metas, F32), np.asarray([1, 0])])
    ratio = t.op("Gather", [t.cast(img_metas, F32), np.asarray([2])])
    end = t.op("Sub", [t.op("Mul", [size, ratio]), np.asarray(1, F32)])
    good = t.op("And", [t.op("GreaterOrEqual", [first, np.asarray(0, F32)]),
                        t.op("LessOrEqual", [last, end])])  # fmt: skip
    good = t.op("ReduceMin", [t.cast(good, I32), np.asarray([1])], keepdims=0)
    return t.cast(good, np.dtype(np.bool_))
