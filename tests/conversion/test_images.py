"""conversion/images.py: pictures become numbers; bad ones become errors that name the file."""

from __future__ import annotations

import struct
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mindspore_lite.conversion import images
from mindspore_lite.conversion.images import read_image
from mindspore_lite.conversion.quant_settings import ImageSteps
from mindspore_lite.errors import EngineUnavailableError, InputError

RGB = ImageSteps(colours="RGB")
PIXELS = np.random.default_rng(1).integers(0, 256, (6, 8, 3), np.uint8)

Stored = Callable[..., Path]


@pytest.fixture
def stored(tmp_path: Path) -> Stored:
    def store(pixels: np.ndarray = PIXELS, name: str = "a.png", **options: object) -> Path:
        path = tmp_path / name
        Image.fromarray(pixels).save(path, **options)  # type: ignore[arg-type]
        return path

    return store


@pytest.mark.parametrize("name", ["a.png", "a.bmp", "a.ppm"])
def test_a_picture_is_read_as_it_is(stored: Stored, name: str) -> None:
    found = read_image(stored(name=name), RGB)
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, PIXELS)


@pytest.mark.parametrize("name", ["a.jpg", "a.webp"])
def test_lossy_pictures_are_read_nearly_as_they_are(stored: Stored, name: str) -> None:
    smooth = np.broadcast_to(np.arange(0, 64, 8, np.uint8)[None, :, None], (6, 8, 3)).copy()
    found = read_image(stored(smooth, name, quality=95), RGB)
    assert np.abs(found.astype(int) - smooth).max() < 8


def test_colours_come_as_blue_green_red_unless_asked_otherwise(stored: Stored) -> None:
    np.testing.assert_array_equal(read_image(stored(), ImageSteps()), PIXELS[:, :, ::-1])


def test_grey_has_one_channel(stored: Stored) -> None:
    found = read_image(stored(), ImageSteps(colours="GRAY"))
    assert found.shape == (6, 8, 1)
    weighted = PIXELS @ np.array([0.299, 0.587, 0.114])
    assert np.abs(found[:, :, 0] - weighted).max() < 1


def test_a_grey_picture_has_three_equal_channels_if_colours_are_wanted(stored: Stored) -> None:
    found = read_image(stored(PIXELS[:, :, 0]), RGB)
    np.testing.assert_array_equal(found, np.repeat(PIXELS[:, :, :1], 3, 2))


def test_what_is_transparent_counts_as_opaque(stored: Stored) -> None:
    with_alpha = np.concatenate([PIXELS, np.full((6, 8, 1), 7, np.uint8)], 2)
    np.testing.assert_array_equal(read_image(stored(with_alpha), RGB), PIXELS)


def test_a_picture_of_a_turned_camera_is_turned_back(stored: Stored) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # the right side is the top
    found = read_image(stored(exif=exif), RGB)
    np.testing.assert_array_equal(found, np.rot90(PIXELS, -1))


@pytest.mark.parametrize(
    ("method", "exact"), [("NEAREST", True), ("LINEAR", False), ("CUBIC", False)]
)
def test_resizing(stored: Stored, method: str, exact: bool) -> None:
    steps = ImageSteps(colours="RGB", size=(16, 12), method=method)
    found = read_image(stored(), steps)
    assert found.shape == (12, 16, 3)
    twice = PIXELS.repeat(2, 0).repeat(2, 1)
    assert np.array_equal(found, twice) == exact
    level = np.full((6, 8, 3), 90, np.uint8)
    np.testing.assert_array_equal(read_image(stored(level), steps), np.full((12, 16, 3), 90))


def test_the_centre_is_cropped_after_resizing(stored: Stored) -> None:
    steps = ImageSteps(colours="RGB", size=(16, 12), method="NEAREST", crop=(4, 6))
    twice = PIXELS.repeat(2, 0).repeat(2, 1)
    np.testing.assert_array_equal(read_image(stored(), steps), twice[3:9, 6:10])


def test_numbers_are_normalised_last_channel_by_channel(stored: Stored) -> None:
    steps = ImageSteps("BGR", (1, 2, 3), (2, 4, 8), (4, 3), "CUBIC", (2, 2))
    found = read_image(stored(), steps)
    assert found.dtype == np.float32
    plain = read_image(stored(), ImageSteps("BGR", (), (), (4, 3), "CUBIC", (2, 2)))
    want = (plain.astype(np.float32) - [1, 2, 3]) / [2, 4, 8]
    np.testing.assert_allclose(found, want, rtol=1e-6)


@pytest.mark.parametrize(
    ("mean", "std", "want"), [((10.0,), (), 30 - 10), ((), (4.0,), 30 / 4), ((10.0,), (4.0,), 5)]
)
def test_one_of_mean_and_std_may_be_missing(
    stored: Stored, mean: tuple[float, ...], std: tuple[float, ...], want: float
) -> None:
    found = read_image(stored(np.full((2, 2), 30, np.uint8)), ImageSteps("GRAY", mean, std))
    np.testing.assert_array_equal(found, np.full((2, 2, 1), want))


# --- wrong ----------------------------------------------------------------------------------------


def refused(path: Path, steps: ImageSteps = RGB) -> str:
    with pytest.raises(InputError) as caught:
        read_image(path, steps)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_a_crop_beyond_the_picture_is_told(stored: Stored) -> None:
    words = refused(stored(), ImageSteps(crop=(9, 2)))
    assert "has 8 x 6 pixels, too few to crop 9 x 2; resize to that size first" in words


@pytest.mark.parametrize("data", [b"", b"hello", b"\x89PNG\r\n\x1a\n"])
def test_what_is_no_picture_is_told(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.png").write_bytes(data)
    assert "is no image, wanted one of BMP, JPEG, PNG, PPM, WEBP" in refused(tmp_path / "a.png")


@pytest.mark.parametrize("kind", ["TIFF", "GIF", "TGA"])
def test_other_formats_are_not_opened(tmp_path: Path, kind: str) -> None:
    Image.fromarray(PIXELS).save(tmp_path / "a.png", format=kind)
    assert "is no image" in refused(tmp_path / "a.png")


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.bmp", "a.webp"])
def test_a_picture_that_is_cut_off_is_told(stored: Stored, name: str) -> None:
    large = np.random.default_rng(2).integers(0, 256, (64, 64, 3), np.uint8)
    path = stored(large, name)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    words = refused(path)
    assert "cannot be decoded" in words or "is no image" in words


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    assert "No such file" in refused(tmp_path / "none.png")


def png_head(width: int, height: int) -> bytes:
    """The beginning of a PNG file, all that a bomb needs."""
    head = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    body = b"IDAT" + zlib.compress(bytes(1000))
    chunks = [
        struct.pack(">I", len(c) - 4) + c + struct.pack(">I", zlib.crc32(c)) for c in (head, body)
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


@pytest.mark.parametrize("side", [8001, 10_000, 12_000, 200_000])
def test_a_small_file_of_a_huge_picture_is_not_decoded(tmp_path: Path, side: int) -> None:
    (tmp_path / "bomb.png").write_bytes(png_head(side, side))
    words = refused(tmp_path / "bomb.png")
    assert f"has {side} x {side} pixels, at most 64000000" in words or "cannot be decoded" in words


def test_sixteen_bits_are_not_cut_to_eight_silently(stored: Stored) -> None:
    words = refused(stored(np.full((4, 4), 40000, np.uint16)))
    assert "more than 8 bits in a channel" in words


def test_the_limit_is_ours(stored: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "MAX_PIXELS", 47)
    assert "has 8 x 6 pixels, at most 47 are decoded" in refused(stored())


def test_without_pillow_the_error_names_the_extra(
    stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = stored()
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(EngineUnavailableError, match=r"pip install 'mslite\[images\]'"):
        read_image(path, RGB)


def test_a_picture_is_not_resized_beyond_what_would_be_decoded(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    Image.new("RGB", (2, 2)).save(path)
    with pytest.raises(InputError, match="resizing to 65535 x 65535"):
        read_image(path, ImageSteps(size=(65535, 65535), method="CUBIC"))
