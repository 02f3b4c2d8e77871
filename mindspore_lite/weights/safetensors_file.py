"""Reads .safetensors files into arrays that are views of one buffer."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from mindspore_lite.core.dtypes import TABLE
from mindspore_lite.core.files import open_file
from mindspore_lite.core.snapshot import Snapshot
from mindspore_lite.errors import ModelFileError

# the format's own names; it has others (8 bits and less, complex), which no Tensor can hold
_TYPES = {d.short.upper(): d for d in TABLE if d.short[0] != "c"}
_PREFIX = 8  # bytes that hold the length of the header


def read_safetensors(path: Path) -> Iterator[tuple[str, np.ndarray]]:
    """Names and arrays in the order in which they lie in the file; they may be written to."""
    return open_safetensors(path)[1]


def open_safetensors(path: Path) -> tuple[dict[str, str], Iterator[tuple[str, np.ndarray]]]:
    """The texts that a file's author put into it, and the same as read_safetensors gives."""
    (data,) = Snapshot([open_file(path)]).load()
    texts, layout = _layout(data)
    return texts, _arrays(data, layout)


def _arrays(
    data: memoryview, layout: list[tuple[str, str, list[int]]]
) -> Iterator[tuple[str, np.ndarray]]:
    # the library has checked that tensors follow each other without a gap up to the end
    at = _PREFIX + int.from_bytes(data[:_PREFIX], "little")
    for name, kind, shape in layout:
        if kind not in _TYPES:
            raise ModelFileError(
                f"tensor {name!r} is of type {kind}, wanted one of {', '.join(_TYPES)}; "
                "convert it before it is saved"
            )
        dtype = _TYPES[kind].numpy
        end = at + math.prod(shape) * dtype.itemsize
        yield name, _array(name, data[at:end], dtype, shape)
        at = end


def _layout(data: memoryview) -> tuple[dict[str, str], list[tuple[str, str, list[int]]]]:
    """Texts; name, type and shape of the tensors, as the format's own library reads them."""
    from safetensors import SafetensorError, safe_open

    # the library wants a file: one of the same size that holds the header alone, and else nothing
    copy = os.memfd_create("mslite")
    try:
        os.ftruncate(copy, len(data))
        os.pwritev(copy, [data[: _PREFIX + int.from_bytes(data[:_PREFIX], "little")]], 0)
        with safe_open(f"/proc/self/fd/{copy}", framework="np") as file:
            slices = [(name, file.get_slice(name)) for name in file.offset_keys()]
            layout = [(name, part.get_dtype(), part.get_shape()) for name, part in slices]
            return dict(file.metadata() or {}), layout
    except (SafetensorError, OSError) as exc:
        raise ModelFileError(f"it is no .safetensors file: {exc}") from exc
    finally:
        os.close(copy)


def _array(name: str, data: memoryview, dtype: np.dtype, shape: list[int]) -> np.ndarray:
    try:
        found = np.frombuffer(data, dtype).reshape(shape)
    except ValueError as exc:  # the format knows no limit of dims
        raise ModelFileError(f"tensor {name!r} is no array of NumPy's: {exc}") from exc
    if dtype == np.bool_:  # a file may hold any byte, an array of truth values only two
        return np.asarray(found.view(np.uint8) != 0)
    # writers need not align, and kernels may want it
    return found if found.flags.aligned else found.copy()
