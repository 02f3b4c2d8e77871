"""Checks of arguments, each returning a plain Python value or raising an error.

The wording is part of the documented API: programs look for "<name> must be <type>" in the text.
"""

from __future__ import annotations

import mmap
import operator
import os
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
Sections = dict[str, dict[str, str]]  # of a configuration: section, key, value

# the short form in which the original's documents write two entries, outside of any section
SHORT = {
    "pids": ("ascend_context", "shareable_weight_pid_list"),
    "shared_mem_handle": ("ascend_context", "shareable_weight_mem_handle"),
}


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


def path(name: str, value: object) -> str:
    """A path as text; `~` in front is the home directory, unless there is such a name."""
    found = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(found, str):
        raise wrong_type(name, "str or os.PathLike", value)
    if found.startswith("~") and not os.path.lexists(found):
        return os.path.expanduser(found)
    return found


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


def sections(name: str, value: object) -> Sections:
    """A deep copy of a dict of dicts of str.

    The keys of SHORT may stand outside of a section, with a str or a whole number as their value.
    """
    found: Sections = {}
    for key, entries in instance(name, value, dict).items():
        string(f"{name}_key", key)
        if key in SHORT and not isinstance(entries, dict):
            section, entry_key = SHORT[key]
            is_number = isinstance(entries, Integral) and not isinstance(entries, bool)
            text = str(int(entries)) if is_number else string(f"{name}_value", entries)
            found.setdefault(section, {})[entry_key] = text
            continue
        copied = found.setdefault(key, {})
        for entry_key, entry in instance(f"{name}_value", entries, dict).items():
            string(f"{name}_value_key", entry_key)
            copied[entry_key] = _entry(f"{name}_value_value", entry, f"{key}.{entry_key}")
    return found


def _entry(name: str, value: object, where: str) -> str:
    """The value of an entry, which is text; a path becomes that."""
    if isinstance(value, os.PathLike):
        return path(name, value)
    if not isinstance(value, str):
        problem = wrong_type(name, "str", value)
        if isinstance(value, int | float):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            problem.args = (f"{problem.args[0]} For {where} write {text!r}.",)
        raise problem
    return value


def _index(value: Any) -> int:
    # bool has __index__, but True as a thread count or a dim is a mistake of the caller
    if isinstance(value, bool | np.bool_):
        raise TypeError
    return operator.index(value)
