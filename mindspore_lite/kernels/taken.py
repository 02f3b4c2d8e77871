"""Which element types the kernels take: rows for `engines.widen`, which casts where one is missing.

torch stores unsigned numbers of 16 and more bits, but computes with none of them. What only moves
or copies them works; anything else is done in a wider type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import onnx

from mindspore_lite.kernels import families  # noqa: F401 - fills the table
from mindspore_lite.kernels.table import KERNELS

Row = tuple[str, str, int, int, Mapping[str, Sequence[str]]]  # as engines.widen has it

_UNSIGNED = ("tensor(uint16)", "tensor(uint32)", "tensor(uint64)")
_FIRST, _LAST = 0, 2**31 - 2  # versions: models are of one opset when they are lowered
# operators that are views, copies and casts in torch, whatever the elements are
_COPIES = frozenset({
    "Cast", "CastLike", "BitCast", "Concat", "ConstantOfShape", "DequantizeLinear", "Expand",
    "Flatten", "Identity", "QuantizeLinear", "Reshape", "Shape", "Size", "Slice", "Split",
    "Squeeze", "Transpose", "Unsqueeze",
})  # fmt: skip


def rows() -> Iterator[Row]:
    """One row for each operator of the table that ONNX defines."""
    for domain, op_type in KERNELS:
        if not onnx.defs.has(op_type, domain=domain):
            continue
        schema = onnx.defs.get_schema(op_type, domain=domain)
        without = () if op_type in _COPIES else _UNSIGNED
        types = {
            constraint.type_param_str: [
                name for name in constraint.allowed_type_strs if name not in without
            ]
            for constraint in schema.type_constraints
        }
        yield domain, op_type, _FIRST, _LAST, types
