"""Parses --input and --shape into names, sizes and arrays."""

from __future__ import annotations

import numpy as np

from mindspore_lite.errors import InputError


def read_pairs(flag: str, given: list[str] | None) -> dict[str, str]:
    """`NAME=VALUE` of each time that a flag was given."""
    found = {}
    for text in given or []:
        name, equals, value = text.rpartition("=")
        if not equals or not name or not value:
            raise ValueError(f"{flag} got {text!r}, wanted NAME=VALUE")
        found[name] = value
    return found


def check_names(names: list[str], given: dict[str, str]) -> None:
    """Raise InputError if a flag names an input that the model does not have."""
    unknown = sorted(set(given) - set(names))
    if unknown:
        raise InputError(f"the model has no input {unknown}; its inputs are {names}")


def read_shape(text: str) -> list[int]:
    """The sizes of one --shape."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--shape got {text!r}, wanted sizes like 1,3,224,224") from None


def read_array(file: str) -> np.ndarray:
    """What a .npy file holds."""
    try:
        found: np.ndarray = np.load(file, allow_pickle=False)
        return found
    except ValueError as exc:
        raise ValueError(f"{file!r} is no .npy file of plain numbers: {exc}") from exc
