"""Rows for ops/lite_conv.py."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from support.op_case import Case, K, W, numbers

NHWC = {"format": 1}


def windows(x: np.ndarray, pads: Any, fill: float) -> np.ndarray:
    """An NHWC tensor padded by (top, bottom, left, right)."""
    edges = [(0, 0), tuple(pads[:2]), tuple(pads[2:]), (0, 0)]
    return np.pad(x, edges, constant_values=fill)


def conv(
    x: np.ndarray, w: np.ndarray, b: Any = 0, stride: int = 1, pads: Any = (0,) * 4,
    dilation: int = 1, group: int = 1,
) -> np.ndarray:  # fmt: skip
    """NHWC with kernels [out, h, w, in]."""
    padded = windows(x, pads, 0)
    out, kh, kw, width = w.shape
    rows = (padded.shape[1] - dilation * (kh - 1) - 1) // stride + 1
    columns = (padded.shape[2] - dilation * (kw - 1) - 1) // stride + 1
    y = np.zeros((x.shape[0], rows, columns, out), x.dtype)
    for i, j in itertools.product(range(rows), range(columns)):
        patch = padded[:, i * stride :, j * stride :][:, ::dilation, ::dilation][:, :kh, :kw]
        for o in range(out):
            first = o // (out // group) * width
            part = patch[..., first : first + width]
            y[:, i, j, o] = (part * w[o]).sum((1, 2, 3))
    return y + np.asarray(b, x.dtype)


def transposed(
    x: np.ndarray, w: np.ndarray, stride: int, cut: Any, size: Any, dilation: int = 1
) -> np.ndarray:
    """Each input pixel adds a kernel [in, h, w, out]; `cut` is what falls off at top and left."""
    n, height, width, _ = x.shape
    _, kh, kw, out = w.shape
    sizes = [s * stride + dilation * k + 4 for s, k in ((height, kh), (width, kw))]
    full = np.zeros((n, *sizes, out), x.dtype)
    for i, j, p, q in itertools.product(*map(range, (height, width, kh, kw))):
        full[:, i * stride + p * dilation, j * stride + q * dilation] += x[:, i, j] @ w[:, p, q]
    return full[:, cut[0] : cut[0] + size[0], cut[1] : cut[1] + size[1]]


def turned(x: np.ndarray) -> np.ndarray:
    return np.moveaxis(x, -1, 1)


def back(x: np.ndarray) -> np.ndarray:
    return np.moveaxis(x, 1, -1)


def attributes(**more: Any) -> dict[str, Any]:
    """As converter_lite writes a convolution."""
    plain = {"kernel_size": [3, 3], "stride": [1, 1], "dilation": [1, 1], "pad_mode": 0,
             "pad_list": [0, 0, 0, 0], "group": 1, "format": 1, "activation_type": 0}  # fmt: skip
    return {**plain, **more}


W3 = W(numbers(4, 3, 3, 3, seed=3))
DEPTHWISE = W(numbers(3, 3, 3, 1, seed=4))
BIAS = W(numbers(4, seed=5))

CONVOLUTIONS = [
    Case("Conv2DFusion", [(2, 6, 5, 3), W3, BIAS], conv, attributes=attributes()),
    Case("Conv2DFusion", [(2, 6, 5, 3), W3], conv, attributes=attributes(pad_mode=2), dynamic=True),
    Case("Conv2DFusion", [(2, 6, 5, 3), W3, BIAS],
         lambda x, w, b: np.clip(conv(x, w, b, 2, (1, 0, 0, 1)), 0, 6),
         attributes=attributes(stride=[2, 2], pad_list=[1, 0, 0, 1], activation_type=3)),
    Case("Conv2DFusion", [(2, 6, 6, 3), W3, BIAS],
         lambda x, w, b: np.maximum(conv(x, w, b, 2, (0, 1, 0, 1)), 0),
         attributes=attributes(stride=[2, 2], pad_mode=1, pad_list=[0, 1, 0, 1],
                               activation_type=1)),
    Case("Conv2DFusion", [(2, 6, 6, 3), W3, BIAS],
         lambda x, w, b: conv(x, w, b, 2, (0, 1, 0, 1)),
         attributes=attributes(stride=[2, 2], pad_mode=1, pad_list=[-1, -1, -1, -1]), dynamic=True),
    Case("Conv2DFusion", [(1, 7, 7, 3), DEPTHWISE],
         lambda x, w: conv(x, w, 0, 1, (2,) * 4, 2, 3),
         attributes=attributes(group=3, dilation=[2, 2], pad_list=[2] * 4, is_depth_wise=True)),
    Case("Conv2DFusion", [(1, 5, 5, 3), DEPTHWISE], lambda x, w: conv(x, w, group=3),
         attributes=attributes(group=0)),
    Case("Conv2DFusion", [(2, 6, 5, 3), numbers(4, 3, 3, 3)], conv, attributes=attributes()),
    Case("Conv2DFusion", [(2, 3, 6, 5), W(turned(W3.array)), BIAS],
         lambda x, w, b: turned(conv(back(x), back(w), b)), attributes=attributes(format=0)),
    Case("Conv2DFusion", [(2, 6, 5, 3), W3],
         lambda x, w: conv(x, w), attributes={"stride": [1, 1], "OriginalFormat": 1}),
    Case("Conv2D", [(2, 6, 5, 3), W3], lambda x, w: conv(x, w, 0, 2, (1, 0, 0, 1)),
         attributes=attributes(stride=[2, 2], pad_list=[1, 0, 0, 1])),
]  # fmt: skip

W_BACK = W(numbers(3, 3, 3, 2, seed=6))

TRANSPOSED = [
    Case("Conv2dTransposeFusion", [(1, 3, 4, 3), W_BACK],
         lambda x, w: transposed(x, w, 2, (1, 1), (5, 7)),
         attributes=attributes(stride=[2, 2], pad_list=[1, 1, 1, 1], output_paddings=[0, 0])),
    Case("Conv2dTransposeFusion", [(1, 3, 4, 3), W_BACK],
         lambda x, w: np.maximum(transposed(x, w, 2, (1, 1), (6, 8)), 0),
         attributes=attributes(stride=[2, 2], pad_list=[1, 1, 1, 1], output_paddings=[1, 1],
                               activation_type=1)),
    Case("Conv2dTransposeFusion", [(1, 3, 4, 3), W_BACK, W(numbers(2))],
         lambda x, w, b: transposed(x, w, 2, (0, 0), (6, 8)) + b,
         attributes=attributes(stride=[2, 2], pad_mode=1), dynamic=True),
    Case("Conv2dTransposeFusion", [(1, 3, 4, 3), W(numbers(3, 1, 1, 2))],
         lambda x, w: transposed(x, w, 2, (0, 0), (6, 8)),
         attributes=attributes(kernel_size=[1, 1], stride=[2, 2], pad_mode=1)),
    Case("Conv2dTransposeFusion", [(1, 3, 4, 3), W_BACK, K(np.array([1, 7, 9, 2], np.int32))],
         lambda x, w: transposed(x, w, 2, (0, 0), (7, 9)),
         attributes=attributes(stride=[2, 2], pad_mode=2)),
    Case("Conv2dTransposeFusion", [(1, 3, 3, 4), W(turned(W_BACK.array))],
         lambda x, w: turned(transposed(back(x), back(w), 1, (0, 0), (7, 8), 2)),
         attributes=attributes(dilation=[2, 2], format=0)),
]  # fmt: skip


def pool(
    x: np.ndarray, how: Any, k: int, stride: int, pads: Any = (0,) * 4, ceil: bool = False
) -> np.ndarray:
    """`how` is np.nanmax or np.nanmean: what is padded does not count."""
    sizes = [x.shape[1] + sum(pads[:2]), x.shape[2] + sum(pads[2:])]
    counts = [-(-(s - k) // stride) + 1 if ceil else (s - k) // stride + 1 for s in sizes]
    padded = windows(x, (pads[0], pads[1] + k, pads[2], pads[3] + k), np.nan)
    y = np.empty((x.shape[0], *counts, x.shape[3]), x.dtype)
    for i, j in itertools.product(*map(range, counts)):
        at = padded[:, i * stride : i * stride + k, j * stride : j * stride + k]
        y[:, i, j] = how(at, (1, 2))
    return y


def pooling(**more: Any) -> dict[str, Any]:
    plain = {"kernel_size": [2, 2], "strides": [2, 2], "pad": [0] * 4, "pad_mode": 0,
             "round_mode": 0, "global": False, "format": 1, "activation_type": 0}  # fmt: skip
    return {**plain, **more}


POOLS = [
    case
    for name, how in (("MaxPoolFusion", np.nanmax), ("AvgPoolFusion", np.nanmean))
    for case in [
        Case(name, [(2, 6, 5, 3)], lambda x, how=how: pool(x, how, 2, 2), attributes=pooling(),
             dynamic=True),
        Case(name, [(2, 5, 6, 3)], lambda x, how=how: pool(x, how, 3, 2, (1, 0, 1, 1)),
             attributes=pooling(kernel_size=[3, 3], pad=[1, 0, 1, 1])),
        Case(name, [(2, 7, 6, 3)], lambda x, how=how: pool(x, how, 2, 2, ceil=True),
             attributes=pooling(round_mode=1)),
        Case(name, [(2, 5, 5, 3)], lambda x, how=how: pool(x, how, 3, 2, (1,) * 4),
             attributes=pooling(kernel_size=[3, 3], pad_mode=1)),
        Case(name, [(2, 5, 5, 3)], lambda x, how=how: np.maximum(pool(x, how, 3, 1), 0),
             attributes=pooling(kernel_size=[3, 3], strides=[1, 1], pad_mode=2,
                                activation_type=1)),
        Case(name, [(2, 5, 4, 3)], lambda x, how=how: how(x, (1, 2), keepdims=True),
             attributes=pooling(**{"global": True}), dynamic=True),
        Case(name, [(2, 3, 6, 4)], lambda x, how=how: turned(pool(back(x), how, 2, 2)),
             attributes=pooling(format=0)),
    ]
] + [
    Case("AvgPoolFusion", [(1, 4, 4, 2)],
         lambda x: pool(windows(x, (1,) * 4, 0), np.nanmean, 2, 2),
         attributes=pooling(pad=[1] * 4, count_include_pad=True)),
]  # fmt: skip


def nearest(x: np.ndarray, size: tuple[int, int], pick: Any) -> np.ndarray:
    """`pick(out index, old size, new size)` -> old index."""
    for axis, new in enumerate(size, start=1):
        old = x.shape[axis]
        places = [min(max(int(pick(i, old, new)), 0), old - 1) for i in range(new)]
        x = np.take(x, places, axis)
    return x


def interpolated(x: np.ndarray, size: tuple[int, int], place: Any) -> np.ndarray:
    """Linear, axis by axis."""
    for axis, new in enumerate(size, start=1):
        old = x.shape[axis]
        at = np.clip([place(i, old, new) for i in range(new)], 0, old - 1)
        low = np.floor(at).astype(int)
        weight = (at - low).reshape([-1 if a == axis else 1 for a in range(4)]).astype(x.dtype)
        high = np.minimum(low + 1, old - 1)
        x = np.take(x, low, axis) * (1 - weight) + np.take(x, high, axis) * weight
    return x


def cubic(x: np.ndarray, size: tuple[int, int], place: Any, a: float, exclude: bool) -> np.ndarray:
    """Four neighbours, axis by axis."""

    def weight(d: float) -> float:
        d = abs(d)
        if d <= 1:
            return ((a + 2) * d - (a + 3)) * d * d + 1
        return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0

    for axis, new in enumerate(size, start=1):
        old = x.shape[axis]
        matrix = np.zeros((new, old))
        for i in range(new):
            at = place(i, old, new)
            first = int(np.floor(at)) - 1
            for j in range(first, first + 4):
                if 0 <= j < old or not exclude:
                    matrix[i, min(max(j, 0), old - 1)] += weight(at - j)
            matrix[i] /= matrix[i].sum()
        x = np.moveaxis(np.tensordot(matrix.astype(x.dtype), x, (1, axis)), 0, axis)
    return x


def half_pixel(i: int, old: int, new: int) -> float:
    return (i + 0.5) * old / new - 0.5


def corners(i: int, old: int, new: int) -> float:
    return i * (old - 1) / (new - 1)


def plain(i: int, old: int, new: int) -> float:
    return i * old / new


def sized(method: int, mode: int, **more: Any) -> dict[str, Any]:
    return {"method": method, "coordinate_transform_mode": mode, "new_height": 7, "new_width": 5,
            "format": 1, **more}  # fmt: skip


X = (2, 4, 3, 2)
S75 = (7, 5)
RESIZES = [
    Case("Resize", [X], lambda x: interpolated(x, S75, plain), attributes=sized(0, 0)),
    Case("Resize", [X], lambda x: interpolated(x, S75, corners), attributes=sized(0, 1)),
    Case("Resize", [X], lambda x: interpolated(x, S75, half_pixel), attributes=sized(0, 2),
         dynamic=True),
    Case("Resize", [X], lambda x: nearest(x, S75, plain), attributes=sized(1, 0), dynamic=True),
    Case("Resize", [X], lambda x: nearest(x, S75, lambda *a: np.floor(corners(*a) + 0.5)),
         attributes=sized(1, 1)),
    Case("Resize", [X], lambda x: nearest(x, S75, lambda *a: np.ceil(half_pixel(*a) - 0.5)),
         attributes=sized(1, 2, nearest_mode=1)),
    Case("Resize", [X], lambda x: nearest(x, S75, lambda *a: np.floor(half_pixel(*a) + 0.5)),
         attributes=sized(1, 2, nearest_mode=2)),
    Case("Resize", [X], lambda x: nearest(x, S75, plain), attributes=sized(1, 0, nearest_mode=3)),
    Case("Resize", [X], lambda x: nearest(x, S75, lambda *a: np.ceil(plain(*a))),
         attributes=sized(1, 0, nearest_mode=4)),
    Case("Resize", [X], lambda x: cubic(x, S75, half_pixel, -0.75, False),
         attributes=sized(2, 2, cubic_coeff=-0.75)),
    Case("Resize", [X], lambda x: cubic(x, S75, half_pixel, -0.5, True),
         attributes=sized(2, 2, cubic_coeff=-0.5, exclude_outside=1)),
    Case("Resize", [X, K(np.array([7, 5], np.int32))], lambda x: nearest(x, S75, plain),
         attributes={"method": 1, "format": 1}),
    Case("Resize", [X, K(np.array([2, 7, 5, 2], np.int32))], lambda x: nearest(x, S75, plain),
         attributes={"method": 1, "format": 1}),
    Case("Resize", [X, np.array([7, 5], np.int32)], lambda x, s: nearest(x, S75, plain),
         attributes={"method": 1, "format": 1}),
    Case("Resize", [X, K(np.array([1, 2, 1.5, 1], np.float32))],
         lambda x: nearest(x, (8, 5), plain), attributes={"method": 1, "format": 1}),
    Case("Resize", [X, K(np.array([2, 1.5], np.float32))],
         lambda x: nearest(x, (8, 5), plain), attributes={"method": 1, "format": 1}, dynamic=True),
    Case("Resize", [X, K(np.array([2], np.int32))],
         lambda x: interpolated(x, (7, 5), corners),
         attributes={"method": 0, "coordinate_transform_mode": 1, "format": 1}),
    Case("Resize", [(2, 2, 4, 3), K(np.array([2, 2, 7, 5], np.int32))],
         lambda x: turned(nearest(back(x), S75, plain)), attributes={"method": 1, "format": 0}),
]  # fmt: skip

CASES = [*CONVOLUTIONS, *TRANSPOSED, *POOLS, *RESIZES]
