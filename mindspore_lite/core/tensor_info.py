"""TensorInfo: the name, type and shape of a model's input or output."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

ANY_RANK = (-2,)  # the shape of a tensor whose number of dims is known only at run time


@dataclass(frozen=True)
class TensorInfo:
    """What a model says about an input or output; -1 is a dim known only at run time.

    `zero_filled`: a Tensor without data stands for zeros, as the original has it on Ascend.
    """

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    zero_filled: bool = field(default=False, compare=False)


def for_target(target: str, inputs: tuple[TensorInfo, ...]) -> tuple[TensorInfo, ...]:
    """The inputs of a model as callers on a target see them."""
    if target != "ascend":
        return inputs
    return tuple(replace(one, zero_filled=True) for one in inputs)
