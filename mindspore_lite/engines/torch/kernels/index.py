"""Gathering elements by index; negative indices count from the end."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from mindspore_lite.engines.torch.kernels.numbers import Numbers, single
from mindspore_lite.engines.torch.kernels.table import kernel


def at_places(x: torch.Tensor, places: Sequence[torch.Tensor | None]) -> torch.Tensor:
    """x[places], where a place may be a scalar, which Python's brackets would ask the value of."""
    return torch.ops.aten.index.Tensor(x, [p if p is None else p.long() for p in places])


def counted_from_start(places: torch.Tensor, length: int) -> torch.Tensor:
    """Places without negative ones."""
    places = places.long()
    return torch.where(places < 0, places + length, places)


@kernel("Gather", place="indices")
def gather(x: torch.Tensor, indices: torch.Tensor | Numbers, *, axis: int = 0) -> torch.Tensor:
    """Slices of x along an axis."""
    axis %= x.dim()
    if isinstance(indices, int):
        return x.select(axis, indices)
    if isinstance(indices, list):
        return x.narrow(axis, indices[0] % x.shape[axis], 1)
    if x.device.type != "cpu":
        # a place that is not there would be the end of the process's work with the card
        length = x.shape[axis]
        indices = counted_from_start(indices, length).clamp(0, max(0, length - 1))
    return at_places(x, [*[None] * axis, indices])


@kernel("GatherElements")
def gather_elements(x: torch.Tensor, indices: torch.Tensor, *, axis: int = 0) -> torch.Tensor:
    """Elements of x, each by its place along one axis and where it stands along the others."""
    return x.gather(axis, counted_from_start(indices, x.shape[axis]))


@kernel("GatherND")
def gather_nd(x: torch.Tensor, indices: torch.Tensor, *, batch_dims: int = 0) -> torch.Tensor:
    """Slices of x by their places along the first axes, for each item of a batch."""
    inner = indices.dim() - 1
    batch = [
        torch.arange(x.shape[axis], device=x.device).reshape([-1] + [1] * (inner - 1 - axis))
        for axis in range(batch_dims)
    ]
    places = [*batch, *indices.unbind(-1)]
    return at_places(x, places) if places else x.expand(*indices.shape[:-1], *x.shape)


@kernel("OneHot", numbers=("depth",))
def one_hot(
    indices: torch.Tensor, depth: Numbers, values: torch.Tensor, *, axis: int = -1
) -> torch.Tensor:
    """values[1] where a new axis stands at the index, else values[0]."""
    length = int(single(depth))
    rank = indices.dim() + 1
    dims = [1] * rank
    dims[axis] = length
    along = torch.arange(length, device=indices.device).reshape(dims)
    wanted = counted_from_start(indices, length).unsqueeze(axis % rank)
    return torch.where(along == wanted, values[1], values[0])


@kernel("Where")
def where(condition: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """x where the condition holds, else y."""
    return torch.where(condition, x, y)


@kernel("NonZero")
def non_zero(x: torch.Tensor) -> torch.Tensor:
    """The places of what is not zero, a row for each axis."""
    return torch.nonzero(x).T


@kernel("Trilu", numbers=("k",))
def trilu(x: torch.Tensor, k: Numbers = None, *, upper: int = 1) -> torch.Tensor:
    """The upper or lower triangles of matrices."""
    diagonal = single(k, 0)
    return torch.triu(x, diagonal) if upper else torch.tril(x, diagonal)


@kernel("ReverseSequence")
def reverse_sequence(
    x: torch.Tensor, sequence_lens: torch.Tensor, *, batch_axis: int = 1, time_axis: int = 0
) -> torch.Tensor:
    """Each item of the batch with its first steps in reverse, as many as are given for it."""
    x = x.movedim((batch_axis, time_axis), (0, 1))
    steps = torch.arange(x.shape[1], device=x.device)
    lens = sequence_lens.long().unsqueeze(1)
    places = torch.where(steps < lens, lens - 1 - steps, steps)
    items = torch.arange(x.shape[0], device=x.device).unsqueeze(1)
    return at_places(x, [items, places]).movedim((0, 1), (batch_axis, time_axis))
