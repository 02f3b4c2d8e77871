"""Convolutions."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

from mindspore_lite.engines.torch.kernels.quant import quantized
from mindspore_lite.engines.torch.kernels.table import kernel
from mindspore_lite.engines.torch.kernels.windows import Windows, padded, windows

_CONVOLVE: tuple[Any, ...] = (F.conv1d, F.conv2d, F.conv3d)
Ints = list[int]


@kernel("Conv", half="narrow", layouts={"w": "channels_last"})
def conv(
    x: torch.Tensor,
    w: torch.Tensor,
    b: torch.Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Ints | None = None,
    group: int = 1,
    kernel_shape: Ints | None = None,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> torch.Tensor:
    """x convolved with w, and b added; w itself gives the shape of the kernel."""
    at = windows(x, w.shape[2:], strides, dilations, pads, auto_pad)
    if x.device.type != "cpu" and group == 1 and _cuts_patches(x, w, at):
        return patches(x, w, b)
    padding = at.begins
    if not at.symmetric:
        x, padding = padded(x, at.begins, at.ends), (0,) * at.rank
    return _CONVOLVE[at.rank - 1](x, w, b, at.strides, padding, at.dilations, group)


def _cuts_patches(x: torch.Tensor, w: torch.Tensor, at: Windows) -> bool:
    """Whether the windows lie side by side and cover all of x, as those of vision transformers."""
    sizes = w.shape[2:]
    return (
        at.rank == 2
        and tuple(at.strides) == tuple(sizes)
        and sizes.numel() > 1
        and not any((*at.begins, *at.ends))
        and all(dim % size == 0 for dim, size in zip(x.shape[2:], sizes, strict=True))
        and all(step == 1 for step in at.dilations)
    )


def patches(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None) -> torch.Tensor:
    """A convolution whose windows do not overlap, as one product of matrices.

    With it ViT-B/16 (float16, batch 8) took 1.59 ms on an H200, and 1.71 in a run without.
    """
    count, channels, height, width = x.shape
    tall, wide = w.shape[2:]
    cut = x.reshape(count, channels, height // tall, tall, width // wide, wide)
    rows = cut.permute(0, 2, 4, 3, 5, 1).reshape(count, -1, tall * wide * channels)
    y = F.linear(rows, w.permute(0, 2, 3, 1).reshape(len(w), -1), b)
    return y.transpose(1, 2).reshape(count, len(w), height // tall, width // wide)


def _centred(x: torch.Tensor, zero_point: torch.Tensor | None) -> torch.Tensor:
    """Quantised numbers without their zero points, one or one by output channel.

    They are float64, in which sums of products stay exact, and which cards have convolutions for.
    """
    wide = x.to(torch.float64)
    if zero_point is None:
        return wide
    shape = [-1] + [1] * (x.dim() - 1) if zero_point.numel() > 1 else []
    return wide - zero_point.to(torch.float64).reshape(shape)


@kernel("ConvInteger")
def conv_integer(
    x: torch.Tensor,
    w: torch.Tensor,
    x_zero_point: torch.Tensor | None = None,
    w_zero_point: torch.Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Ints | None = None,
    group: int = 1,
    kernel_shape: Ints | None = None,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> torch.Tensor:
    """A convolution of quantised numbers in int32; what is padded is the zero point."""
    y = conv(
        _centred(x, x_zero_point),
        _centred(w, w_zero_point),
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        pads=pads,
        strides=strides,
    )
    return y.to(torch.int32)


@kernel("QLinearConv")
def qlinear_conv(
    x: torch.Tensor,
    x_scale: torch.Tensor,
    x_zero_point: torch.Tensor,
    w: torch.Tensor,
    w_scale: torch.Tensor,
    w_zero_point: torch.Tensor,
    y_scale: torch.Tensor,
    y_zero_point: torch.Tensor,
    b: torch.Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Ints | None = None,
    group: int = 1,
    kernel_shape: Ints | None = None,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> torch.Tensor:
    """A convolution of quantised numbers, quantised; b has the scales of x and w."""
    y = conv(
        _centred(x, x_zero_point),
        _centred(w, w_zero_point),
        None if b is None else b.to(torch.float64),
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        pads=pads,
        strides=strides,
    )
    scale = x_scale * w_scale / y_scale
    scale = scale.reshape([-1] + [1] * (x.dim() - 2)) if scale.numel() > 1 else scale
    return quantized(y.to(torch.float32) * scale, y_zero_point, y_zero_point.dtype)


@kernel("CausalConvWithState", half="narrow")
def causal_conv(
    x: torch.Tensor,
    w: torch.Tensor,
    b: torch.Tensor | None = None,
    past: torch.Tensor | None = None,
    *,
    activation: str = "none",
) -> tuple[torch.Tensor, torch.Tensor]:
    """A convolution by channel that looks back only, and what the next one looks back at."""
    back = w.shape[-1] - 1
    before = F.pad(x, (back, 0)) if past is None else torch.cat([past, x], -1)
    y = F.conv1d(before, w, b, groups=x.shape[1])
    return F.silu(y) if activation in ("silu", "swish") else y, before[..., x.shape[-1] :]
