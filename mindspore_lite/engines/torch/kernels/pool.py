"""Pooling over windows and whole planes."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.nn import functional as F

from mindspore_lite.engines.torch.kernels.table import kernel
from mindspore_lite.engines.torch.kernels.windows import Windows, padded, windows

_MAX: tuple[Any, ...] = (F.max_pool1d, F.max_pool2d, F.max_pool3d)
_AVERAGE: tuple[Any, ...] = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)
_CONVOLVE: tuple[Any, ...] = (F.conv1d, F.conv2d, F.conv3d)
Ints = list[int]


@kernel("MaxPool")
def max_pool(
    x: torch.Tensor,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Ints | None = None,
    kernel_shape: Ints,
    pads: Ints | None = None,
    storage_order: int = 0,
    strides: Ints | None = None,
    outputs: int = 1,
) -> Any:
    """The largest element of each window, and where it lies in the whole tensor."""
    at = windows(x, kernel_shape, strides, dilations, pads, auto_pad)
    real = x if x.is_floating_point() else x.to(torch.float32)  # cards pool no integers
    padding, cut = at.begins, (0,) * at.rank
    if not _torch_pads(at):
        more = at.beyond(at.counts(ceil_mode))
        ends = [end + further for end, further in zip(at.ends, more, strict=True)]
        real = padded(real, at.begins, ends, -math.inf)
        padding, cut, ceil_mode = cut, padding, 0
    pool = _MAX[at.rank - 1]
    rest = (at.kernel, at.strides, padding, at.dilations, bool(ceil_mode))
    if outputs == 1:
        return pool(real, *rest).to(x.dtype)
    y, places = pool(real, *rest, return_indices=True)
    return y.to(x.dtype), _in_whole(places, real.shape[2:], cut, x.shape[2:], storage_order)


def _torch_pads(at: Windows) -> bool:
    """Whether torch can pad by itself, which it does up to half a window."""
    return at.symmetric and all(2 * b <= k for b, k in zip(at.begins, at.kernel, strict=True))


def _in_whole(
    places: torch.Tensor, padded_sizes: Any, begins: Any, sizes: Any, storage_order: int
) -> torch.Tensor:
    """Places within padded planes as places in the whole tensor, rows or columns first."""
    steps = [math.prod(sizes[at + 1 :]) for at in range(len(sizes))]
    if storage_order:
        steps = [math.prod(sizes[:at]) for at in range(len(sizes))]
    found = torch.zeros_like(places)
    for at in reversed(range(len(sizes))):
        found = found + (places % padded_sizes[at] - begins[at]) * steps[at]
        places = torch.div(places, padded_sizes[at], rounding_mode="trunc")
    planes = torch.arange(places.shape[0] * places.shape[1], device=places.device)
    planes = planes.reshape(*places.shape[:2], *[1] * len(sizes))
    return found + planes * math.prod(sizes)


@kernel("AveragePool")
def average_pool(
    x: torch.Tensor,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Ints | None = None,
    kernel_shape: Ints,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> torch.Tensor:
    """The mean of each window, over what lies in x or in its pads as well."""
    at = windows(x, kernel_shape, strides, dilations, pads, auto_pad)
    # torch has no half precisions in three dims on the CPU
    wide = x.to(torch.float32) if at.rank == 3 and x.dtype.itemsize == 2 else x
    if _torch_pads(at) and set(at.dilations) == {1}:
        rest = (at.kernel, at.strides, at.begins, bool(ceil_mode), bool(count_include_pad))
        return _AVERAGE[at.rank - 1](wide, *rest).to(x.dtype)
    counted = torch.ones((1, 1, *x.shape[2:]), dtype=x.dtype, device=x.device)
    if count_include_pad:
        counted = padded(counted, at.begins, at.ends, 1)
    counts = _window_sums(counted, at, ceil_mode, 0 if count_include_pad else 1)
    return _window_sums(x, at, ceil_mode) / counts


def _window_sums(x: torch.Tensor, at: Windows, ceil_mode: int, pad: int = 1) -> torch.Tensor:
    """The sum of each window; x is padded first, unless it is so already."""
    more = at.beyond(at.counts(ceil_mode))
    begins = [b * pad for b in at.begins]
    x = padded(x, begins, [e * pad + m for e, m in zip(at.ends, more, strict=True)])
    planes = x.reshape(-1, 1, *x.shape[2:])
    ones = torch.ones((1, 1, *at.kernel), dtype=x.dtype, device=x.device)
    rest = (None, at.strides, 0, at.dilations)
    y = _CONVOLVE[at.rank - 1](planes, ones, *rest)
    return y.reshape(*x.shape[:2], *y.shape[2:])


@kernel("LpPool", half="wide")
def lp_pool(
    x: torch.Tensor,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Ints | None = None,
    kernel_shape: Ints,
    p: int = 2,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> torch.Tensor:
    """The p-norm of each window."""
    at = windows(x, kernel_shape, strides, dilations, pads, auto_pad)
    return _window_sums(x.abs() ** p, at, ceil_mode) ** (1 / p)


def _planes(x: torch.Tensor) -> list[int]:
    return list(range(2, x.dim()))


@kernel("GlobalAveragePool")
def global_average_pool(x: torch.Tensor) -> torch.Tensor:
    """The mean of each plane."""
    return torch.mean(x, _planes(x), keepdim=True)


@kernel("GlobalMaxPool")
def global_max_pool(x: torch.Tensor) -> torch.Tensor:
    """The largest element of each plane."""
    return torch.amax(x, _planes(x), keepdim=True)


@kernel("GlobalLpPool", half="wide")
def global_lp_pool(x: torch.Tensor, *, p: int = 2) -> torch.Tensor:
    """The p-norm of each plane."""
    return torch.sum(x.abs() ** p, _planes(x), keepdim=True) ** (1 / p)


@kernel("MaxUnpool", numbers=("output_shape",))
def max_unpool(
    x: torch.Tensor,
    places: torch.Tensor,
    output_shape: Ints | None = None,
    *,
    kernel_shape: Ints,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> torch.Tensor:
    """The elements of x where MaxPool found them, zeros elsewhere."""
    rank = len(kernel_shape)
    steps, edges = strides or [1] * rank, pads or [0] * (2 * rank)
    sizes = [
        (size - 1) * s + k - begin - end
        for size, s, k, begin, end in zip(
            x.shape[2:], steps, kernel_shape, edges[:rank], edges[rank:], strict=True
        )
    ]
    shape = [*x.shape[:2], *sizes]
    y = torch.zeros(math.prod(shape), dtype=x.dtype, device=x.device)
    y = y.scatter(0, places.reshape(-1), x.reshape(-1)).reshape(shape)
    if output_shape is None:
        return y
    ends = [wanted - size for wanted, size in zip(output_shape, shape, strict=True)]
    return padded(y, [0] * len(ends), ends)


@kernel("MaxRoiPool")
def max_roi_pool(
    x: torch.Tensor, regions: torch.Tensor, *, pooled_shape: Ints, spatial_scale: float = 1.0
) -> torch.Tensor:
    """The largest element of each part of each region; 0 for a part without any."""
    found = x.index_select(0, regions[:, 0].to(torch.int64))
    corners = torch.floor(regions[:, 1:] * spatial_scale + 0.5)
    for axis, first in ((2, 1), (3, 0)):  # y1 and y2, x1 and x2
        inside = _parts(
            corners[:, first], corners[:, first + 2], x.shape[axis], pooled_shape[axis - 2]
        )
        shape = [inside.shape[0], 1, inside.shape[1], *[1] * 2]
        shape[axis + 1] = x.shape[axis]
        inside = inside.reshape(shape)
        found = torch.where(inside, found.unsqueeze(2), -math.inf).amax(axis + 1)
        found = found if axis == 2 else found.transpose(2, 3)
    return torch.where(found == -math.inf, torch.zeros_like(found), found)


def _parts(low: torch.Tensor, high: torch.Tensor, size: int, count: int) -> torch.Tensor:
    """Which of so many places each part of each region holds, along one axis."""
    length = torch.clamp(high - low + 1, min=1)[:, None] / count
    at = torch.arange(count, device=low.device)
    begin = torch.clamp(torch.floor(at * length) + low[:, None], 0, size)
    end = torch.clamp(torch.ceil((at + 1) * length) + low[:, None], 0, size)
    places = torch.arange(size, device=low.device)
    return (places >= begin[..., None]) & (places < end[..., None])
