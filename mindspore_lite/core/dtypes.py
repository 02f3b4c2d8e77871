"""The table of data types: the number that each format uses for it, and its NumPy type.

MindIR's TensorProto numbers 1..16 are the same as ONNX's, so one column serves both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class DType:
    """One element type and its name in every format the package speaks."""

    name: str
    type_id: (
        int  # MindSpore's TypeId: dtype arguments of primitives, and DataType of the public API
    )
    onnx: int  # TensorProto.DataType, of ONNX and of MindIR
    item_bytes: int

    @property
    def short(self) -> str:
        """Letters and bits, as most formats write it: bool, i8, u16, f32, bf16, c64."""
        letters = self.name.rstrip("0123456789")
        known = {"int": "i", "uint": "u", "float": "f", "bfloat": "bf", "complex": "c"}
        return known.get(letters, letters) + self.name[len(letters) :]

    @property
    def numpy(self) -> np.dtype:
        """The NumPy type; bfloat16 comes from ml_dtypes, imported only when met."""
        if self.name == "bfloat16":
            import ml_dtypes

            found: np.dtype = np.dtype(ml_dtypes.bfloat16)
            return found
        return np.dtype(self.name)


TABLE = (
    DType("bool", 30, 9, 1),
    DType("int8", 32, 3, 1),
    DType("int16", 33, 5, 2),
    DType("int32", 34, 6, 4),
    DType("int64", 35, 7, 8),
    DType("uint8", 37, 2, 1),
    DType("uint16", 38, 4, 2),
    DType("uint32", 39, 12, 4),
    DType("uint64", 40, 13, 8),
    DType("float16", 42, 10, 2),
    DType("float32", 43, 1, 4),
    DType("float64", 44, 11, 8),
    DType("bfloat16", 45, 16, 2),
    # 2.10 numbers; the 2024 tree used 48 and 49, which 2.10 gives to hifloat8 and double
    DType("complex64", 51, 14, 8),
    DType("complex128", 52, 15, 16),
)

BY_NAME = {d.name: d for d in TABLE}
BY_ONNX = {d.onnx: d for d in TABLE} | {
    17: BY_NAME["float64"]
}  # 17: MindIR's second name for double
BY_TYPE_ID = {d.type_id: d for d in TABLE} | {  # the sizeless names mean the usual width
    31: BY_NAME["int32"],
    36: BY_NAME["uint32"],
    41: BY_NAME["float32"],
}


def from_numpy(dtype: np.dtype) -> DType | None:
    """The table row of a NumPy type, or None where there is none (strings, objects, ...)."""
    return BY_NAME.get(dtype.name)


def no_strings(kind: str, name: str) -> str:
    """Why an input or output of texts is refused: neither DataType nor the wire has a name for it.

    Texts inside a graph do not matter: they never leave it.
    """
    return (
        f"{kind} {name!r} holds strings, and tensors hold numbers only; look words up and tokenise "
        "outside of the model, and export it between the numbers"
    )
