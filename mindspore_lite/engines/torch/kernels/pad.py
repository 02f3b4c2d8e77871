"""Padding."""

from __future__ import annotations

import torch

from mindspore_lite.engines.torch.kernels.table import kernel
from mindspore_lite.engines.torch.kernels.windows import padded


@kernel("Pad", numbers=("pads", "value", "axes"))
def pad(
    x: torch.Tensor,
    pads: list[int],
    value: float | list[float] | None = None,
    axes: list[int] | None = None,
    *,
    mode: str = "constant",
) -> torch.Tensor:
    """x with more at both ends of its dims, or with less where a number is negative."""
    begins, ends = [0] * x.dim(), [0] * x.dim()
    where = list(range(x.dim())) if axes is None else axes
    for at, axis in enumerate(where):
        begins[axis], ends[axis] = pads[at], pads[at + len(where)]
    if mode == "constant":
        value = value[0] if isinstance(value, list) else value
        return padded(x, begins, ends, value or 0)
    for axis in range(x.dim()):
        if begins[axis] or ends[axis]:
            x = x.index_select(axis, _places(x, axis, begins[axis], ends[axis], mode))
    return x


def _places(x: torch.Tensor, axis: int, begin: int, end: int, mode: str) -> torch.Tensor:
    """Which element of x lies at each place of the padded axis."""
    size = x.shape[axis]
    at = torch.arange(-begin, size + end, device=x.device)
    if mode == "edge":
        return at.clamp(0, size - 1)
    if mode == "wrap":
        return at % size
    period = max(2 * (size - 1), 1)  # there and back, the ends once
    return size - 1 - (size - 1 - at % period).abs()
