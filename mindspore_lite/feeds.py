"""Between callers and engines: what callers give becomes arrays, what engines give Tensors.

This is on the path of every request. The usual case, an array of the right type and shape, is
decided by three comparisons; everything else may take its time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mindspore_lite import checks
from mindspore_lite.engines.base import ANY_RANK, TensorInfo
from mindspore_lite.errors import InputError
from mindspore_lite.tensor import Tensor, rounded


def arrays(infos: Sequence[TensorInfo], inputs: object) -> list[np.ndarray]:
    """One C-contiguous array per input, from Tensors or arrays in order, or a dict by name."""
    given: Sequence[Any]
    if isinstance(inputs, Mapping):
        given = _by_name(infos, inputs)
    elif isinstance(inputs, list | tuple):
        given = inputs
    else:
        raise checks.wrong_type("inputs", "list or tuple, or a dict by input name", inputs)
    if len(given) != len(infos):
        raise InputError(
            f"model input len:{len(infos)} not equal input len:{len(given)}! "
            f"The model's inputs are {[info.name for info in infos]}"
        )
    return [_array(info, value) for info, value in zip(infos, given)]  # noqa: B905 - counted above


def tensors(
    infos: Sequence[TensorInfo], results: Sequence[np.ndarray], outputs: Sequence[Tensor] | None
) -> list[Tensor]:
    """The results as Tensors: new ones, or the caller's own, filled."""
    if outputs is None:
        return [Tensor._wrap(info.name, array) for info, array in zip(infos, results)]  # noqa: B905
    for tensor, array in zip(outputs, results, strict=True):
        tensor._fill(array)
    return list(outputs)


def checked_outputs(infos: Sequence[TensorInfo], outputs: object) -> Sequence[Tensor] | None:
    """The Tensors to write into, if the caller brought some."""
    if outputs is None:
        return None
    found = checks.instances("outputs", outputs, Tensor)
    if len(found) != len(infos):
        raise InputError(
            f"{len(found)} outputs were given, the model has {len(infos)}: "
            f"{[info.name for info in infos]}"
        )
    return found


def _by_name(infos: Sequence[TensorInfo], inputs: Mapping[Any, Any]) -> list[Any]:
    names = [info.name for info in infos]
    unknown = [name for name in inputs if name not in names]
    missing = [name for name in names if name not in inputs]
    if unknown or missing:
        raise InputError(
            f"inputs by name do not fit: missing {missing}, unknown {unknown}; "
            f"the model's inputs are {names}"
        )
    return [inputs[name] for name in names]


def _array(info: TensorInfo, given: object) -> np.ndarray:
    if isinstance(given, Tensor):
        data = given._filled()
        if data is None:
            raise InputError(
                f"input {info.name!r} has no data; "
                "fill it with set_data_from_numpy() before predict()"
            )
        given = data
    if not isinstance(given, np.ndarray):
        raise TypeError(f"inputs element must be Tensor, of numpy, but got {type(given)}.")
    if given.dtype != info.dtype:  # a byte-swapped array differs here, too
        given = _converted(info, given)
    if given.shape != info.shape:
        given = _shaped(info, given)
    return given if given.flags.c_contiguous else np.ascontiguousarray(given)


def _converted(info: TensorInfo, array: np.ndarray) -> np.ndarray:
    array = rounded(array, info.dtype)
    if array.dtype.newbyteorder("=") == info.dtype:
        return array.astype(info.dtype)
    wanted = "float32" if info.dtype.name == "bfloat16" else info.dtype
    raise InputError(
        f"data type not equal! Numpy type: {array.dtype}, Tensor type: {info.dtype}; "
        f"convert what you give for input {info.name!r} with astype(np.{wanted})"
    )


def _shaped(info: TensorInfo, array: np.ndarray) -> np.ndarray:
    """Another shape of the same size is taken as it lies in memory: quick starts rely on it."""
    if info.shape == ANY_RANK:
        return array
    if -1 not in info.shape:
        if array.size == math.prod(info.shape):
            return array.reshape(info.shape)
        size = math.prod(info.shape) * info.dtype.itemsize
        raise InputError(
            f"data size not equal! Numpy size: {array.nbytes}, Tensor size: {size}; "
            f"input {info.name!r} got shape {list(array.shape)}, the model wants "
            f"{list(info.shape)}; resize() changes that"
        )
    fits = len(array.shape) == len(info.shape) and all(
        want in (-1, have) for want, have in zip(info.shape, array.shape, strict=True)
    )
    if not fits:
        raise InputError(
            f"data size not equal! Input {info.name!r} got shape {list(array.shape)}, "
            f"the model wants {list(info.shape)} where -1 is free; give the array that shape, "
            "or call resize() first"
        )
    return array
