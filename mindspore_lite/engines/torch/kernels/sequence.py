"""Sequences (lists of tensors) and optionals (a value or None)."""

from __future__ import annotations

from typing import Any

import torch

from mindspore_lite.engines.torch.kernels.numbers import Numbers, single
from mindspore_lite.engines.torch.kernels.slice import equal_parts
from mindspore_lite.engines.torch.kernels.table import kernel

Tensors = list[torch.Tensor]


@kernel("SequenceConstruct")
def sequence_construct(*tensors: torch.Tensor) -> Tensors:
    """A sequence of tensors."""
    return list(tensors)


@kernel("SequenceEmpty")
def sequence_empty(*, dtype: int = 1) -> Tensors:
    """A sequence of nothing."""
    return []


@kernel("SequenceAt", numbers=("position",))
def sequence_at(sequence: Tensors, position: Numbers) -> torch.Tensor:
    """One of a sequence."""
    return sequence[single(position)]


@kernel("SequenceInsert", numbers=("position",))
def sequence_insert(sequence: Tensors, tensor: torch.Tensor, position: Numbers = None) -> Tensors:
    """A sequence with one more, at the end or before a place."""
    at = single(position, len(sequence))
    return [*sequence[:at], tensor, *sequence[at:]]


@kernel("SequenceErase", numbers=("position",))
def sequence_erase(sequence: Tensors, position: Numbers = None) -> Tensors:
    """A sequence without its last, or another."""
    kept = list(sequence)
    del kept[single(position, -1)]
    return kept


@kernel("SequenceLength")
def sequence_length(sequence: Tensors) -> torch.Tensor:
    """How many there are; always on the host."""
    return torch.tensor(len(sequence), dtype=torch.int64, device="cpu")


@kernel("SplitToSequence", numbers=("split",))
def split_to_sequence(
    x: torch.Tensor, split: list[int] | int | None = None, *, axis: int = 0, keepdims: int = 1
) -> Tensors:
    """Parts of x: of one size, of given sizes, or of 1, then with or without the axis."""
    length = x.shape[axis]
    if split is None:
        parts = torch.split(x, 1, axis)
        return [part if keepdims else part.squeeze(axis) for part in parts]
    if isinstance(split, int):
        split = equal_parts(length, -(-length // split)) if length % split else split
    return list(torch.split(x, split, axis))


@kernel("ConcatFromSequence")
def concat_from_sequence(sequence: Tensors, *, axis: int, new_axis: int = 0) -> torch.Tensor:
    """The tensors of a sequence one behind the other, along an axis of theirs or a new one."""
    return torch.stack(sequence, axis) if new_axis else torch.cat(sequence, axis)


@kernel("Optional")
def optional(value: Any = None) -> Any:
    """The value, or nothing."""
    return value


@kernel("OptionalHasElement")
def optional_has_element(value: Any = None) -> torch.Tensor:
    """Whether there is something; always on the host."""
    return torch.tensor(value is not None, device="cpu")


@kernel("OptionalGetElement")
def optional_get_element(value: Any) -> Any:
    """What there is."""
    return value
