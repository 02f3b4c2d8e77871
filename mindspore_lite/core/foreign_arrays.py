"""Arrays of other libraries, lists of numbers and pictures, where a NumPy array is wanted.

What can be taken in one way only is taken: arrays that have DLPack or `__array__` and the wanted
element type, and lists of numbers. Anything else is an error that names the conversion; none of the
libraries is imported for that.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any

import numpy as np

from mindspore_lite.core import checks, layouts
from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.errors import InputError

TakeOver = Callable[[Any], np.ndarray]  # the memory of a host array that has DLPack

_HOST_KINDS = (1, 3, 11, 13)  # DLPack's: CPU, pinned for CUDA or ROCm, managed by CUDA
_PLAIN_MODES = ("L", "RGB", "RGBA", "F", "I")  # of PIL: pixels are what they seem
_KINDS = {"b": "b", "i": "iufcV", "u": "iufcV", "f": "fcV", "c": "c"}  # V: bfloat16


def on_host(array: Any) -> bool:
    """Whether what has DLPack lies on the host, not on a card."""
    try:
        kind, _ = array.__dlpack_device__()
    except ValueError as exc:  # PyTorch's, of a tensor on device "meta"
        raise InputError(f"{_article(array)} holds no numbers that can be read: {exc}") from exc
    return int(kind) in _HOST_KINDS


def on_card(value: Any) -> bool:
    """Whether something has DLPack and lies on a card."""
    return hasattr(value, "__dlpack_device__") and not on_host(value)


def detached(array: Any) -> Any:
    """The array without its history: PyTorch exports nothing that wants a gradient."""
    array = array.detach() if getattr(array, "requires_grad", False) is True else array
    return negated(array)


def negated(array: Any) -> Any:
    """The array with its sign, of which PyTorch keeps a note (`z.conj().imag`) and DLPack none."""
    is_noted = getattr(array, "is_neg", None)
    return array.resolve_neg() if callable(is_noted) and is_noted() is True else array


def plain(name: str, value: object, wanted: str, take_over: TakeOver) -> np.ndarray:
    """An array for a Tensor, whose element type is the array's own.

    Raises:
        TypeError: It is none, or one that lies on a card.
    """
    if isinstance(value, np.ndarray):
        return _unmasked(value)
    if hasattr(value, "__dlpack__") and on_host(value):
        return take_over(detached(value))
    problem = checks.wrong_type(name, wanted, value)
    if hint := _conversion(value, None):
        problem.args = (f"{problem.args[0]} {hint[0].upper()}{hint[1:]}.",)
    raise problem


def as_input(info: TensorInfo, value: object, take_over: TakeOver) -> np.ndarray:
    """An array for an input of a model, from anything that lies on the host.

    Raises:
        TypeError: It is nothing that holds numbers.
        InputError: It can be taken in several ways, or has another element type.
    """
    if isinstance(value, np.ndarray):
        return _unmasked(value)
    if isinstance(value, list | tuple | Number | np.generic):
        return _numbers(info, value)
    if hasattr(value, "__dlpack__"):
        found = _taken_over(value, take_over)
    elif hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
        found = np.asarray(value)
    else:
        raise TypeError(f"inputs element must be Tensor, of numpy, but got {type(value)}.")
    rounds = info.dtype.name == "bfloat16" and found.dtype == np.float32
    fits = found.dtype == info.dtype or rounds
    if not fits or (_library(value) == "PIL" and not _is_plain_picture(info, value, found)):
        raise InputError(
            f"input {info.name!r} got {_article(value)} of {found.dtype} {list(found.shape)}, the "
            f"model wants {info.dtype} {list(info.shape)}; {_conversion(value, info)}",
            input_name=info.name,
        )
    return found


def _unmasked(array: np.ndarray) -> np.ndarray:
    if isinstance(array, np.ma.MaskedArray):
        raise InputError(
            "a masked array was given, and a model knows no masks; give array.filled(value)"
        )
    return np.asarray(array)  # np.matrix has two dims, whatever shape it is given


def _taken_over(value: Any, take_over: TakeOver) -> np.ndarray:
    try:
        return take_over(detached(value))
    except (BufferError, RuntimeError, TypeError) as exc:
        if hasattr(value, "__array__"):  # types that DLPack has no name for
            try:
                return np.asarray(value)
            except (RuntimeError, TypeError, ValueError):
                pass
        raise InputError(f"{_article(value)} cannot be taken over: {exc}") from exc


def _numbers(info: TensorInfo, value: object) -> np.ndarray:
    """Numbers in lists of equal lengths, as the type that the model wants, if it can hold them."""
    leaf = value
    while isinstance(leaf, list | tuple) and leaf:
        leaf = leaf[0]
    if not isinstance(leaf, Number | np.generic | list | tuple):
        raise TypeError(
            f"inputs element must be Tensor, of numpy, but got {type(value)} of {type(leaf)}; "
            "join arrays with np.stack() first"
        )
    try:
        found = np.array(value)
    except ValueError as exc:
        raise InputError(
            f"input {info.name!r} got lists of different lengths, wanted those of one array: {exc}",
            input_name=info.name,
        ) from exc
    empty = not found.size
    if not empty and info.dtype.kind not in _KINDS.get(found.dtype.kind, ""):
        raise InputError(
            f"data type not equal! input {info.name!r} got a {type(value).__name__} of "
            f"{found.dtype}, the model wants {info.dtype}; give np.array(numbers, np.{info.dtype})",
            input_name=info.name,
        )
    with np.errstate(over="ignore"):
        cast = found.astype(info.dtype)
    lost = found.dtype.kind in "iu" and info.dtype.kind in "iu" and (cast != found).any()
    if lost or (info.dtype.kind in "fcV" and (np.isinf(cast) & np.isfinite(found)).any()):
        raise InputError(
            f"input {info.name!r} got numbers that {info.dtype} cannot hold", input_name=info.name
        )
    return cast


def _is_plain_picture(info: TensorInfo, picture: Any, pixels: np.ndarray) -> bool:
    """Whether the pixels are what the model takes, without a choice of colours or layout."""
    if getattr(picture, "mode", "") not in _PLAIN_MODES:
        return False
    shape = pixels.shape
    return -1 not in info.shape and layouts.taken_as_it_lies(info.shape, shape)


def _library(value: object) -> str:
    return type(value).__module__.partition(".")[0]


def _article(value: object) -> str:
    return f"a {_library(value)} {type(value).__name__}"


def _conversion(value: object, info: TensorInfo | None) -> str:
    """The expression that makes an array of a foreign object."""
    kind = f"np.{info.dtype}" if info is not None else "np.float32"
    library = _library(value)
    if library == "PIL":
        return (
            "pixels = np.asarray(image.convert('RGB')) are height x width x 3 of uint8: resize the "
            "picture, scale the numbers as in training, and for NCHW give "
            f"pixels.astype({kind}).transpose(2, 0, 1)[None]"
        )
    if library in ("pandas", "polars"):
        return f"give frame.to_numpy().astype({kind})"
    if library == "torch":
        return f"give tensor.cpu().to(torch.{kind.removeprefix('np.')})"
    if library in ("jax", "jaxlib", "cupy"):
        return f"give array.astype({kind}), on the host"
    if isinstance(value, list | tuple):
        return f"give np.array(numbers, {kind})"
    return f"give np.asarray(array, {kind})" if hasattr(value, "__array__") else ""
