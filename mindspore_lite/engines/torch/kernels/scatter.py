"""Scattering elements into tensors by index."""

from __future__ import annotations

import math

import torch

from mindspore_lite.engines.torch.kernels.index import counted_from_start
from mindspore_lite.engines.torch.kernels.table import kernel

# what ONNX calls a way to join old and new -> what torch does
_REDUCED = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


@kernel("ScatterElements")
def scatter_elements(
    data: torch.Tensor,
    indices: torch.Tensor,
    updates: torch.Tensor,
    *,
    axis: int = 0,
    reduction: str = "none",
) -> torch.Tensor:
    """data with elements replaced, or joined with others, by their places along one axis."""
    places = counted_from_start(indices, data.shape[axis])
    if reduction == "none":
        return data.scatter(axis, places, updates)
    return data.scatter_reduce(axis, places, updates, _REDUCED[reduction])


@kernel("ScatterND")
def scatter_nd(
    data: torch.Tensor, indices: torch.Tensor, updates: torch.Tensor, *, reduction: str = "none"
) -> torch.Tensor:
    """data with slices replaced, or joined with others, by their places along the first axes."""
    depth = indices.shape[-1]
    if reduction == "none" and depth:
        return torch.ops.aten.index_put(data, list(indices.long().unbind(-1)), updates)
    outer, inner = data.shape[:depth], data.shape[depth:]
    rows = torch.zeros(indices.shape[:-1], dtype=torch.int64, device=indices.device)
    for length, place in zip(outer, indices.unbind(-1), strict=True):
        rows = rows * length + counted_from_start(place, length)
    width = math.prod(inner)
    flat = data.reshape(math.prod(outer), width)
    rows = rows.reshape(-1, 1).expand(-1, width)
    given = updates.reshape(rows.shape)
    if reduction == "none":
        found = flat.scatter(0, rows, given)
    else:
        found = flat.scatter_reduce(0, rows, given, _REDUCED[reduction])
    return found.reshape(data.shape)


@kernel("TensorScatter")
def tensor_scatter(
    past_cache: torch.Tensor,
    update: torch.Tensor,
    write_indices: torch.Tensor | None = None,
    *,
    axis: int = -2,
    mode: str = "linear",
) -> torch.Tensor:
    """A cache with new steps written into it, in each item of the batch from a place on."""
    axis %= past_cache.dim()
    steps = torch.arange(update.shape[axis], device=update.device)
    dims = [1] * update.dim()
    dims[axis] = -1
    places = steps.reshape(dims)
    if write_indices is not None:
        places = places + write_indices.long().reshape([-1] + [1] * (update.dim() - 1))
    if mode == "circular":
        places = places % past_cache.shape[axis]
    return past_cache.scatter(axis, places.expand(update.shape), update)
