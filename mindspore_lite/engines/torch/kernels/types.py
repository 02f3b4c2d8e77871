"""Conversion between ONNX, NumPy and torch element types."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import torch

from mindspore_lite.core import dtypes
from mindspore_lite.errors import UnsupportedOpError

_FLOAT8 = {17: "float8_e4m3fn", 18: "float8_e4m3fnuz", 19: "float8_e5m2", 20: "float8_e5m2fnuz"}
_BITS: dict[str, type[np.generic]] = {"bfloat16": np.int16} | dict.fromkeys(
    _FLOAT8.values(), np.uint8
)


@functools.cache
def torch_type(onnx_type: int) -> torch.dtype:
    """torch's name of an ONNX type."""
    row = dtypes.BY_ONNX.get(onnx_type) if onnx_type not in _FLOAT8 else None
    name = row.name if row is not None else _FLOAT8.get(onnx_type, "")
    found = getattr(torch, name, None) if name else None
    if not isinstance(found, torch.dtype):
        raise UnsupportedOpError(f"torch has no element type for ONNX type {onnx_type}")
    return found


def of_numpy(array: np.ndarray) -> torch.Tensor:
    """The array as a tensor of its own type, in the same memory, which nobody here writes to."""
    if min(array.strides, default=0) < 0:
        array = array.copy()  # torch has none such; NumPy also leaves them to axes of one element
    # of a type that NumPy does not know itself; a name is looked up only there, since that is slow
    bits = None if array.dtype.isbuiltin == 1 else _BITS.get(array.dtype.name)
    if bits is None:
        try:
            return torch.from_numpy(array)
        except TypeError as exc:  # strings, numbers of less than 8 bits
            raise UnsupportedOpError(f"torch has no tensors of {array.dtype}") from exc
    return torch.from_numpy(array.view(bits)).view(getattr(torch, array.dtype.name))


def to_numpy(tensor: torch.Tensor) -> np.ndarray:
    """A tensor of the host as an array, in the same memory."""
    name = str(tensor.dtype).removeprefix("torch.")
    if name not in _BITS:
        found: np.ndarray = tensor.numpy()
        return found
    import ml_dtypes

    bits: np.ndarray = tensor.view(getattr(torch, np.dtype(_BITS[name]).name)).numpy()
    return bits.view(getattr(ml_dtypes, name))


def _say_it_once() -> None:
    """Let torch warn now, unheard, of arrays that cannot be written to: it does so only once."""
    sealed = np.zeros(1, np.uint8)
    sealed.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.from_numpy(sealed)


_say_it_once()
