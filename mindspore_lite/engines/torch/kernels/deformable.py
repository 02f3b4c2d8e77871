"""Deformable convolutions."""

from __future__ import annotations

import math

import torch
from torch.nn import functional as F

from mindspore_lite.engines.torch.kernels.table import kernel
from mindspore_lite.engines.torch.kernels.windows import Windows, windows

Ints = list[int]


@kernel("DeformConv", half="wide")
def deform_conv(
    x: torch.Tensor,
    w: torch.Tensor,
    offset: torch.Tensor,
    b: torch.Tensor | None = None,
    mask: torch.Tensor | None = None,
    *,
    dilations: Ints | None = None,
    group: int = 1,
    kernel_shape: Ints | None = None,
    offset_group: int = 1,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> torch.Tensor:
    """A convolution of an image, each element of the kernel at a place moved by `offset`."""
    at = windows(x, w.shape[2:], strides, dilations, pads, "NOTSET")
    batch, channels, height, width = x.shape
    rows, columns = at.counts()
    places = math.prod(at.kernel)
    sets = batch * offset_group  # each set of channels has its own places
    moves = offset.reshape(sets, *at.kernel, 2, rows, columns)
    down = moves[:, :, :, 0] + _places(at, 0, x).reshape(at.kernel[0], 1, rows, 1)
    right = moves[:, :, :, 1] + _places(at, 1, x).reshape(at.kernel[1], 1, columns)
    found = _sampled(x.reshape(sets, -1, height, width), down.flatten(1), right.flatten(1))
    if mask is not None:
        found = found * mask.reshape(sets, 1, -1)
    found = found.reshape(batch, channels * places, rows, columns)
    return F.conv2d(found, w.reshape(w.shape[0], -1, 1, 1), b, groups=group)


def _sampled(x: torch.Tensor, down: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """The elements of each plane at places between its pixels; outside there are zeros.

    grid_sample does the same, but its places from -1 to 1 cost digits.
    """
    height, width = x.shape[2:]
    top, left = torch.floor(down), torch.floor(right)
    total = torch.zeros((), dtype=x.dtype, device=x.device)
    for row, near_row in ((top, 1 - (down - top)), (top + 1, down - top)):
        for column, near in ((left, 1 - (right - left)), (left + 1, right - left)):
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            place = row.clamp(0, height - 1).to(torch.int64) * width
            place = place + column.clamp(0, width - 1).to(torch.int64)
            place = place[:, None].expand(-1, x.shape[1], -1)
            total = total + x.flatten(2).gather(2, place) * (near_row * near * inside)[:, None]
    return total


def _places(at: Windows, axis: int, x: torch.Tensor) -> torch.Tensor:
    """Where each element of a kernel lies along an axis, in each window."""
    kernel = torch.arange(at.kernel[axis], device=x.device) * at.dilations[axis]
    starts = torch.arange(at.counts()[axis], device=x.device) * at.strides[axis] - at.begins[axis]
    return (kernel[:, None] + starts).to(x.dtype)
