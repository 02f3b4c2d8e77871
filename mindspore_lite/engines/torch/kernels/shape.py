"""Reading and changing shapes."""

from __future__ import annotations

import math
from typing import Any

import torch

from mindspore_lite.engines.torch.kernels.table import kernel


@kernel("Shape")
def shape(x: torch.Tensor, *, start: int = 0, end: int | None = None) -> torch.Tensor:
    """The dims of x, or some of them; always on the host."""
    return torch.tensor(list(x.shape)[start:end], dtype=torch.int64, device="cpu")


@kernel("Size")
def size(x: torch.Tensor) -> torch.Tensor:
    """How many elements x has; always on the host."""
    return torch.tensor(x.numel(), dtype=torch.int64, device="cpu")


@kernel("Identity")
def identity(x: Any) -> Any:
    """The value, a sequence or an optional too."""
    return x


@kernel("Reshape", numbers=("shape",))
def reshape(x: torch.Tensor, shape: list[int], *, allowzero: int = 0) -> torch.Tensor:
    """x with other dims; -1 is what is left, 0 what x has there."""
    if not allowzero:
        shape = [x.shape[at] if dim == 0 else dim for at, dim in enumerate(shape)]
    return x.reshape(shape)


@kernel("Flatten")
def flatten(x: torch.Tensor, *, axis: int = 1) -> torch.Tensor:
    """x as a matrix: the dims before the axis, and those from it on."""
    rows = math.prod(x.shape[: axis + x.dim() if axis < 0 else axis])
    return x.reshape(rows, x.numel() // rows if rows else math.prod(x.shape[axis:]))


@kernel("Squeeze", numbers=("axes",))
def squeeze(x: torch.Tensor, axes: list[int] | None = None) -> torch.Tensor:
    """x without dims of 1: those named, or all."""
    return x.squeeze() if axes is None else x.squeeze(tuple(axes))


@kernel("Unsqueeze", numbers=("axes",))
def unsqueeze(x: torch.Tensor, axes: list[int] | int) -> torch.Tensor:
    """x with dims of 1 at the axes that the result has there."""
    places = [axes] if isinstance(axes, int) else axes
    rank = x.dim() + len(places)
    for axis in sorted(axis % rank for axis in places):
        x = x.unsqueeze(axis)
    return x


@kernel("Transpose")
def transpose(x: torch.Tensor, *, perm: list[int] | None = None) -> torch.Tensor:
    """x with its dims in another order, the reverse one if none is given."""
    return x.permute(tuple(range(x.dim() - 1, -1, -1)) if perm is None else perm)


@kernel("Expand", numbers=("shape",))
def expand(x: torch.Tensor, shape: list[int]) -> torch.Tensor:
    """x broadcast against a shape, which may be the smaller of the two."""
    return x.expand(torch.broadcast_shapes(x.shape, shape))


@kernel("Tile", numbers=("repeats",))
def tile(x: torch.Tensor, repeats: list[int]) -> torch.Tensor:
    """x repeated along each axis."""
    return x.repeat(repeats)
