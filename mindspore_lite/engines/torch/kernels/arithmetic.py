"""Elementwise arithmetic of several tensors."""

from __future__ import annotations

import functools
import operator
from typing import TypeAlias

import torch

from mindspore_lite.engines.torch.kernels.table import kernel

# a constant of one element may come as a plain number
Number: TypeAlias = "torch.Tensor | float"

# operators of Python, for either side may be a plain number
for op_type, compute in {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
}.items():
    kernel(op_type, scalars=True)(compute)


@kernel("Div", scalars=True)
def div(a: Number, b: Number) -> Number:
    """a / b; integers are rounded towards zero."""
    like = a if isinstance(a, torch.Tensor) else b
    if not isinstance(like, torch.Tensor) or like.is_floating_point():
        return a / b
    if not isinstance(a, torch.Tensor):
        a = torch.full_like(like, a)
    return torch.div(a, b, rounding_mode="trunc")


@kernel("Mod")
def mod(a: torch.Tensor, b: torch.Tensor, *, fmod: int = 0) -> torch.Tensor:
    """What is left of a divided by b, with the sign of b, or of a with fmod."""
    return torch.fmod(a, b) if fmod else torch.remainder(a, b)


@kernel("Pow", scalars=True, half="wide")
def power(base: Number, exponent: Number) -> Number:
    """base ** exponent, in the type of the base."""
    if not isinstance(base, torch.Tensor):
        return torch.pow(base, exponent)
    if isinstance(exponent, int) and exponent < 0 and not base.is_floating_point():
        exponent = torch.full_like(base, exponent)  # as a number, torch refuses it
    return torch.pow(base, exponent).to(base.dtype)


@kernel("Sum")
def sum_of(*terms: torch.Tensor) -> torch.Tensor:
    """All terms added."""
    return functools.reduce(torch.add, terms)


@kernel("Mean")
def mean_of(*terms: torch.Tensor) -> torch.Tensor:
    """The mean of the terms."""
    return functools.reduce(torch.add, terms) / len(terms)


@kernel("Max")
def max_of(*terms: torch.Tensor) -> torch.Tensor:
    """The largest of the terms; NaN where one is."""
    return functools.reduce(torch.maximum, terms)


@kernel("Min")
def min_of(*terms: torch.Tensor) -> torch.Tensor:
    """The smallest of the terms; NaN where one is."""
    return functools.reduce(torch.minimum, terms)
