"""Quantisation: real numbers as small integers or 8 bit floats, and back."""

from __future__ import annotations

import torch

from mindspore_lite.engines.torch.kernels.table import kernel
from mindspore_lite.engines.torch.kernels.types import torch_type


def quantized(x: torch.Tensor, zero_point: torch.Tensor | None, dtype: torch.dtype) -> torch.Tensor:
    """x, already divided by its scale, rounded half to even and limited to what the type holds."""
    y = torch.round(x)
    if zero_point is not None:
        y = y + zero_point.to(x.dtype)
    info = torch.iinfo(dtype)
    return torch.clamp(y, info.min, info.max).to(dtype)


@kernel("QuantizeLinear", half="wide")
def quantize_linear(
    x: torch.Tensor,
    scale: torch.Tensor,
    zero_point: torch.Tensor | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
) -> torch.Tensor:
    """round(x / scale) + zero_point."""
    if zero_point is not None:
        dtype = zero_point.dtype
    else:
        dtype = torch_type(output_dtype) if output_dtype else torch.uint8
    exact = torch_type(precision) if precision else scale.dtype
    y = x.to(exact) / _along(scale, x, axis, block_size).to(exact)
    point = None if zero_point is None else _along(zero_point, x, axis, block_size)
    if dtype.is_floating_point:
        y = y if point is None else y + point.to(exact)
        return to_float8(y, dtype, saturate)
    return quantized(y, point, dtype)


@kernel("DequantizeLinear", half="wide")
def dequantize_linear(
    x: torch.Tensor,
    scale: torch.Tensor,
    zero_point: torch.Tensor | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> torch.Tensor:
    """(x - zero_point) * scale."""
    dtype = torch_type(output_dtype) if output_dtype else scale.dtype
    exact = torch.int32 if not x.is_floating_point() else dtype
    y = x.to(exact)
    if zero_point is not None:
        y = y - _along(zero_point, x, axis, block_size).to(exact)
    return y.to(dtype) * _along(scale, x, axis, block_size).to(dtype)


def _along(values: torch.Tensor, x: torch.Tensor, axis: int, block_size: int) -> torch.Tensor:
    """Scales or zero points, one or one by axis or by block, in a shape that goes with x."""
    if values.numel() == 1 and not (block_size and values.dim() == x.dim()):
        return values.reshape(())
    if block_size:
        repeated = values.repeat_interleave(block_size, axis)
        return repeated.narrow(axis, 0, x.shape[axis])
    shape = [1] * x.dim()
    shape[axis] = -1
    return values.reshape(shape)


def to_float8(x: torch.Tensor, dtype: torch.dtype, saturate: int) -> torch.Tensor:
    """x as an 8 bit float; what is too large becomes the largest, if that is asked for."""
    if saturate:
        info = torch.finfo(dtype)
        x = torch.clamp(x, info.min, info.max)
    return x.to(dtype)


@kernel("DynamicQuantizeLinear", half="wide")
def dynamic_quantize_linear(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """x as uint8, and the scale and zero point that its smallest and largest element ask for."""
    ends = (x.amin(), x.amax()) if x.numel() else (x.new_zeros(()),) * 2
    low, high = torch.clamp(ends[0], max=0), torch.clamp(ends[1], min=0)
    scale = (high - low) / 255
    scale = torch.where(scale == 0, torch.ones_like(scale), scale)
    zero_point = torch.clamp(torch.round(-low / scale), 0, 255)
    return quantized(x / scale, zero_point, torch.uint8), scale, zero_point.to(torch.uint8)
