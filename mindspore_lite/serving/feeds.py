"""Converts what callers give to arrays, and what engines return to Tensors.

This is on the path of every request. The usual case, an array of the right type and shape, is
decided by three comparisons; everything else may take its time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mindspore_lite.core import checks
from mindspore_lite.core.tensor_info import ANY_RANK, TensorInfo
from mindspore_lite.errors import InputError
from mindspore_lite.tensor import Format, Tensor, TensorMeta, rounded


def arrays(
    infos: Sequence[TensorInfo],
    inputs: object,
    *,
    any_size: bool = False,
    device: str | None = None,
) -> list[Any]:
    """One C-contiguous array per input, from Tensors or arrays in order, or a dict by name.

    With any_size, arrays of other sizes than the model's pass, too: the session settles that. What
    Tensors hold on `device`, a card in PyTorch's words, stays there; from others it is fetched.
    """
    given: Sequence[Any]
    if isinstance(inputs, list | tuple):
        given = inputs
    elif isinstance(inputs, Mapping):
        given = _by_name(infos, inputs)
    else:
        raise checks.wrong_type("inputs", "list or tuple, or a dict by input name", inputs)
    if len(given) != len(infos):
        raise InputError(
            f"model input len:{len(infos)} not equal input len:{len(given)}! "
            f"The model's inputs are {[info.name for info in infos]}"
        )
    return [
        value
        if type(value) is np.ndarray
        and value.dtype is info.dtype  # types that NumPy knows exist once
        and value.shape == info.shape
        and value.flags.c_contiguous
        else _array(info, value, any_size, device)
        for info, value in zip(infos, given)  # noqa: B905 - counted above
    ]


def tensors(
    infos: Sequence[TensorInfo], results: Sequence[Any], outputs: Sequence[Tensor] | None
) -> list[Tensor]:
    """The results as Tensors: new ones, where the results are, or the caller's own, filled."""
    if outputs is None:
        return [
            Tensor._wrap(info.name, found)
            if isinstance(found, np.ndarray)
            else Tensor._on_card(info.name, found)
            for info, found in zip(infos, results)  # noqa: B905 - as many, by the contract
        ]
    for tensor, array in zip(outputs, results, strict=True):
        tensor._fill(array)
    return list(outputs)


def metas(infos: Sequence[TensorInfo]) -> tuple[TensorMeta, ...]:
    """What is known of tensors before a run."""
    shaped = (Tensor._unfilled(info.name, info.shape, info.dtype) for info in infos)
    return tuple(
        TensorMeta(t.name, t.dtype, t.shape, Format.NCHW, t.element_num, t.data_size)
        for t in shaped
    )


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


def _array(info: TensorInfo, given: object, any_size: bool, device: str | None) -> Any:
    if isinstance(given, Tensor):
        there = given._on(device)
        if there is not None:
            return _on_card(info, given, there, any_size)
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
    shape = _shape(info, given.shape, any_size)
    if given.shape != shape:
        given = given.reshape(shape)
    return given if given.flags.c_contiguous else np.ascontiguousarray(given)


def _on_card(info: TensorInfo, given: Tensor, data: Any, any_size: bool) -> Any:
    """What lies on the card already, and must have the model's own type there."""
    if given._dtype != info.dtype:
        raise InputError(
            f"data type not equal! Tensor on {given.device} has type {given._dtype}, the model "
            f"wants {info.dtype} for input {info.name!r}; convert it before, on the card"
        )
    given._settle()
    have = tuple(data.shape)
    shape = _shape(info, have, any_size)
    return data if shape == have else data.reshape(shape)  # a view: nothing moves


def _converted(info: TensorInfo, array: np.ndarray) -> np.ndarray:
    array = rounded(array, info.dtype)
    if array.dtype.newbyteorder("=") == info.dtype:
        return array.astype(info.dtype)
    wanted = "float32" if info.dtype.name == "bfloat16" else info.dtype
    raise InputError(
        f"data type not equal! Numpy type: {array.dtype}, Tensor type: {info.dtype}; "
        f"convert what you give for input {info.name!r} with astype(np.{wanted})"
    )


def _shape(info: TensorInfo, shape: tuple[int, ...], any_size: bool) -> tuple[int, ...]:
    """Another shape of the same size is taken as it lies in memory: quick starts rely on it."""
    if shape == info.shape or info.shape == ANY_RANK:
        return shape
    fixed = -1 not in info.shape
    if fixed and math.prod(shape) == math.prod(info.shape):
        return info.shape
    same_rank = len(shape) == len(info.shape)
    if same_rank and (
        any_size or all(want in (-1, have) for want, have in zip(info.shape, shape, strict=True))
    ):
        return shape
    got = f"{info.name!r} got shape {list(shape)}, the model wants {list(info.shape)}"
    remedy = f"give {len(info.shape)} dims" if any_size else "call resize() first"
    if fixed:
        bytes_each = info.dtype.itemsize
        raise InputError(
            f"data size not equal! Numpy size: {math.prod(shape) * bytes_each}, Tensor size: "
            f"{math.prod(info.shape) * bytes_each}; input {got}; {remedy}"
        )
    raise InputError(
        f"data size not equal! Input {got} where -1 is free; give the array that shape, or {remedy}"
    )
