"""Parses --input and --shape into names, sizes and arrays."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

import numpy as np

from mindspore_lite.errors import InputError

_VALUES = {"--input": "FILE, such as x=cat.npy", "--shape": "SIZES, such as x=1,3,224,224"}
_PICTURES = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".gif", ".tif", ".tiff")


def read_pairs(flag: str, given: list[str] | None) -> dict[str, str]:
    """`NAME=VALUE` of each time that a flag was given."""
    found = {}
    for text in given or []:
        name, equals, value = text.rpartition("=")
        if not equals or not name or not value:
            raise ValueError(f"{flag} got {text!r}, wanted NAME={_VALUES.get(flag, 'VALUE')}")
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


def check_file(name: str, file: str) -> None:
    """Raise unless a file is there that an input can be read from.

    Raises:
        InputError: It is not there, or an image: only the user knows how pixels become numbers.
    """
    path = Path(file)
    if not path.is_file():
        nearest = get_close_matches(path.name, _names_in(path.parent), 1)
        hint = f"; did you mean {str(path.parent / nearest[0])!r}?" if nearest else ""
        raise InputError(
            f"--input {name}: there is no file {file!r} (looked in {str(Path.cwd())!r}){hint}"
        )
    if path.suffix.lower() in _PICTURES:
        raise InputError(
            f"--input {name}: {file!r} is a picture, wanted numbers as the model was trained with; "
            "store them: numpy.save('x.npy', array), where array is the picture resized, scaled "
            "and laid out as the input is"
        )


def _names_in(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir()] if folder.is_dir() else []


def read_array(file: str) -> np.ndarray:
    """What a .npy file holds."""
    try:
        found: np.ndarray = np.load(file, allow_pickle=False)
        return found
    except ValueError as exc:
        raise ValueError(f"{file!r} is no .npy file of plain numbers: {exc}") from exc
