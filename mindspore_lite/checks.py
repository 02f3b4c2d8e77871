"""Checks of arguments: a value from the user goes in, a plain Python value or an error comes out.

The wording is part of the documented API: programs look for "<name> must be <type>" in the text.
"""

from __future__ import annotations

import mmap
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


def wrong_type(name: str, wanted: str, value: object, where: str = "") -> TypeError:
    """The one wording of all type errors, to be raised by the caller."""
    return TypeError(f"{name} must be {wanted}, but got {type(value)}{where}.")


def instance(name: str, value: object, kind: type[T], wanted: str = "") -> T:
    """The value itself, which must be of the class `kind` (called `wanted` in the message)."""
    if not isinstance(value, kind):
        raise wrong_type(name, wanted or kind.__name__, value)
    return value


def string(name: str, value: object) -> str:
    """The value itself, which must be a str."""
    return instance(name, value, str)


def content(name: str, value: object) -> bytes:
    """The bytes of a file as they are now; what its owner can change or close is copied."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, bytearray | memoryview | mmap.mmap):
        return bytes(memoryview(value))
    raise wrong_type(name, "bytes", value)


def integer(name: str, value: Any) -> int:
    """The value as an int; NumPy integers count, truth values do not."""
    try:
        return _index(value)
    except TypeError:
        raise wrong_type(name, "int", value) from None


def non_negative(name: str, value: Any) -> int:
    """The value as an int that is 0 or more."""
    number = integer(name, value)
    if number < 0:
        raise ValueError(f"{name} must be a non-negative int, but got {number}.")
    return number


def positive(name: str, value: Any) -> int:
    """The value as an int that is 1 or more."""
    number = integer(name, value)
    if number < 1:
        raise ValueError(f"{name} must be a positive int, but got {number}.")
    return number


def seconds(name: str, value: Any) -> float:
    """The value as a number of seconds that is 0 or more."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
        raise wrong_type(name, "int or float", value)
    if not value >= 0:  # NaN is not
        raise ValueError(f"{name} must be 0 or more seconds, but got {value}.")
    return float(value)


def flag(name: str, value: object) -> bool:
    """The value itself, which must be a bool."""
    return instance(name, value, bool)


def one_of(*legal: str) -> Callable[[str, object], str]:
    """A check that lets only the given texts through."""

    def check(name: str, value: object) -> str:
        if string(name, value) not in legal:
            raise ValueError(f"{name} must be in [{', '.join(legal)}], but got {value}.")
        return str(value)

    return check


def sequence(name: str, value: object, wanted: str = "list") -> Sequence[Any]:
    """The value itself, which must be a sequence of things: texts, bytes and arrays are not."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes | bytearray | memoryview):
        raise wrong_type(name, wanted, value)
    return value


def instances(name: str, value: object, kind: type[T], wanted: str = "list") -> list[T]:
    """The value as a list whose elements are all of the class `kind`."""
    items = sequence(name, value, wanted)
    for at, item in enumerate(items):
        if not isinstance(item, kind):
            raise wrong_type(f"{name} element", kind.__name__, item, f" at index {at}")
    return list(items)


def integers(name: str, value: object, wanted: str = "list") -> list[int]:
    """The value as a list of ints; an array with one axis counts as a sequence here."""
    if isinstance(value, np.ndarray) and value.ndim == 1:
        value = list(value)
    numbers = []
    for at, item in enumerate(sequence(name, value, wanted)):
        try:
            numbers.append(_index(item))
        except TypeError:
            raise wrong_type(f"{name} element", "int", item, f" at index {at}") from None
    return numbers


def _index(value: Any) -> int:
    # bool has __index__, but True as a thread count or a dim is a mistake of the caller
    if isinstance(value, bool | np.bool_):
        raise TypeError
    return operator.index(value)
