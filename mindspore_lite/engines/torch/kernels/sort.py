"""Top-k, arg-max and distinct values."""

from __future__ import annotations

import torch

from mindspore_lite.engines.torch.kernels.numbers import Numbers, single
from mindspore_lite.engines.torch.kernels.table import kernel


@kernel("TopK", numbers=("k",))
def top_k(
    x: torch.Tensor,
    k: Numbers,
    *,
    axis: int = -1,
    largest: int = 1,
    sorted: int = 1,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The k largest or smallest, and their places; of equals the first, which topk forgets."""
    count = single(k)
    values, places = torch.sort(x, dim=axis, descending=bool(largest), stable=True)
    return values.narrow(axis, 0, count), places.narrow(axis, 0, count)


def _arg(x: torch.Tensor, largest: bool, axis: int, keepdims: int, last: int) -> torch.Tensor:
    compute = torch.argmax if largest else torch.argmin
    if not last:
        return compute(x, axis, bool(keepdims))
    return x.shape[axis] - 1 - compute(x.flip(axis), axis, bool(keepdims))


@kernel("ArgMax")
def arg_max(
    x: torch.Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0
) -> torch.Tensor:
    """The place of the largest, the first or the last of equals."""
    return _arg(x, True, axis, keepdims, select_last_index)


@kernel("ArgMin")
def arg_min(
    x: torch.Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0
) -> torch.Tensor:
    """The place of the smallest, the first or the last of equals."""
    return _arg(x, False, axis, keepdims, select_last_index)


@kernel("Hardmax")
def hardmax(x: torch.Tensor, *, axis: int = -1) -> torch.Tensor:
    """1 at the first of the largest, else 0."""
    return torch.zeros_like(x).scatter(axis, torch.argmax(x, axis, True), 1)


@kernel("Unique")
def unique(
    x: torch.Tensor, *, axis: int | None = None, sorted: int = 1, outputs: int
) -> torch.Tensor | tuple[torch.Tensor, ...]:
    """What occurs; where first; which of it each element is; how often."""
    values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True, dim=axis)
    inverse = inverse.reshape(-1)
    places = torch.arange(inverse.numel(), device=x.device)
    first = torch.full_like(counts, inverse.numel()).scatter_reduce(0, inverse, places, "amin")
    if not sorted:  # in the order in which they occur
        order = first.argsort()
        values = values.index_select(axis or 0, order)
        first, counts, inverse = first[order], counts[order], order.argsort()[inverse]
    found = (values, first, inverse, counts)
    return found[:outputs] if outputs > 1 else values
