"""Element types that ONNX Runtime's CPU kernels lack: computed in a wider one and brought back."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mindspore_lite.ops.table import Val
from mindspore_lite.ops.tape import Tape

_INTS = {"bool", "int8", "int16", "uint8", "uint16"}
_WIDER = {name: "int32" for name in _INTS} | {"uint32": "int64", "float16": "float32"}
_WIDER["uint64"] = "int64"  # the same bits there and back

# tried with onnxruntime 1.31
LACKING = {
    "CumSum": {*_INTS, "uint32", "uint64"},
    "Pad": {"int16", "uint16"},
    "ReduceSum": {*_INTS, "uint32", "uint64"},
    "Scatter": {"bool", "float16"},  # with a reduction
    "Trilu": {"int8", "int16", "uint8", "uint16", "uint32", "uint64"},
    "Where": {"bool", "int16", "uint16", "uint64"},
}


def wider(t: Tape, kernel: str, compute: Callable[..., Val], *operands: Val) -> Val:
    """compute(*operands), operands of one type, whatever type the kernel has."""
    dtype = t.dtype(operands[0])
    if dtype.name not in LACKING[kernel]:
        return compute(*operands)
    wide = np.dtype(_WIDER[dtype.name])
    return t.cast(compute(*[t.cast(v, wide) for v in operands]), dtype)


def where(t: Tape, condition: Val, x: Val, y: Val) -> Val:
    """x where the condition holds, else y; both of one type."""
    return wider(t, "Where", lambda a, b: t.op("Where", [condition, a, b]), x, y)
