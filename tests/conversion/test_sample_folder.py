"""conversion/sample_folder.py: what --samples finds in a folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mindspore_lite.conversion.calibration import open_samples
from mindspore_lite.conversion.quant_settings import ANY, DataSettings, ImageSteps
from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.errors import InputError, SettingsError

X = TensorInfo("x", np.dtype(np.float32), (-1, 4))
PICTURE = TensorInfo("x", np.dtype(np.float32), (1, 3, 6, 8))


def asked(*folders: tuple[str, Path], steps: ImageSteps | None = None) -> DataSettings:
    return DataSettings(folders, ANY, image=steps or ImageSteps(), hold_out=True)


def arrays(folder: Path, count: int) -> Path:
    folder.mkdir()
    for at in range(count):
        np.save(folder / f"{at}.npy", np.full((1, 4), at, np.float32))
    return folder


def test_every_fifth_sample_is_held_out(tmp_path: Path) -> None:
    samples = open_samples(asked(("", arrays(tmp_path / "a", 10))), [X])
    held = samples.held_out()
    assert held is not None
    assert [int(x[0, 0]) for (x,) in held] == [4, 9]
    assert [int(x[0, 0]) for (x,) in samples] == [0, 1, 2, 3, 5, 6, 7, 8]


def test_of_few_samples_none_is_held_out(tmp_path: Path) -> None:
    samples = open_samples(asked(("", arrays(tmp_path / "a", 4))), [X])
    assert samples.held_out() is None
    assert len(samples) == 4


def test_what_a_calibrate_size_leaves_is_held_out(tmp_path: Path) -> None:
    place = arrays(tmp_path / "a", 7)
    samples = open_samples(DataSettings((("x", place),), "BIN", count=4), [X])
    held = samples.held_out()
    assert held is not None
    assert (len(samples), [int(x[0, 0]) for (x,) in held]) == (4, [4, 5, 6])
    every = open_samples(DataSettings((("x", place),), "BIN"), [X])
    assert (len(every), every.held_out()) == (7, None)


def test_a_npz_has_an_array_for_each_input(tmp_path: Path) -> None:
    y = TensorInfo("y", np.dtype(np.int64), (2,))
    np.savez(tmp_path / "0.npz", x=np.ones((1, 4), np.float32), y=np.arange(2), more=np.zeros(1))
    (both,) = open_samples(asked(("", tmp_path)), [X, y])
    assert both[0].shape == (1, 4)
    assert both[1].tolist() == [0, 1]
    z = TensorInfo("z", np.dtype(np.int64), (2,))
    with pytest.raises(InputError, match=r"has no array 'z'; it has \['more', 'x', 'y'\]"):
        list(open_samples(asked(("", tmp_path)), [X, z]))


def test_pictures_get_the_size_and_range_of_the_input(tmp_path: Path) -> None:
    Image.new("RGB", (32, 20), (255, 51, 0)).save(tmp_path / "a.png")
    ((picture,),) = open_samples(asked(("", tmp_path)), [PICTURE])
    assert picture.shape == (1, 3, 6, 8)
    np.testing.assert_allclose(picture[0, :, 3, 4], [1.0, 0.2, 0.0], atol=1e-6)  # RGB, 0 to 1
    steps = ImageSteps(mean=(55.0, 51.0, 0.0), std=(100.0, 1.0, 1.0))
    ((scaled,),) = open_samples(asked(("", tmp_path), steps=steps), [PICTURE])
    np.testing.assert_allclose(scaled[0, :, 3, 4], [2.0, 0.0, 0.0], atol=1e-6)


def test_pictures_of_one_channel_are_gray_and_whole_numbers_stay(tmp_path: Path) -> None:
    Image.new("RGB", (4, 4), (51, 51, 51)).save(tmp_path / "a.png")
    gray = TensorInfo("x", np.dtype(np.uint8), (1, 4, 4, 1))
    ((picture,),) = open_samples(asked(("", tmp_path)), [gray])
    assert (picture.shape, picture.dtype, picture[0, 0, 0, 0]) == ((1, 4, 4, 1), np.uint8, 51)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ([], "holds nothing; wanted files of one kind"),
        (["a.npy", "b.png"], r"holds \.npy, \.png; wanted files of one kind: images"),
        (["readme.txt"], r"holds \.txt; wanted"),
    ],
)
def test_a_folder_of_something_else_is_refused(
    files: list[str], words: str, tmp_path: Path
) -> None:
    for name in files:
        (tmp_path / name).touch()
    with pytest.raises(SettingsError, match=words):
        open_samples(asked(("", tmp_path)), [X])


def test_several_inputs_want_a_folder_each(tmp_path: Path) -> None:
    y = TensorInfo("y", np.dtype(np.float32), (-1, 4))
    place = arrays(tmp_path / "a", 5)
    with pytest.raises(SettingsError, match=r"inputs \['x', 'y'\]; give NAME=FOLDER for each"):
        open_samples(asked(("", place)), [X, y])
    assert len(open_samples(asked(("x", place), ("y", place)), [X, y])) == 4
    with pytest.raises(SettingsError, match="which is no folder"):
        open_samples(asked(("", tmp_path / "none")), [X])
