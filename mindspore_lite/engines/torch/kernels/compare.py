"""Comparisons, logic and bit operations."""

from __future__ import annotations

import operator

import torch

from mindspore_lite.engines.torch.kernels.elementwise import of_one
from mindspore_lite.engines.torch.kernels.table import kernel

# operators of Python, for either side may be a plain number
for op_type, compute in {
    "Equal": operator.eq,
    "Greater": operator.gt,
    "GreaterOrEqual": operator.ge,
    "Less": operator.lt,
    "LessOrEqual": operator.le,
}.items():
    kernel(op_type, scalars=True)(compute)

for op_type, compute in {
    "And": operator.and_,
    "Or": operator.or_,
    "Xor": operator.xor,
    "BitwiseAnd": operator.and_,
    "BitwiseOr": operator.or_,
    "BitwiseXor": operator.xor,
}.items():
    kernel(op_type)(compute)

kernel("Not")(of_one(torch.logical_not))
kernel("BitwiseNot")(of_one(torch.bitwise_not))


@kernel("BitShift")
def bit_shift(x: torch.Tensor, count: torch.Tensor, *, direction: str) -> torch.Tensor:
    """The bits of x moved LEFT or RIGHT."""
    return x << count if direction == "LEFT" else x >> count
