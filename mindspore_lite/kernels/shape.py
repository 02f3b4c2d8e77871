"""Shapes: asking for them, and giving tensors others."""

from __future__ import annotations

import torch

from mindspore_lite.kernels.table import kernel


@kernel("Shape")
def shape(x: torch.Tensor, *, start: int = 0, end: int | None = None) -> torch.Tensor:
    """The dims of x, or some of them; always on the host."""
    return torch.tensor(list(x.shape)[start:end], dtype=torch.int64, device="cpu")


@kernel("Reshape", numbers=("shape",))
def reshape(x: torch.Tensor, shape: list[int], *, allowzero: int = 0) -> torch.Tensor:
    """x with other dims; -1 is what is left, 0 what x has there."""
    if not allowzero:
        shape = [x.shape[at] if dim == 0 else dim for at, dim in enumerate(shape)]
    return x.reshape(shape)
