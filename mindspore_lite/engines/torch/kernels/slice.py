"""Slicing, splitting and concatenation."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from mindspore_lite.engines.torch.kernels.table import kernel


@kernel("Slice", numbers=("starts", "ends", "axes", "steps"))
def slice_(
    x: torch.Tensor,
    starts: list[int],
    ends: list[int],
    axes: list[int] | None = None,
    steps: list[int] | None = None,
) -> torch.Tensor:
    """x[start:end:step] along each axis, steps backwards too."""
    for at, (start, end) in enumerate(zip(starts, ends, strict=True)):
        axis = at if axes is None else axes[at]
        step = 1 if steps is None else steps[at]
        x = _along(x, axis % x.dim(), _picked(x.shape[axis], start, end, step))
    return x


def _picked(length: int, start: int, end: int, step: int) -> range:
    """The places from start to end; as in Python, but backwards from no place before the first."""
    start, end = (at + length if at < 0 else at for at in (start, end))
    if step > 0:
        return range(min(max(start, 0), length), min(max(end, 0), length), step)
    return range(min(max(start, 0), length - 1), min(max(end, -1), length - 1), step)


def _along(x: torch.Tensor, axis: int, picked: range) -> torch.Tensor:
    """The picked places of one axis."""
    if not picked:
        return x.narrow(axis, 0, 0)
    low, high = sorted((picked[0], picked[-1]))
    part = x[(slice(None),) * axis + (slice(low, high + 1, abs(picked.step)),)]
    return part.flip(axis) if picked.step < 0 else part


@kernel("Split", numbers=("split",))
def split(
    x: torch.Tensor,
    split: list[int] | None = None,
    *,
    axis: int = 0,
    num_outputs: int = 0,
    outputs: int,
) -> torch.Tensor | tuple[torch.Tensor, ...]:
    """Parts of x of the given sizes, or of equal ones of which the last may be smaller."""
    if split is None:
        split = equal_parts(x.shape[axis], num_outputs or outputs)
    found = torch.split(x, split, axis)
    return tuple(found) if outputs > 1 else found[0]


def equal_parts(length: int, count: int) -> list[int]:
    """The sizes of so many parts, equal but for the last."""
    each = -(-length // count)
    return [max(0, min(each, length - at * each)) for at in range(count)]


@kernel("Concat")
def concat(*tensors: torch.Tensor, axis: int) -> torch.Tensor:
    """Tensors one behind the other."""
    return torch.cat(tensors, axis)


def ranges(kept: Sequence[bool]) -> list[tuple[int, int]]:
    """(start, length) of each run of what is kept."""
    found: list[tuple[int, int]] = []
    for at, keep in enumerate(kept):
        if keep and found and sum(found[-1]) == at:
            found[-1] = (found[-1][0], found[-1][1] + 1)
        elif keep:
            found.append((at, 1))
    return found


@kernel("Compress", numbers=("condition",))
def compress(
    x: torch.Tensor, condition: Sequence[bool], *, axis: int | None = None
) -> torch.Tensor:
    """What of x the condition keeps, along an axis or of all elements; it may end early."""
    if axis is None:
        x, axis = x.reshape(-1), 0
    kept = [x.narrow(axis, start, length) for start, length in ranges(condition)]
    return torch.cat(kept, axis) if kept else x.narrow(axis, 0, 0)
