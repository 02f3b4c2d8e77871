"""Reads calibration data from the user's folders, one request at a time.

A folder for each input; its files are taken in the order of their names, and the n-th files of all
folders make the n-th request. A file is a picture (input_type=IMAGE), an array stored by NumPy
(`.npy`) or the bare bytes of an input. Files are read when they are wanted, never all at once.
With --samples a folder says itself what its files are; those may be `.npz` as well, each with an
array for every input. Some samples are held out, to compare the result on: every fifth of
--samples, or what calibrate_size leaves.

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
from mindspore_lite.conversion.quant_settings import ANY, DataSettings
from mindspore_lite.conversion.sample_folder import seen
from mindspore_lite.conversion.setting_names import name_of
from mindspore_lite.core.files import open_file
from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.errors import InputError, ModelFileError, SettingsError
from mindspore_lite.weights.npz_file import read_npy, read_npz

_TO_NCHW, _TO_NHWC = (0, 3, 1, 2), (0, 2, 3, 1)
_CHANNELS = (1, 3)  # of pictures
_EVERY = 5  # of so many samples one is held out


@dataclass(frozen=True)
class Samples:
    """The requests that calibrate a model; may be gone through more than once."""

    inputs: tuple[TensorInfo, ...]
    files: tuple[tuple[Path, ...], ...]  # of each input, equally many
    settings: DataSettings
    held: tuple[tuple[Path, ...], ...] = ()  # likewise, which do not calibrate

    def __len__(self) -> int:
        return len(self.files[0])

    def held_out(self) -> Samples | None:
        """What the result can be compared on; None where every file calibrates."""
        return Samples(self.inputs, self.held, self.settings) if self.held else None

    def __iter__(self) -> Iterator[list[np.ndarray]]:
        for paths in zip(*self.files, strict=True):
            yield [self._read(*both) for both in zip(paths, self.inputs, strict=True)]

    def _read(self, path: Path, info: TensorInfo) -> np.ndarray:
        try:
            if self.settings.kind == "IMAGE":
                return _from_image(path, info, self.settings)
            if path.suffix.lower() == ".npz" and self.settings.kind == "NPZ":
                return _from_npz(path, info)
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
    settings = seen(settings, inputs) if settings.kind == ANY else settings
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
    if not problems and len({len(found[: settings.count]) for found in files.values()}) > 1:
        counts = ", ".join(f"{len(found)} for {name!r}" for name, found in files.items())
        problems.append(f"the folders hold unequal numbers of files ({counts}); set calibrate_size")
    if settings.kind == "IMAGE":
        problems += [text for info in inputs if (text := _no_picture(info))]
    if problems:
        raise SettingsError("\n".join(problems), problems)
    used, held = zip(*(_parted(files[name], settings) for name in names), strict=True)
    least = min(map(len, held))  # with calibrate_size the folders may hold unequal numbers
    rest = tuple(one[:least] for one in held) if least else ()
    return Samples(tuple(inputs), used, settings, rest)


def _parted(
    files: tuple[Path, ...], settings: DataSettings
) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """The files that calibrate, and those that are held out."""
    if not settings.hold_out:
        return files[: settings.count], files[settings.count :] if settings.count else ()
    held = files[_EVERY - 1 :: _EVERY]
    return tuple(file for file in files if file not in held), held


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
    return tuple(found)


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


def _from_npz(path: Path, info: TensorInfo) -> np.ndarray:
    arrays = dict(read_npz(path))
    if info.name not in arrays:
        raise InputError(f"{path} has no array {info.name!r}; it has {sorted(arrays)}")
    return _fitted(path, info, arrays[info.name])


def _from_npy(path: Path, info: TensorInfo) -> np.ndarray:
    file = open_file(path)
    try:
        with file.stream() as stream:
            stored = read_npy(path.name, file.size, stream)
    except (ValueError, ModelFileError) as exc:
        raise InputError(f"{path} is no array stored by numpy.save: {exc}") from exc
    return _fitted(path, info, stored)


def _fitted(path: Path, info: TensorInfo, stored: np.ndarray) -> np.ndarray:
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
