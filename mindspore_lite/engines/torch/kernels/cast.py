"""Casts to other element types."""

from __future__ import annotations

import torch

from mindspore_lite.engines.torch.kernels.table import kernel
from mindspore_lite.engines.torch.kernels.types import torch_type
from mindspore_lite.errors import UnsupportedOpError


@kernel("Cast")
def cast(x: torch.Tensor, *, to: int, saturate: int = 1, round_mode: str = "up") -> torch.Tensor:
    """x in another type; what is too large for an 8 bit float becomes its largest number."""
    return _cast(x, torch_type(to), saturate)


@kernel("CastLike")
def cast_like(
    x: torch.Tensor, like: torch.Tensor, *, saturate: int = 1, round_mode: str = "up"
) -> torch.Tensor:
    """x in the type of another tensor."""
    return _cast(x, like.dtype, saturate)


def _cast(x: torch.Tensor, dtype: torch.dtype, saturate: int) -> torch.Tensor:
    if not (dtype.is_floating_point and dtype.itemsize == 1 and x.dtype.is_floating_point):
        return x.to(dtype)
    largest = torch.finfo(dtype).max
    if saturate:
        x = x.clamp(-largest, largest)
    elif dtype is torch.float8_e4m3fn:  # it has no infinity, and torch saturates by itself
        x = torch.where(x.abs() > largest + 16, torch.nan, x)  # 16: half of the last step
    return x.to(dtype)


@kernel("BitCast")
def bit_cast(x: torch.Tensor, *, to: int) -> torch.Tensor:
    """The same bits, read as another type of the same size."""
    dtype = torch_type(to)
    if dtype.itemsize != x.dtype.itemsize:
        raise UnsupportedOpError(f"BitCast of {x.dtype} to {dtype}, which has another size")
    return x.view(dtype)
