"""Converts what callers give to arrays, and what engines return to Tensors.

This is on the path of every request. The usual case, an array of the right type and shape, is
decided by three comparisons; everything else may take its time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mindspore_lite.core import checks, foreign_arrays, layouts
from mindspore_lite.core.tensor_info import ANY_RANK, TensorInfo
from mindspore_lite.errors import InputError, ShapeError
from mindspore_lite.tensor import Format, Tensor, TensorMeta, host_array, rounded

_LISTS = (list, tuple)  # `list | tuple` would be made anew in every call


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
    if isinstance(inputs, _LISTS):
        given = inputs
    elif isinstance(inputs, Mapping):
        given = _by_name(infos, inputs)
    else:
        raise _no_list(inputs)
    if len(given) != len(infos):
        raise _wrong_count(infos, given)
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
    for at, tensor in enumerate(found):
        if not tensor._takes_results():
            raise InputError(
                f"outputs[{at}] lies in memory that is read-only; give a Tensor of a copy of it"
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


def _no_list(inputs: object) -> TypeError:
    problem = checks.wrong_type("inputs", "list or tuple, or a dict by input name", inputs)
    if hasattr(inputs, "__array__") or hasattr(inputs, "__dlpack__"):
        problem.args = (f"{problem.args[0]} For a model with one input write [x].",)
    return problem


def _wrong_count(infos: Sequence[TensorInfo], given: Sequence[Any]) -> InputError:
    numbers = len(infos) == 1 and all(isinstance(one, int | float | list | tuple) for one in given)
    return InputError(
        f"model input len:{len(infos)} not equal input len:{len(given)}! "
        f"The model's inputs are {[info.name for info in infos]}"
        + ("; for one input of numbers write [numbers]" if numbers and given else "")
    )


def _array(info: TensorInfo, given: object, any_size: bool, device: str | None) -> Any:
    if isinstance(given, Tensor):
        there = given._on(device)
        if there is not None:
            return _on_card(info, given, there, any_size)
        given = given._filled() if not info.zero_filled else given.get_data_to_numpy()
        if given is None:
            raise InputError(
                f"input {info.name!r} has no data; "
                "fill it with set_data_from_numpy() before predict()",
                input_name=info.name,
            )
    if type(given) is not np.ndarray:
        if foreign_arrays.on_card(given):
            on_card = Tensor.from_dlpack(foreign_arrays.detached(given))
            return _array(info, on_card, any_size, device)
        given = foreign_arrays.as_input(info, given, host_array)
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
            f"wants {info.dtype} for input {info.name!r}; convert it before, on the card",
            input_name=info.name,
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
        f"convert what you give for input {info.name!r} with astype(np.{wanted})",
        input_name=info.name,
    )


def _shape(info: TensorInfo, shape: tuple[int, ...], any_size: bool) -> tuple[int, ...]:
    """The shape with which an array goes in: its own, or the model's if it is taken as it lies."""
    if shape == info.shape or info.shape == ANY_RANK:
        return shape
    fixed = -1 not in info.shape
    same_rank = len(shape) == len(info.shape)
    as_many = fixed and math.prod(shape) == math.prod(info.shape)
    if as_many and not same_rank and layouts.taken_as_it_lies(info.shape, shape):
        return info.shape
    if same_rank:
        # where other sizes pass, pictures in another layout may be more or fewer, too
        batch = (-1, *info.shape[1:]) if any_size else info.shape
        hint = layouts.exchanged(batch, shape)
        is_open = all(want in (-1, have) for want, have in zip(info.shape, shape, strict=True))
        if is_open or (any_size and not hint):
            return shape
    else:
        hint = ""
    got = f"{info.name!r} got shape {list(shape)}, the model wants {list(info.shape)}"
    if as_many or hint:
        remedy = hint or layouts.remedy(info.shape, shape)
        raise ShapeError(f"data shape not equal! Input {got}; {remedy}", input_name=info.name)
    remedy = f"give {len(info.shape)} dims" if any_size else "call resize() first"
    if fixed:
        bytes_each = info.dtype.itemsize
        raise InputError(
            f"data size not equal! Numpy size: {math.prod(shape) * bytes_each}, Tensor size: "
            f"{math.prod(info.shape) * bytes_each}; input {got}; {remedy}",
            input_name=info.name,
        )
    raise InputError(
        f"data size not equal! Input {got} where -1 is free; give the array that shape, or "
        f"{remedy}",
        input_name=info.name,
    )
