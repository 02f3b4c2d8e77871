"""Parses --input and --shape into names, sizes and arrays; checks files to read and to write."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mindspore_lite.core.paths import nowhere
from mindspore_lite.errors import InputError

_VALUES = {"--input": "FILE, such as x=cat.npy", "--shape": "SIZES, such as x=1,3,224,224"}
PICTURES = (".bmp", ".jpg", ".jpeg", ".png", ".ppm", ".webp")
_NAMELESS = ""  # of a file that was given without NAME=


def read_pairs(flag: str, given: list[str] | None, *, nameless: bool = False) -> dict[str, str]:
    """`NAME=VALUE` of each time that a flag was given; a single one may be without a name."""
    found: dict[str, str] = {}
    if nameless and given and len(given) == 1 and "=" not in given[0]:
        return {_NAMELESS: given[0]}
    for text in given or []:
        name, equals, value = text.rpartition("=")
        if not equals or not name or not value:
            raise ValueError(f"{flag} got {text!r}, wanted NAME={_VALUES.get(flag, 'VALUE')}")
        if name in found:
            raise ValueError(
                f"{flag} got {name!r} twice, {found[name]!r} and {value!r}; leave one out"
            )
        found[name] = value
    return found


def with_name(names: Sequence[str], given: dict[str, str]) -> dict[str, str]:
    """What read_pairs() found, where the file without a name belongs to the only input."""
    if _NAMELESS not in given:
        return given
    if len(names) != 1:
        raise ValueError(
            f"--input got {given[_NAMELESS]!r}, wanted NAME=FILE: the model's inputs are "
            f"{list(names)}"
        )
    return {names[0]: given[_NAMELESS]}


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


def check_writable(*files: Path | None) -> None:
    """Raise OSError before anything is run, not after."""
    for file in files:
        if file is None:
            continue
        if file.is_dir():
            raise IsADirectoryError(f"{str(file)!r} is a folder, wanted a file to write")
        if not file.absolute().parent.is_dir():
            raise FileNotFoundError(f"there is no folder for {str(file)!r}; make it first")
        if not os.access(file if file.exists() else file.absolute().parent, os.W_OK):
            raise PermissionError(f"{str(file)!r} may not be written")


def check_files(given: dict[str, str], *, pictures: bool = True) -> None:
    """Raise InputError if a file is not there, with the nearest name, or may not be a picture."""
    for name, file in given.items():
        if not os.path.isfile(file):
            flag = f"--input {name}".rstrip()
            raise InputError(f"{flag}: there is no file {nowhere(file)}", input_name=name)
        if not pictures and file.lower().endswith(PICTURES):
            raise InputError(
                f"--input {name}: {file!r} is a picture, wanted numbers as the model was trained "
                "with; store them with numpy.save, resized, scaled and laid out as the input is",
                input_name=name,
            )


def read_picture(file: str, dtype: np.dtype, shape: Sequence[int]) -> tuple[np.ndarray, str]:
    """A picture as an input of this shape, and how it was made to fit.

    Raises:
        InputError: The shape is not one of pictures, or the file cannot be decoded.
        EngineUnavailableError: Pillow is missing.
    """
    from mindspore_lite.conversion.images import read_image
    from mindspore_lite.conversion.quant_settings import ImageSteps

    first = len(shape) == 4 and shape[1] in (1, 3) and shape[3] not in (1, 3)
    channels = shape[1 if first else -1] if len(shape) == 4 else 0
    if channels not in (1, 3) or shape[0] != 1:
        raise InputError(
            f"{file!r} is a picture, and the input has shape {list(shape)}, wanted one like "
            "[1, 3, 224, 224] or [1, 224, 224, 3]; store the numbers with numpy.save"
        )
    height, width = shape[2:] if first else shape[1:3]
    colours = "GRAY" if channels == 1 else "RGB"
    pixels = read_image(Path(file), ImageSteps(colours=colours, size=(width, height)))
    if first:
        pixels = pixels.transpose(2, 0, 1)
    how = f"{colours}, {width} x {height}"
    if dtype.kind == "f":
        return (pixels / np.float32(255)).astype(dtype)[None], f"{how}, from 0 to 1"
    return pixels.astype(dtype)[None], f"{how}, from 0 to 255"


def read_array(file: str) -> np.ndarray:
    """What a .npy file holds."""
    try:
        found: np.ndarray = np.load(file, allow_pickle=False)
        return found
    except ValueError as exc:
        raise ValueError(f"{file!r} is no .npy file of plain numbers: {exc}") from exc
