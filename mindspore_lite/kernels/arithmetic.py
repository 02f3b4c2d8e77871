"""Sums, products and their like, element by element."""

from __future__ import annotations

import operator

from mindspore_lite.kernels.table import kernel

# operators of Python, for either side may be a plain number
for op_type, compute in {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
}.items():
    kernel(op_type, scalars=True)(compute)
