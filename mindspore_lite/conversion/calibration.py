"""Reads calibration data from the user's folders, one request at a time.

A folder for each input; its files are taken in the order of their names, and the n-th files of all
folders make the n-th request. A file is a picture (input_type=IMAGE), an array stored by NumPy
(`.npy`) or the bare bytes of an input. Files are read when they are wanted, never all at once.

Bare bytes of a 4-D input lie as NHWC, whatever the model has, unless the converter has another
layout by --inputDataFormat: so it is with MindSpore Lite. A `.npy` has its shape with it and may
lie as the model has it, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mindspore_lite.conversion.images import check_library, read_image
from mindspore_lite.conversion.quant_settings import DataSettings
from mindspore_lite.conversion.setting_names import name_of
from mindspore_lite.core.files import open_file
from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.errors import InputError, ModelFileError, SettingsError
from mindspore_lite.weights.npz_file import read_npy

_TO_NCHW, _TO_NHWC = (0, 3, 1, 2), (0, 2, 3, 1)
_CHANNELS = (1, 3)  # of pictures


@dataclass(frozen=True)
class Samples:
    """The requests that calibrate a model; may be gone through more than once."""

    inputs: tuple[TensorInfo, ...]
    files: tuple[tuple[Path, ...], ...]  # of each input, equally many
    settings: DataSettings

    def __len__(self) -> int:
        return len(self.files[0])

    def __iter__(self) -> Iterator[list[np.ndarray]]:
        for paths in zip(*self.files, strict=True):
            yield [self._read(*both) for both in zip(paths, self.inputs, strict=True)]

    def _read(self, path: Path, info: TensorInfo) -> np.ndarray:
        try:
            if self.settings.kind == "IMAGE":
                return _from_image(path, info, self.settings)
            if path.suffix.lower() == ".npy":
                return _from_npy(path, info)
            return _from_bytes(path, info, self.settings.layout)
        except OSError as exc:
            raise InputError(f"{path} cannot be read: {exc.strerror or exc}") from exc
        except ModelFileError as exc:
            raise InputError(str(exc)) from exc


def open_samples(settings: DataSettings, inputs: Sequence[TensorInfo]) -> Samples:
    """Find the files of every input; what they hold is checked when they are read.

    Raises:
        SettingsError: Folders and inputs, or their numbers of files, do not fit; every problem.
        EngineUnavailableError: Images are wanted and Pillow is not there.
    """
    if settings.kind == "IMAGE":
        check_library()
    folders = dict(settings.folders)
    names = [info.name for info in inputs]
    problems = [
        f"calibrate_path has no folder for the input {name!r}"
        for name in names
        if name not in folders
    ]
    problems += [
        f"calibrate_path names {name!r}, which is no input of the model; it has {names}"
        for name in folders
        if name not in names
    ]
    files = {name: _files(name, path, settings.count, problems) for name, path in folders.items()}
    if not problems and len({len(found) for found in files.values()}) > 1:
        counts = ", ".join(f"{len(found)} for {name!r}" for name, found in files.items())
        problems.append(f"the folders hold unequal numbers of files ({counts}); set calibrate_size")
    if settings.kind == "IMAGE":
        problems += [text for info in inputs if (text := _no_picture(info))]
    if problems:
        raise SettingsError("\n".join(problems), problems)
    return Samples(tuple(inputs), tuple(files[name] for name in names), settings)


def _files(name: str, folder: Path, count: int | None, problems: list[str]) -> tuple[Path, ...]:
    if not folder.is_dir():
        problems.append(f"the folder {str(folder)!r} for the input {name!r} does not exist")
        return ()
    # what begins with a dot was put there by tools
    found = sorted(p for p in folder.iterdir() if p.is_file() and not p.name.startswith("."))
    if len(found) < (count or 1):
        problems.append(
            f"the folder {str(folder)!r} for the input {name!r} holds {len(found)} files, "
            f"wanted at least {count or 1}"
        )
    return tuple(found[:count])


def _no_picture(info: TensorInfo) -> str:
    """Why an input cannot be fed by pictures, one at a time."""
    if len(info.shape) != 4:
        return f"input {info.name!r} has shape {list(info.shape)}: images serve 4-D inputs, use BIN"
    if info.shape[0] not in (-1, 1):
        return f"input {info.name!r} takes {info.shape[0]} images at once: store them and use BIN"
    return ""


def _channels_first(shape: Sequence[int]) -> bool:
    """Whether a 4-D input is NCHW; where both ends look like channels, it is, as ONNX has it."""
    return shape[1] in _CHANNELS or shape[3] not in _CHANNELS


def _from_image(path: Path, info: TensorInfo, settings: DataSettings) -> np.ndarray:
    pixels = read_image(path, settings.image)
    if pixels.dtype.kind == "f" and info.dtype.kind != "f":
        raise InputError(
            f"{path}: the input {info.name!r} is {info.dtype}, normalised pixels are fractions; "
            "leave normalize_mean and normalize_std out"
        )
    array = pixels[np.newaxis].astype(info.dtype)
    if _channels_first(info.shape):
        array = array.transpose(_TO_NCHW)
    if not _fits(array.shape, info.shape):
        raise InputError(
            f"{path} becomes {list(array.shape)}, the input {info.name!r} wants "
            f"{list(info.shape)}; set resize_width and resize_height, center_crop_width and "
            "center_crop_height, or image_to_format"
        )
    return np.ascontiguousarray(array)


def _from_npy(path: Path, info: TensorInfo) -> np.ndarray:
    file = open_file(path)
    try:
        with file.stream() as stream:
            stored = read_npy(path.name, file.size, stream)
    except (ValueError, ModelFileError) as exc:
        raise InputError(f"{path} is no array stored by numpy.save: {exc}") from exc
    if stored.dtype != info.dtype:
        raise InputError(
            f"{path} holds {stored.dtype}, the input {info.name!r} wants {info.dtype}; "
            f"store array.astype({str(info.dtype)!r})"
        )
    array: np.ndarray = stored
    if not _fits(array.shape, info.shape) and array.ndim == len(info.shape) == 4:
        array = array.transpose(_TO_NCHW if _channels_first(info.shape) else _TO_NHWC)
    if not _fits(array.shape, info.shape):
        raise InputError(
            f"{path} has shape {list(stored.shape)}, the input {info.name!r} wants "
            f"{list(info.shape)}"
        )
    return np.array(array, order="C")


def _from_bytes(path: Path, info: TensorInfo, layout: str) -> np.ndarray:
    file = open_file(path)
    size, item = file.size, info.dtype.itemsize
    known = math.prod(dim for dim in info.shape if dim >= 0)
    if info.shape.count(-1) > 1:
        raise InputError(
            f"{path}: bare bytes do not tell the shape of the input {info.name!r}, "
            f"{list(info.shape)}; store arrays as .npy, or fix the shape with {name_of('shape')}"
        )
    unit = known * item
    open_dim = -1 in info.shape
    if not unit or size % unit or (size != unit and not open_dim) or not size:
        raise InputError(
            f"{path} has {size} bytes, the input {info.name!r} of {list(info.shape)} "
            f"{info.dtype} takes {'a multiple of ' if open_dim else ''}{unit}"
        )
    shape = tuple(size // unit if dim < 0 else dim for dim in info.shape)
    array: np.ndarray = np.frombuffer(file.load(), info.dtype)
    if len(shape) == 4 and layout == "NHWC" and _channels_first(info.shape):
        n, c, h, w = shape
        return np.ascontiguousarray(array.reshape(n, h, w, c).transpose(_TO_NCHW))
    if len(shape) == 4 and layout == "NCHW" and not _channels_first(info.shape):
        n, h, w, c = shape
        return np.ascontiguousarray(array.reshape(n, c, h, w).transpose(_TO_NHWC))
    return array.reshape(shape)


def _fits(shape: Sequence[int], wanted: Sequence[int]) -> bool:
    return len(shape) == len(wanted) and all(
        want in (-1, have) for have, want in zip(shape, wanted, strict=True)
    )
