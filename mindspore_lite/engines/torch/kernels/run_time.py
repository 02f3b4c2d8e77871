"""Helpers of dynamic graphs at run time: numbers of a tensor, tensors on one device."""

from __future__ import annotations

import functools
from typing import Any

import torch

from mindspore_lite.engines.torch.kernels.table import Kernel


def to_numbers(value: Any) -> Any:
    """The elements of a tensor as Python numbers, in lists as deep as it has dims."""
    return value.tolist() if isinstance(value, torch.Tensor) else value


@functools.cache
def on_one_device(row: Kernel) -> Any:
    """A kernel whose tensors are brought to the card first, if one of them is there already.

    Shapes and what is computed of them stay on the host, where they are asked for.
    """

    @functools.wraps(row.compute)
    def compute(*args: Any, **attributes: Any) -> Any:
        tensors = [a for a in args if isinstance(a, torch.Tensor)]
        device = next((t.device for t in tensors if t.device.type != "cpu"), None)
        if device is not None:
            args = tuple(a.to(device) if isinstance(a, torch.Tensor) else a for a in args)
        return row.compute(*args, **attributes)

    return compute
