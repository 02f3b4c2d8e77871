"""Inputs that kernels get as Python numbers instead of tensors."""

from __future__ import annotations

from typing import Any

Numbers = Any  # a number, or lists of them as deep as the tensor had dims; None where left out


def single(given: Numbers, default: Any = None) -> Any:
    """The number of a tensor of one element, whatever its rank; the default where there is none."""
    while isinstance(given, list):
        (given,) = given
    return default if given is None else given
