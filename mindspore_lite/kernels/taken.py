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
# operators that are views, copies and casts in torch, whatever the elements are
_COPIES = frozenset({
    "Cast", "CastLike", "BitCast", "Concat", "ConstantOfShape", "DequantizeLinear", "Expand",
    "Flatten", "Identity", "QuantizeLinear", "Reshape", "Shape", "Size", "Slice", "Split",
    "Squeeze", "Transpose", "Unsqueeze",
})  # fmt: skip


def rows() -> Iterator[Row]:
    """One row for each version of an operator of the table, whose types have other names each."""
    for schema in onnx.defs.get_all_schemas_with_history():
        if (schema.domain, schema.name) not in KERNELS:
            continue
        without = () if schema.name in _COPIES else _UNSIGNED
        types = {
            constraint.type_param_str: [
                name for name in constraint.allowed_type_strs if name not in without
            ]
            for constraint in schema.type_constraints
        }
        yield schema.domain, schema.name, schema.since_version, schema.since_version, types
