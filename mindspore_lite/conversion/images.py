"""Reads image files for calibration into arrays of height, width and channels.

The steps are decode, turn as the camera was held, convert colours, resize, crop, and normalise
last: a picture is resized and cut as a picture, and its numbers are scaled when it has its size.
MindSpore Lite normalises before it resizes, which differs where cubic resizing overshoots.

Resizing is Pillow's, which averages over all pixels that become one; OpenCV's, which the original
uses, samples.
"""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from mindspore_lite.conversion.quant_settings import ImageSteps
from mindspore_lite.core.extras import pip_install
from mindspore_lite.core.files import open_file
from mindspore_lite.errors import EngineUnavailableError, InputError

if TYPE_CHECKING:
    from PIL import Image

FORMATS = ("BMP", "JPEG", "PNG", "PPM", "WEBP")  # few decoders: the files are not trusted
MAX_PIXELS = 64_000_000  # 8000 x 8000; a file of some kilobytes can claim any size


def read_image(path: Path, steps: ImageSteps) -> np.ndarray:
    """The picture after all steps: uint8, or float32 once it was normalised."""
    check_library()
    picture = _decoded(path)
    picture = picture.convert("L" if steps.colours == "GRAY" else "RGB")
    if steps.size is not None:
        if math.prod(steps.size) > MAX_PIXELS:
            width, height = steps.size
            raise InputError(f"resizing to {width} x {height} is more than {MAX_PIXELS} pixels")
        picture = picture.resize(steps.size, _resampling(steps.method))
    if steps.crop is not None:
        picture = _centre(path, picture, steps.crop)
    pixels: np.ndarray = np.asarray(picture)
    if pixels.ndim == 2:
        pixels = pixels[:, :, np.newaxis]
    if steps.colours == "BGR":
        pixels = pixels[:, :, ::-1]
    if not steps.mean and not steps.std:
        return np.ascontiguousarray(pixels)
    numbers = pixels - np.asarray(steps.mean or 0, np.float32)
    scaled: np.ndarray = numbers / np.asarray(steps.std or 1, np.float32)
    return scaled


def check_library() -> None:
    """Raise the error that names the extra, where it is missing."""
    try:
        import PIL  # noqa: F401
    except ImportError as exc:
        raise EngineUnavailableError(
            f"reading pictures needs Pillow: {pip_install('images')}; "
            "or store the inputs with numpy.save and set input_type=BIN"
        ) from exc


def _decoded(path: Path) -> Image.Image:
    from PIL import ImageOps, UnidentifiedImageError

    try:
        with open_file(path).stream() as stream, _opened(stream) as picture:
            width, height = picture.size
            if width * height > MAX_PIXELS:
                raise InputError(
                    f"{path} has {width} x {height} pixels, at most {MAX_PIXELS} are decoded"
                )
            if picture.mode.startswith(("I", "F")):
                raise InputError(
                    f"{path} has more than 8 bits in a channel (mode {picture.mode}); "
                    "convert it to 8 bits"
                )
            return ImageOps.exif_transpose(picture)
    except UnidentifiedImageError as exc:
        raise InputError(f"{path} is no image, wanted one of {', '.join(FORMATS)}") from exc
    except InputError:
        raise
    except Exception as exc:  # decoders raise many kinds on damaged files
        raise InputError(f"{path} cannot be decoded: {exc}") from exc


def _opened(stream: BinaryIO) -> Image.Image:
    from PIL import Image

    with warnings.catch_warnings(action="ignore"):  # ours is the narrower limit
        return Image.open(stream, formats=FORMATS)


def _resampling(method: str) -> Image.Resampling:
    from PIL import Image

    return {
        "LINEAR": Image.Resampling.BILINEAR,
        "NEAREST": Image.Resampling.NEAREST,
        "CUBIC": Image.Resampling.BICUBIC,
    }[method]


def _centre(path: Path, picture: Image.Image, size: tuple[int, int]) -> Image.Image:
    (width, height), (wide, high) = picture.size, size
    if wide > width or high > height:
        raise InputError(
            f"{path} has {width} x {height} pixels, too few to crop {wide} x {high}; "
            "resize to that size first"
        )
    left, top = (width - wide) // 2, (height - high) // 2
    return picture.crop((left, top, left + wide, top + high))
