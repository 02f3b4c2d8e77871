"""The protocol's names of element types, and their NumPy types."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mindspore_lite.core import dtypes

BYTES = "BYTES"  # strings: no engine takes them; classes are answered so


@dataclass(frozen=True)
class Datatype:
    """One element type.

    Attributes:
        name: The protocol's.
        number: Of the model configuration's enum.
        dtype: NumPy's.
        kind: Which values it holds: "bool", "int" or "float".
    """

    name: str
    number: int
    dtype: np.dtype
    kind: str

    @property
    def item_bytes(self) -> int:
        """Of one element."""
        return self.dtype.itemsize


_TABLE = (
    ("BOOL", 1, "bool", "bool"),
    ("UINT8", 2, "uint8", "int"),
    ("UINT16", 3, "uint16", "int"),
    ("UINT32", 4, "uint32", "int"),
    ("UINT64", 5, "uint64", "int"),
    ("INT8", 6, "int8", "int"),
    ("INT16", 7, "int16", "int"),
    ("INT32", 8, "int32", "int"),
    ("INT64", 9, "int64", "int"),
    ("FP16", 10, "float16", "float"),
    ("FP32", 11, "float32", "float"),
    ("FP64", 12, "float64", "float"),
    ("BF16", 14, "bfloat16", "float"),
)
DATATYPES = {
    name: Datatype(name, number, dtypes.BY_NAME[numpy_name].numpy, kind)
    for name, number, numpy_name, kind in _TABLE
}
_BY_DTYPE = {one.dtype: one for one in DATATYPES.values()}


def of_dtype(dtype: np.dtype) -> Datatype | None:
    """The protocol's type for a NumPy type; None for those that it has no name for."""
    return _BY_DTYPE.get(dtype)
