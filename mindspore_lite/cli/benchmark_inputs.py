"""Makes the inputs that `benchmark` feeds a model."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from mindspore_lite.cli.benchmark_asked import Asked
from mindspore_lite.errors import InputError, ShapeError
from mindspore_lite.tensor import Tensor, ms_to_numpy_data_type_map

_SEED = 0


def shapes_for(tensors: Sequence[Tensor], asked: Asked) -> list[list[int]]:
    """The shape of every input: the one that was asked for, or the model's own.

    Raises:
        ShapeError: Shapes are for no input, or the sizes of an input stay open.
    """
    names = [str(at) if asked.by_place else t.name for at, t in enumerate(tensors)]
    unknown = [name for name in asked.shapes if name not in names]
    if unknown or (asked.by_place and len(asked.shapes) != len(names)):
        if asked.by_place:
            raise ShapeError(
                f"inputShapes has {len(asked.shapes)} shapes, wanted {len(names)}: one for each of "
                f"{[tensor.name for tensor in tensors]}"
            )
        raise ShapeError(f"inputShape names {unknown}, but the model's inputs are {names}")
    found = [list(asked.shapes.get(n, t.shape)) for n, t in zip(names, tensors, strict=True)]
    for tensor, dims in zip(tensors, found, strict=True):
        if min(dims, default=0) < 0:
            such = ",".join(str(dim) if dim > 0 else "1" for dim in dims)
            raise ShapeError(
                f"input {tensor.name!r} is {dims}, and nobody says which sizes it shall have; "
                f"give --inputShape={tensor.name}:{such}"
            )
    return found


def arrays_for(
    tensors: Sequence[Tensor], shapes: Sequence[Sequence[int]], files: Sequence[str]
) -> list[np.ndarray]:
    """An array for every input: of its file, or random; always the same ones.

    Raises:
        InputError: There are not as many files as inputs, or one has another size than its input.
    """
    if files and len(files) != len(tensors):
        raise InputError(
            f"inDataFile names {len(files)} files, wanted {len(tensors)}: one for each of "
            f"{[tensor.name for tensor in tensors]}"
        )
    rng = np.random.default_rng(_SEED)
    found = []
    for at, (tensor, shape) in enumerate(zip(tensors, shapes, strict=True)):
        if tensor.dtype not in ms_to_numpy_data_type_map:
            raise InputError(f"input {tensor.name!r} has a type that files cannot hold")
        dtype = np.dtype(ms_to_numpy_data_type_map[tensor.dtype])
        found.append(_read(files[at], dtype, shape) if files else random(dtype, shape, rng))
    return found


def random(dtype: np.dtype, shape: Sequence[int], rng: np.random.Generator) -> np.ndarray:
    """Values as the original makes them, by type.

    Floating: 0.1 to 1. Signed integers: 0 or 1, but int8 -127 to 127. uint8: 0 to 254. Others: the
    bytes 0 to 255, again and again; of these bool takes the last bit.
    """
    if dtype.kind == "f" or dtype.name == "bfloat16":
        return rng.uniform(0.1, 1.0, shape).astype(dtype)
    if dtype.kind == "i" or dtype == np.uint8:
        low, high = {"int8": (-127, 127), "uint8": (0, 254)}.get(dtype.name, (0, 1))
        return rng.integers(low, high, shape, dtype, endpoint=True)
    count = int(np.prod(shape)) * dtype.itemsize
    ramp = (np.arange(count) % (2 if dtype == np.bool_ else 256)).astype(np.uint8)
    return ramp.view(dtype).reshape(shape)


def _read(file: str, dtype: np.dtype, shape: Sequence[int]) -> np.ndarray:
    wanted = int(np.prod(shape)) * dtype.itemsize
    try:
        with open(file, "rb") as opened:
            size = os.fstat(opened.fileno()).st_size
            data = opened.read(wanted + 1)  # never more: it may have no end
    except OSError as exc:
        raise InputError(f"cannot read the input {file!r}: {exc.strerror or exc}") from exc
    if len(data) != wanted:
        raise InputError(
            f"Input binary file size error, required: {wanted}, in fact: {max(size, len(data))}: "
            f"{file!r} shall hold {list(shape)} values of {dtype.name}"
        )
    return np.frombuffer(bytearray(data), dtype).reshape(shape)
