"""Rows for ops/deformable.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.op_case import Case, numbers


def between(image: np.ndarray, y: float, x: float) -> Any:
    """Linear between the four pixels around a place, zero outside."""
    total = np.zeros(image.shape[0])
    for row in (int(np.floor(y)), int(np.floor(y)) + 1):
        for column in (int(np.floor(x)), int(np.floor(x)) + 1):
            if 0 <= row < image.shape[1] and 0 <= column < image.shape[2]:
                total += image[:, row, column] * (1 - abs(y - row)) * (1 - abs(x - column))
    return total


def sampled(
    x: np.ndarray, offsets: np.ndarray, kernel: Any, stride: Any, dilation: Any, pads: Any,
    groups: int,
) -> np.ndarray:  # fmt: skip
    n, c = x.shape[:2]
    rows, columns = offsets.shape[2:]
    moves = offsets.reshape(n, 3, groups, *kernel, rows, columns)
    y = np.zeros((n, groups, c // groups, rows, kernel[0], columns, kernel[1]), x.dtype)
    for b, g, i, p, j, q in np.ndindex(n, groups, rows, kernel[0], columns, kernel[1]):
        dx, dy, mask = moves[b, :, g, p, q, i, j]
        at_y = i * stride[0] - pads[0] + p * dilation[0] + dy
        at_x = j * stride[1] - pads[1] + q * dilation[1] + dx
        image = x[b].reshape(groups, c // groups, *x.shape[2:])[g]
        y[b, g, :, i, p, j, q] = between(image, at_y, at_x) * mask
    return y.reshape(n, c, rows * kernel[0], columns * kernel[1])


def attrs(kernel: Any, stride: Any, dilation: Any, pads: Any, groups: int = 1) -> dict[str, Any]:
    return {"ksize": kernel, "strides": (1, 1, *stride), "dilations": (1, 1, *dilation),
            "pads": pads, "deformable_groups": groups, "format": "NCHW"}  # fmt: skip


CASES = [
    Case("DeformableOffsets", [(2, 3, 6, 7), (2, 27, 4, 5)],
         lambda x, o: sampled(x, o, (3, 3), (1, 1), (1, 1), (0, 0), 1),
         attributes=attrs((3, 3), (1, 1), (1, 1), (0, 0, 0, 0))),
    Case("DeformableOffsets", [(1, 4, 6, 7), (1, 36, 4, 6)],
         lambda x, o: sampled(x, o, (3, 2), (2, 1), (1, 2), (1, 0), 2),
         attributes=attrs((3, 2), (2, 1), (1, 2), (1, 2, 0, 1), 2)),
    Case("DeformableOffsets", [numbers(1, 2, 4, 4, dtype=np.float64),
                               numbers(1, 12, 3, 3, dtype=np.float64)],
         lambda x, o: sampled(x, o, (2, 2), (1, 1), (1, 1), (0, 0), 1),
         attributes=attrs((2, 2), (1, 1), (1, 1), (0, 0, 0, 0))),
]  # fmt: skip
