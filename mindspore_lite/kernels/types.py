"""Element types: the ONNX number of a type goes in, torch's type comes out, and back."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import torch

from mindspore_lite import dtypes
from mindspore_lite.errors import UnsupportedOpError

_FLOAT8 = {17: "float8_e4m3fn", 18: "float8_e4m3fnuz", 19: "float8_e5m2", 20: "float8_e5m2fnuz"}


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
    if array.dtype.name == "bfloat16":  # travels as its bits
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def to_numpy(tensor: torch.Tensor) -> np.ndarray:
    """A tensor of the host as an array, in the same memory."""
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(dtypes.BY_NAME["bfloat16"].numpy)
    return tensor.numpy()


def _say_it_once() -> None:
    """Let torch warn now, unheard, of arrays that cannot be written to: it does so only once."""
    sealed = np.zeros(1, np.uint8)
    sealed.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.from_numpy(sealed)


_say_it_once()
