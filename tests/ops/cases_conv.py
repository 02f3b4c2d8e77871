"""Rows for ops/conv.py."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from support.op_case import Case, K, W, numbers

F16, I32, I64 = np.float16, np.int32, np.int64


def windows(
    size: int, k: int, stride: int, dilation: int, pads: tuple[int, int], ceil: bool = False
) -> int:
    """How many windows fit into one axis; with ceil the last may hang over, but not start there."""
    room = size + sum(pads) - dilation * (k - 1) - 1
    count = (math.ceil(room / stride) if ceil else room // stride) + 1
    return count - 1 if ceil and (count - 1) * stride >= size + pads[0] else count


def patches(
    x: np.ndarray, kernel: Any, stride: Any, dilation: Any, pads: Any, fill: float, ceil: bool
) -> tuple[np.ndarray, tuple[int, ...]]:
    """All windows as (n, c, *result, *kernel); `pads` are (begin, end) per axis."""
    sizes = x.shape[2:]
    counts = tuple(
        windows(*args, ceil) for args in zip(sizes, kernel, stride, dilation, pads, strict=True)
    )
    need = [
        max((c - 1) * s + d * (k - 1) + 1 - n - p[0], p[1])
        for n, k, s, d, p, c in zip(sizes, kernel, stride, dilation, pads, counts, strict=True)
    ]
    edges = [(0, 0), (0, 0), *[(p[0], e) for p, e in zip(pads, need, strict=True)]]
    padded = np.pad(x, edges, constant_values=fill)
    out = np.empty((*x.shape[:2], *counts, *kernel), x.dtype)
    for at in itertools.product(*map(range, counts)):
        cut = tuple(
            slice(a * s, a * s + d * (k - 1) + 1, d)
            for a, s, d, k in zip(at, stride, dilation, kernel, strict=True)
        )
        out[(slice(None), slice(None), *at)] = padded[(slice(None), slice(None), *cut)]
    return out, counts


def same_pads(sizes: Sequence[int], kernel: Any, stride: Any, dilation: Any) -> list[Any]:
    """SAME: as many results as ceil(size / stride), the odd zero at the end."""
    pads = []
    for n, k, s, d in zip(sizes, kernel, stride, dilation, strict=True):
        need = max((math.ceil(n / s) - 1) * s + d * (k - 1) + 1 - n, 0)
        pads.append((need // 2, need - need // 2))
    return pads


def conv(
    x: np.ndarray, w: np.ndarray, stride: Any, pads: Any, dilation: Any = None, group: int = 1
) -> np.ndarray:
    dims = x.ndim - 2
    dilation = dilation or (1,) * dims
    if pads == "same":
        pads = same_pads(x.shape[2:], w.shape[2:], stride, dilation)
    cut, counts = patches(x, w.shape[2:], stride, dilation, pads, 0, False)
    n, o = x.shape[0], w.shape[0]
    cut = cut.reshape(n, group, -1, *counts, math.prod(w.shape[2:]))
    kernel = w.reshape(group, o // group, -1, math.prod(w.shape[2:]))
    return np.einsum("ngc...k,gock->ngo...", cut, kernel).reshape(n, o, *counts)


def pool(
    x: np.ndarray, kernel: Any, stride: Any, pads: Any, kind: str = "max", dilation: Any = None,
    ceil: bool = False,
) -> np.ndarray:  # fmt: skip
    """max, mean (padding left out) or mean0 (padding counts)."""
    dims = len(kernel)
    dilation = dilation or (1,) * dims
    if pads == "same":
        pads = same_pads(x.shape[2:], kernel, stride, dilation)
    cut, counts = patches(x, kernel, stride, dilation, pads, np.nan, ceil)
    flat = cut.reshape(*x.shape[:2], *counts, -1)
    if kind == "max":
        return np.nanmax(flat, -1)
    return np.nanmean(flat, -1) if kind == "mean" else np.nan_to_num(flat).mean(-1)


def nhwc(fn: Any) -> Any:
    """A channels-first reference for channels-last data."""
    return lambda x: fn(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1)


def attrs(
    mode: str,
    pad_list: Any = None,
    stride: Any = (1, 1),
    dilation: Any = (1, 1),
    group: int = 1,
    **more: Any,
) -> dict[str, Any]:
    """What MindSpore 2 writes at a Conv2D."""
    found = {
        "pad_mode": mode,
        "stride": (1, 1, *stride),
        "dilation": (1, 1, *dilation),
        "group": group,
        "format": "NCHW",
        "pad": (0, 0, 0, 0),
        **more,
    }
    return found if pad_list is None else {**found, "pad_list": pad_list}


NONE2 = ((0, 0), (0, 0))
IMG = (2, 4, 7, 8)

CONVOLUTIONS = [
    Case("Conv2D", [IMG, (3, 4, 3, 3)], lambda x, w: conv(x, w, (1, 1), NONE2),
         attributes=attrs("valid", (0, 0, 0, 0)), dynamic=True),
    Case("Conv2D", [IMG, W(numbers(3, 4, 3, 2))], lambda x, w: conv(x, w, (2, 1), NONE2),
         attributes=attrs("valid", stride=(2, 1))),
    Case("Conv2D", [IMG, (3, 4, 3, 3)], lambda x, w: conv(x, w, (1, 2), ((1, 2), (0, 3))),
         attributes=attrs("pad", (1, 2, 0, 3), stride=(1, 2))),
    Case("Conv2D", [IMG, (3, 4, 3, 3)], lambda x, w: conv(x, w, (1, 1), ((1, 1), (2, 2))),
         attributes=attrs("pad", pad=(1, 1, 2, 2))),
    Case("Conv2D", [IMG, (3, 4, 3, 4)], lambda x, w: conv(x, w, (2, 3), "same"),
         attributes=attrs("same", (-1, -1, -1, -1), stride=(2, 3)), dynamic=True),
    Case("Conv2D", [IMG, (3, 4, 3, 3)], lambda x, w: conv(x, w, (2, 2), "same"),
         attributes=attrs("same", (1, 1, 0, 1), stride=(2, 2))),
    Case("Conv2D", [IMG, (3, 4, 3, 3)], lambda x, w: conv(x, w, (1, 1), "same"),
         attributes=attrs("same")),
    Case("Conv2D", [IMG, (6, 2, 3, 3)], lambda x, w: conv(x, w, (1, 1), NONE2, group=2),
         attributes=attrs("valid", group=2)),
    Case("Conv2D", [IMG, (4, 1, 3, 3)], lambda x, w: conv(x, w, (1, 1), NONE2, group=4),
         attributes=attrs("VALID", group=4)),
    Case("Conv2D", [IMG, (3, 4, 2, 3)], lambda x, w: conv(x, w, (1, 1), NONE2, (3, 2)),
         attributes=attrs("valid", dilation=(3, 2))),
    Case("Conv2D", [IMG, (3, 4, 3, 3)], lambda x, w: conv(x, w, (2, 2), NONE2),
         attributes={"pad_mode": 2, "stride": (2, 2), "dilation": (1, 1), "group": 1}),
    Case("Conv2D", [(2, 7, 8, 4), (3, 3, 2, 4)],
         lambda x, w: nhwc(lambda x: conv(x, w.transpose(0, 3, 1, 2), (1, 1), NONE2))(x),
         attributes=attrs("valid", format="NHWC")),
    Case("Conv2D", [(2, 7, 8, 4), (3, 3, 3, 4)],
         lambda x, w: nhwc(lambda x: conv(x, w.transpose(0, 3, 1, 2), (2, 2), "same"))(x),
         attributes=attrs("same", stride=(2, 2), format="NHWC")),
    Case("Conv3D", [(1, 2, 4, 5, 6), (3, 2, 2, 3, 3)],
         lambda x, w: conv(x, w, (1, 2, 1), ((0, 1), (1, 0), (1, 2))),
         attributes={"pad_mode": "pad", "pad_list": (0, 1, 1, 0, 1, 2), "strides": (1, 1, 1, 2, 1),
                     "dilations": (1, 1, 1, 1, 1), "group": 1}),
    Case("Conv3D", [(1, 2, 4, 5, 6), (4, 1, 2, 2, 2)],
         lambda x, w: conv(x, w, (2, 2, 2), "same", group=2),
         attributes={"pad_mode": "same", "strides": (1, 1, 2, 2, 2), "group": 2}),
]  # fmt: skip

BIASES = [
    Case("BiasAdd", [(2, 3, 4, 4), (3,)], lambda x, b: x + b.reshape(3, 1, 1), {"data_format": 0},
         dynamic=True),
    Case("BiasAdd", [(2, 4, 4, 3), (3,)], np.add, {"data_format": 1}),
    Case("BiasAdd", [(2, 3), (3,)], np.add, {"data_format": 0}),
    Case("BiasAdd", [(2, 3, 4), (3,)], lambda x, b: x + b.reshape(3, 1), {"data_format": 0}),
    Case("BiasAdd", [(1, 3, 2, 2, 2), (3,)], lambda x, b: x + b.reshape(3, 1, 1, 1),
         {"data_format": 14}),
    Case("BiasAdd", [numbers(2, 3, 4, 4, dtype=F16), numbers(3, dtype=F16)],
         lambda x, b: x + b.reshape(3, 1, 1), {"data_format": 0}),
]  # fmt: skip


def pooling(kernel: Any, strides: Any, mode: str, fmt: str = "NCHW") -> dict[str, Any]:
    return {"kernel_size": kernel, "strides": strides, "pad_mode": mode, "format": fmt}


def avg(kernel: Any, strides: Any, mode: int, fmt: int = 0) -> dict[str, Any]:
    return {"kernel_size": kernel, "strides": strides, "pad_mode": mode, "data_format": fmt}


POOLS = [
    Case("MaxPool", [IMG], lambda x: pool(x, (2, 3), (2, 1), NONE2),
         attributes=pooling((1, 1, 2, 3), (1, 1, 2, 1), "VALID"), dynamic=True),
    Case("MaxPool", [IMG], lambda x: pool(x, (3, 3), (2, 2), "same"),
         attributes=pooling((1, 1, 3, 3), (1, 1, 2, 2), "SAME"), dynamic=True),
    Case("MaxPool", [(2, 7, 8, 4)], nhwc(lambda x: pool(x, (3, 2), (2, 2), NONE2)),
         attributes=pooling((1, 3, 2, 1), (1, 2, 2, 1), "VALID", "NHWC")),
    Case("AvgPool", [IMG], lambda x: pool(x, (2, 3), (2, 1), NONE2, "mean"),
         avg((2, 3), (2, 1), 2), dynamic=True),
    Case("AvgPool", [IMG], lambda x: pool(x, (3, 3), (2, 2), "same", "mean"),
         avg((3, 3), (2, 2), 1)),
    Case("AvgPool", [(2, 7, 8, 4)], nhwc(lambda x: pool(x, (3, 2), (2, 2), "same", "mean")),
         avg((3, 2), (2, 2), 1, 1)),
    Case("AvgPool", [IMG], lambda x: pool(x, (2, 2), (2, 2), NONE2, "mean"),  # old files: 4 sizes
         attributes=pooling((1, 1, 2, 2), (1, 1, 2, 2), "VALID")),
]  # fmt: skip


def with_argmax(x: np.ndarray, kernel: Any, stride: Any, pads: Any, **more: Any) -> Any:
    """(largest, flat place inside its channel); all numbers of x differ."""
    y = pool(x, kernel, stride, pads, **more)
    index = np.zeros(y.shape, I64)
    for at in np.ndindex(*y.shape):
        index[at] = np.flatnonzero(x[at[0], at[1]].reshape(-1) == y[at])[0]
    return y, index


def distinct(*shape: int) -> np.ndarray:
    found = np.random.default_rng(7).permutation(math.prod(shape)).astype(np.float32)
    return found.reshape(shape)


POOLS_3D = [
    Case("MaxPool3DWithArgmax", [distinct(2, 3, 1, 6, 7)],
         lambda x: with_argmax(x, (1, 3, 3), (1, 2, 2), ((0, 0), (1, 1), (1, 1))),
         attributes={"ksize": (1, 3, 3), "strides": (1, 2, 2), "pads": (0, 1, 1),
                     "dilation": (1, 1, 1), "ceil_mode": False}),
    Case("MaxPool3DWithArgmax", [distinct(1, 2, 3, 4, 6)],
         lambda x: with_argmax(x, (2, 2, 2), (1, 2, 3), ((0, 0),) * 3, dilation=(1, 2, 1))[0],
         attributes={"ksize": (2, 2, 2), "strides": (1, 2, 3), "dilation": (1, 2, 1)}, pick=0),
    Case("MaxPoolWithArgmaxV2", [distinct(2, 3, 6, 7)],
         lambda x: with_argmax(x, (3, 2), (2, 2), ((1, 1), (0, 0))),
         attributes={"kernel_size": (1, 1, 3, 2), "strides": (1, 1, 2, 2), "pads": (1, 1, 1, 0)}),
    Case("MaxPoolWithArgmaxV2", [distinct(2, 3, 6, 7)],
         lambda x: with_argmax(x, (2, 2), (2, 2), NONE2, ceil=True)[0],
         attributes={"kernel_size": (2, 2), "ceil_mode": True}, pick=0),
    Case("AvgPool3D", [(1, 2, 4, 5, 6)],
         lambda x: pool(x, (2, 2, 3), (2, 1, 1), ((0, 0),) * 3, "mean"),
         attributes={"kernel_size": (1, 1, 2, 2, 3), "strides": (1, 1, 2, 1, 1),
                     "pad_mode": "VALID"}),
    Case("AvgPool3D", [(1, 2, 4, 5, 6)],
         lambda x: pool(x, (2, 2, 2), (2, 2, 2), ((0, 1), (1, 0), (1, 1)), "mean0"),
         attributes={"kernel_size": (1, 1, 2, 2, 2), "strides": (1, 1, 2, 2, 2), "pad_mode": "PAD",
                     "pad_list": (0, 1, 1, 0, 1, 1), "count_include_pad": True}),
    Case("AvgPool3D", [(1, 2, 1, 5, 6)],
         lambda x: pool(x, (1, 3, 3), (1, 2, 2), ((0, 0), (1, 1), (1, 1)), "mean"),
         attributes={"kernel_size": (1, 1, 1, 3, 3), "strides": (1, 1, 1, 2, 2),
                     "pad_mode": "CALCULATED", "pad_list": (0, 0, 1, 1, 1, 1),
                     "count_include_pad": False}),
]  # fmt: skip


def adaptive(x: np.ndarray, axis: int, size: int) -> np.ndarray:
    n = x.shape[axis]
    bins = [(i * n // size, -(-(i + 1) * n // size)) for i in range(size)]
    parts = [np.take(x, range(a, b), axis).mean(axis, keepdims=True) for a, b in bins]
    return np.concatenate(parts, axis)


ADAPTIVE = [
    Case("AdaptiveAvgPool2D", [IMG], lambda x: x.mean((2, 3), keepdims=True),
         attributes={"output_size": (1, 1)}, dynamic=True),
    Case("AdaptiveAvgPool2D", [IMG], lambda x: adaptive(adaptive(x, 2, 3), 3, 5),
         attributes={"output_size": (3, 5)}),
    Case("AdaptiveAvgPool2D", [IMG], lambda x: adaptive(x, 3, 4),
         attributes={"output_size": (-1, 4)}),
    Case("AdaptiveAvgPool2D", [(4, 7, 8)], lambda x: adaptive(adaptive(x, 1, 2), 2, 2),
         attributes={"output_size": 2}),
    Case("AdaptiveAvgPool2DExt", [IMG, K((2, None))], lambda x: adaptive(x, 2, 2)),
    Case("AdaptiveAvgPool2DExt", [IMG, K((9, 9))], lambda x: adaptive(adaptive(x, 2, 9), 3, 9)),
]  # fmt: skip

CASES = [*CONVOLUTIONS, *BIASES, *POOLS, *POOLS_3D, *ADAPTIVE]
