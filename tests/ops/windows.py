"""NumPy references of ops that look at windows of an image; nothing here knows ONNX."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

NONE2 = ((0, 0), (0, 0))


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


def with_argmax(x: np.ndarray, kernel: Any, stride: Any, pads: Any, **more: Any) -> Any:
    """(largest, flat place inside its channel); all numbers of x differ."""
    y = pool(x, kernel, stride, pads, **more)
    index = np.zeros(y.shape, np.int64)
    for at in np.ndindex(*y.shape):
        index[at] = np.flatnonzero(x[at[0], at[1]].reshape(-1) == y[at])[0]
    return y, index


def distinct(*shape: int) -> np.ndarray:
    found = np.random.default_rng(7).permutation(math.prod(shape)).astype(np.float32)
    return found.reshape(shape)


def conv_transposed(
    x: np.ndarray, w: np.ndarray, stride: Any, pads: Any, size: Any = None, dilation: Any = None,
    group: int = 1,
) -> np.ndarray:  # fmt: skip
    """Each number of x adds its multiple of the kernel; pads are (begin, end) per axis."""
    dims = x.ndim - 2
    dilation, kernel = dilation or (1,) * dims, w.shape[2:]
    whole = [
        (n - 1) * s + d * (k - 1) + 1
        for n, s, d, k in zip(x.shape[2:], stride, dilation, kernel, strict=True)
    ]
    size = size or [f - b - e for f, (b, e) in zip(whole, pads, strict=True)]
    room = [max(f, b + n) for f, (b, _), n in zip(whole, pads, size, strict=True)]
    y = np.zeros((x.shape[0], w.shape[1] * group, *room), x.dtype)
    parts = x.reshape(x.shape[0], group, -1, *x.shape[2:])
    kernels = w.reshape(group, -1, *w.shape[1:])
    for at in np.ndindex(*x.shape[2:]):
        for place in np.ndindex(*kernel):
            to = tuple(
                a * s + p * d for a, s, p, d in zip(at, stride, place, dilation, strict=True)
            )
            took = parts[(slice(None), slice(None), slice(None), *at)]
            by = kernels[(slice(None), slice(None), slice(None), *place)]
            added = np.einsum("ngi,gio->ngo", took, by).reshape(x.shape[0], -1)
            y[(slice(None), slice(None), *to)] += added
    cut = [slice(b, b + n) for (b, _), n in zip(pads, size, strict=True)]
    return y[(slice(None), slice(None), *cut)]
