"""Rows for ops/image.py."""

from __future__ import annotations

import colorsys
import itertools
from typing import Any

import numpy as np
from support.op_case import Case, K, S, T, numbers

F16, F64 = np.float16, np.float64


def reflected(at: np.ndarray, low: float, high: float) -> np.ndarray:
    span = high - low
    if span <= 0:
        return np.zeros_like(at)
    away = np.abs(at - low) % (2 * span)
    return np.where(away > span, 2 * span - away, away) + low


def sampled(
    x: np.ndarray, grid: np.ndarray, mode: str = "linear", edge: str = "zeros", align: bool = False
) -> np.ndarray:
    """Any number of spatial axes; the grid's last axis counts them from the last."""
    sizes, n = x.shape[2:], x.shape[0]
    places = []
    for k, size in enumerate(sizes):
        g = grid[..., len(sizes) - 1 - k].astype(F64)
        at = (g + 1) / 2 * (size - 1) if align else ((g + 1) * size - 1) / 2
        if edge == "border":
            at = np.clip(at, 0, size - 1)
        elif edge == "reflection":
            ends = (0, size - 1) if align else (-0.5, size - 0.5)
            at = np.clip(reflected(at, *ends), 0, size - 1)
        places.append(np.rint(at) if mode == "nearest" else at)
    y = np.zeros((n, x.shape[1], *grid.shape[1:-1]))
    batch = np.arange(n).reshape(n, *[1] * len(sizes))
    for corner in itertools.product((0, 1), repeat=len(sizes)):
        index = [np.floor(p).astype(int) + c for p, c in zip(places, corner, strict=True)]
        share: Any = np.ones(())
        for p, i, size in zip(places, index, sizes, strict=True):
            share = share * np.clip(1 - np.abs(p - i), 0, None) * ((i >= 0) & (i < size))
        kept = [np.clip(i, 0, s - 1) for i, s in zip(index, sizes, strict=True)]
        y += np.moveaxis(x[(batch, slice(None), *kept)], -1, 1) * share[:, None]
    return y.astype(x.dtype)


def how(mode: int, edge: int, align: bool) -> dict[str, Any]:
    return {"interpolation_mode": mode, "padding_mode": edge, "align_corners": align}


X2, G2 = (2, 3, 5, 6), numbers(2, 4, 7, 2, low=-1.5, high=1.5)
X3, G3 = (1, 2, 3, 4, 5), numbers(1, 3, 4, 2, 3, low=-1.5, high=1.5)

GRIDS = [
    Case("GridSampler2D", [X2, G2], sampled, how(0, 0, False), dynamic=True),
    Case("GridSampler2D", [X2, G2], lambda x, g: sampled(x, g, edge="border", align=True),
         how(0, 1, True)),
    Case("GridSampler2D", [X2, G2], lambda x, g: sampled(x, g, "nearest", "reflection"),
         how(1, 2, False)),
    Case("GridSampler2D", [X2, G2], sampled,
         attributes={"interpolation_mode": "bilinear", "padding_mode": "zeros"}),
    Case("GridSampler2D", [numbers(1, 2, 4, 4, dtype=F64), numbers(1, 3, 3, 2, dtype=F64)], sampled,
         how(0, 0, False)),
    Case("GridSampler3D", [X3, G3], sampled, how(0, 0, False), dynamic=True),
    Case("GridSampler3D", [X3, G3], lambda x, g: sampled(x, g, "nearest", "border", True),
         how(1, 1, True)),
    Case("GridSampler3D", [numbers(1, 2, 3, 4, 5, dtype=F64), G3.astype(F64)], sampled,
         how(0, 0, False)),
]  # fmt: skip


def grid(theta: np.ndarray, sizes: tuple[int, ...], align: bool) -> np.ndarray:
    lines = [np.linspace(-1, 1, n) if n > 1 else np.zeros(1) for n in sizes]
    if not align:
        lines = [np.linspace(-1 + 1 / n, 1 - 1 / n, n) for n in sizes]
    y = np.empty((len(theta), *sizes, len(sizes)), theta.dtype)
    for at in np.ndindex(*sizes):
        point = [lines[k][i] for k, i in enumerate(at)][::-1]
        y[(slice(None), *at)] = theta.astype(F64) @ np.array([*point, 1.0])
    return y


SIZE = T(K(2), K(3), S(4), S(5))
AFFINE = [
    Case("AffineGrid", [(2, 2, 3), K((2, 3, 4, 5))], lambda t: grid(t, (4, 5), False),
         attributes={"align_corners": False}),
    Case("AffineGrid", [(2, 2, 3), K((2, 3, 1, 5))], lambda t: grid(t, (1, 5), True),
         attributes={"align_corners": True}),
    Case("AffineGrid", [(2, 3, 4), K((2, 3, 2, 4, 5))], lambda t: grid(t, (2, 4, 5), True),
         attributes={"align_corners": True}, dynamic=True),
    Case("AffineGrid", [numbers(1, 2, 3, dtype=F16), K((1, 1, 3, 3))],
         lambda t: grid(t, (3, 3), False), attributes={"align_corners": False}),
    Case("AffineGrid", [(2, 2, 3), SIZE], lambda t, _: grid(t, (4, 5), False),
         attributes={"align_corners": False}, dynamic=True),
    Case("AffineGrid", [numbers(2, 2, 3, dtype=F16), SIZE], lambda t, _: grid(t, (4, 5), True),
         attributes={"align_corners": True}),
]  # fmt: skip


def pixel(image: np.ndarray, y: float, x: float) -> Any:
    """RoiAlign's linear rule: zero beyond a pixel outside, else the edge."""
    height, width = image.shape[1:]
    if not (-1 <= y <= height and -1 <= x <= width):
        return np.zeros(len(image))
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    top, left = int(y), int(x)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    upper = image[:, top, left] * (1 - x + left) + image[:, top, right] * (x - left)
    lower = image[:, bottom, left] * (1 - x + left) + image[:, bottom, right] * (x - left)
    return upper * (1 - y + top) + lower * (y - top)


def aligned(
    x: np.ndarray, rois: np.ndarray, bins: tuple[int, int], scale: float, samples: int, end: int
) -> np.ndarray:
    y = np.zeros((len(rois), x.shape[1], *bins), x.dtype)
    for r, (image, x1, y1, x2, y2) in enumerate(rois.astype(F64)):
        width, height = (x2 - x1 + end) * scale, (y2 - y1 + end) * scale
        if not end:
            width, height = max(width, 1), max(height, 1)
        step_y, step_x = height / bins[0] / samples, width / bins[1] / samples
        for i, j in np.ndindex(*bins):
            found = [
                pixel(x[int(image)], y1 * scale + (i * samples + p + 0.5) * step_y,
                      x1 * scale + (j * samples + q + 0.5) * step_x)
                for p, q in np.ndindex(samples, samples)
            ]  # fmt: skip
            y[r, :, i, j] = np.mean(found, 0)
    return y


def roi(bins: tuple[int, int], scale: float, samples: int, end: int) -> dict[str, Any]:
    return {"pooled_height": bins[0], "pooled_width": bins[1], "spatial_scale": scale,
            "sample_num": samples, "roi_end_mode": end}  # fmt: skip


ROIS = np.array([[0, 1, 2, 9, 11], [1, 0, 0, 4, 3], [1, 6, 5, 5.5, 13]], np.float32)
REGIONS = [
    Case("ROIAlign", [(2, 3, 8, 8), ROIS], lambda x, r: aligned(x, r, (2, 3), 0.5, 2, 0),
         attributes=roi((2, 3), 0.5, 2, 0), dynamic=True),
    Case("ROIAlign", [(2, 3, 8, 8), ROIS], lambda x, r: aligned(x, r, (3, 2), 0.5, 2, 1),
         attributes=roi((3, 2), 0.5, 2, 1)),
    Case("ROIAlign", [numbers(2, 1, 8, 8, dtype=F64), ROIS.astype(F64)],
         lambda x, r: aligned(x, r, (2, 2), 1.0, 3, 1), attributes=roi((2, 2), 1.0, 3, 1)),
]  # fmt: skip


def cropped(
    x: np.ndarray, boxes: np.ndarray, which: np.ndarray, size: tuple[int, int], mode: str,
    fill: float,
) -> np.ndarray:  # fmt: skip
    y = np.full((len(boxes), *size, x.shape[3]), fill, np.float32)
    for b, box in enumerate(boxes):
        image = x[which[b]].astype(np.float32)
        ends = [n - 1 for n in image.shape[:2]]
        lines = [
            (box[k] + box[k + 2]) / 2 * ends[k] * np.ones(1) if size[k] == 1
            else np.linspace(*[np.float32(b * ends[k]) for b in (box[k], box[k + 2])], size[k])
            for k in (0, 1)
        ]  # fmt: skip
        for i, j in np.ndindex(*size):
            at_y, at_x = lines[0][i], lines[1][j]
            if not (0 <= at_y <= ends[0] and 0 <= at_x <= ends[1]):
                continue
            if mode == "nearest":
                y[b, i, j] = image[int(at_y + 0.5), int(at_x + 0.5)]
            else:
                y[b, i, j] = pixel(image.transpose(2, 0, 1), at_y, at_x)
    return y


BOXES = np.array([[0.1, 0.2, 0.8, 0.9], [0.05, 0, 0.95, 0.99], [0.9, 0.7, 0.2, 0.1],
                  [-0.2, 0.3, 0.5, 1.4]], np.float32)  # fmt: skip
WHICH = np.array([0, 1, 1, 0], np.int32)
CROPS = [
    Case("CropAndResize", [(2, 5, 6, 2), BOXES, WHICH, K((3, 4))],
         lambda x, b, w: cropped(x, b, w, (3, 4), "bilinear", 0.5),
         attributes={"method": "bilinear", "extrapolation_value": 0.5}, dynamic=True),
    Case("CropAndResize", [(2, 5, 6, 2), BOXES, WHICH, K((3, 4))],
         lambda x, b, w: cropped(x, b, w, (3, 4), "nearest", 0),
         attributes={"method": "nearest"}),
    Case("CropAndResize", [numbers(2, 5, 6, 1, low=0, high=255, dtype=np.uint8), BOXES, WHICH,
                           K((1, 2))],
         lambda x, b, w: cropped(x, b, w, (1, 2), "bilinear", 0),
         attributes={"method": "bilinear", "extrapolation_value": 0.0}),
    Case("CropAndResize", [(2, 5, 6, 2), BOXES, WHICH, T(S(3), S(4))],
         lambda x, b, w, _: cropped(x, b, w, (3, 4), "bilinear", 0),
         attributes={"method": "bilinear"}),
]  # fmt: skip


def each(convert: Any) -> Any:
    return lambda x: np.apply_along_axis(lambda p: convert(*p), -1, x.astype(F64)).astype(x.dtype)


RGB = numbers(2, 3, 4, 3, low=0, high=1)
ENDS = np.array([[[[0, 0, 0], [1, 1, 1], [1, 0.5, 1], [0.2, 0.2, 1], [0.7, 0, 0.7]]]], np.float32)
COLOURS = [
    Case("HSVToRGB", [RGB], each(colorsys.hsv_to_rgb), dynamic=True),
    Case("HSVToRGB", [RGB.astype(F64)], each(colorsys.hsv_to_rgb)),
    Case("HSVToRGB", [ENDS], each(colorsys.hsv_to_rgb)),
    Case("RGBToHSV", [RGB], each(colorsys.rgb_to_hsv), dynamic=True),
    Case("RGBToHSV", [RGB.astype(F16)], each(colorsys.rgb_to_hsv)),
    Case("RGBToHSV", [ENDS], each(colorsys.rgb_to_hsv)),
]

CASES = [*GRIDS, *AFFINE, *REGIONS, *CROPS, *COLOURS]
