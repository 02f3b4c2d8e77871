"""Which element types the kernels take, for engines/prepare/widen.py.

torch stores unsigned numbers of 16 and more bits, but computes with none of them. What only moves
or copies them works; anything else is done in a wider type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import onnx

from mindspore_lite.engines.torch.kernels import families  # noqa: F401 - fills the table
from mindspore_lite.engines.torch.kernels.table import KERNELS

Row = tuple[str, str, int, int, Mapping[str, Sequence[str]]]  # as engines.widen has it

_UNSIGNED = frozenset({"tensor(uint16)", "tensor(uint32)", "tensor(uint64)"})
_SIGNED = frozenset({"tensor(int32)", "tensor(int64)"})
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
        types = {
            constraint.type_param_str: _taken(schema.name, constraint.allowed_type_strs)
            for constraint in schema.type_constraints
        }
        yield schema.domain, schema.name, schema.since_version, schema.since_version, types


def _taken(op_type: str, allowed: Sequence[str]) -> list[str]:
    """The types that a kernel takes for those that ONNX allows."""
    found = set(allowed)
    if op_type in _COPIES or found.isdisjoint(_UNSIGNED):
        return sorted(found)
    return sorted((found - _UNSIGNED) | _SIGNED)  # BitShift has no signed ones, but torch does
