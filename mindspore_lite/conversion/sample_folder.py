"""Looks into the folders of `--samples`: what their files are, and which input they are for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mindspore_lite.conversion.quant_settings import DataSettings, ImageSteps
from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.errors import SettingsError

_KINDS = {
    **dict.fromkeys((".jpg", ".jpeg", ".png", ".bmp", ".webp", ".ppm", ".pgm"), "IMAGE"),
    ".npy": "BIN",
    ".bin": "BIN",
    ".npz": "NPZ",
}
_FRACTION = 255.0  # of a pixel: without other wishes they become numbers from 0 to 1


def seen(settings: DataSettings, inputs: Sequence[TensorInfo]) -> DataSettings:
    """The settings with the kind of the files, a name for each folder, and sizes of pictures.

    Raises:
        SettingsError: A folder holds files of no kind or of several, or nobody can say whose it is.
    """
    kinds = {kind for _, folder in settings.folders for kind in [_kind(folder)]}
    if len(kinds) > 1:
        raise SettingsError(f"--samples got files of several kinds ({', '.join(sorted(kinds))})")
    (kind,) = kinds
    names = [info.name for info in inputs]
    folders = settings.folders
    if [name for name, _ in folders] == [""]:
        if kind != "NPZ" and len(names) > 1:
            raise SettingsError(
                f"--samples got one folder, but the model has the inputs {names}; give "
                "NAME=FOLDER for each of them, or .npz files that hold all of them"
            )
        place = folders[0][1]
        folders = tuple((name, place) for name in names)
    found = replace(settings, kind=kind, folders=folders)
    if kind != "IMAGE" or len(inputs) != 1:
        return found
    return replace(found, image=_steps(settings.image, inputs[0]))


def _kind(folder: Path) -> str:
    if not folder.is_dir():
        raise SettingsError(f"--samples got {str(folder)!r}, which is no folder")
    files = [one for one in folder.iterdir() if one.is_file() and not one.name.startswith(".")]
    kinds = {_KINDS.get(file.suffix.lower(), "") for file in files}
    if len(kinds) == 1 and (kind := kinds.pop()):
        return kind
    suffixes = sorted({file.suffix or file.name for file in files})[:5]
    raise SettingsError(
        f"the folder {str(folder)!r} of --samples holds {', '.join(suffixes) or 'nothing'}; wanted "
        "files of one kind: images (.jpg, .png), .npy, or .npz with an array for each input"
    )


def _steps(asked: ImageSteps, info: TensorInfo) -> ImageSteps:
    """What makes pictures fit an input: its size and channels, and numbers from 0 to 1."""
    if len(info.shape) != 4:
        return asked  # which is refused with the reason
    first = info.shape[1] in (1, 3) or info.shape[3] not in (1, 3)
    channels, height, width = (
        (info.shape[1], *info.shape[2:]) if first else (info.shape[3], *info.shape[1:3])
    )
    steps = replace(asked, colours="GRAY" if channels == 1 else "RGB")
    if min(height, width) > 0:
        steps = replace(steps, size=(width, height))
    if info.dtype.kind == "f" and not asked.mean and not asked.std:
        steps = replace(steps, std=(_FRACTION,) * (1 if channels == 1 else 3))
    return steps
