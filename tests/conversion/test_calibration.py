"""conversion/calibration.py: files become requests; every bad file and folder is told."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mindspore_lite.conversion.calibration import open_samples
from mindspore_lite.conversion.quant_settings import DataSettings, ImageSteps
from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.errors import EngineUnavailableError, InputError, SettingsError

F32 = np.dtype(np.float32)


def info(*shape: int, name: str = "x", dtype: type = np.float32) -> TensorInfo:
    return TensorInfo(name, np.dtype(dtype), shape)


def settings(folder: Path, kind: str = "BIN", **more: object) -> DataSettings:
    return DataSettings((("x", folder),), kind, **more)  # type: ignore[arg-type]


def only(folder: Path, wanted: TensorInfo, kind: str = "BIN", **more: object) -> np.ndarray:
    ((array,),) = open_samples(settings(folder, kind, **more), [wanted])
    assert array.dtype == wanted.dtype
    assert array.flags.c_contiguous
    return array


def refused(folder: Path, wanted: TensorInfo, kind: str = "BIN", **more: object) -> str:
    with pytest.raises(InputError) as caught:
        only(folder, wanted, kind, **more)
    assert str(folder) in str(caught.value)
    return str(caught.value)


def problems(data: DataSettings, *inputs: TensorInfo) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        open_samples(data, inputs)
    return list(caught.value.problems)


# --- which files ----------------------------------------------------------------------------------


def test_files_come_in_the_order_of_their_names_and_only_as_many_as_wanted(tmp_path: Path) -> None:
    for at in (3, 1, 4, 2):
        np.full(2, at, F32).tofile(tmp_path / f"{at}.bin")
    (tmp_path / ".hidden").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    samples = open_samples(settings(tmp_path, count=3), [info(2)])
    assert len(samples) == 3
    for _ in range(2):  # as often as wanted
        assert [array[0] for (array,) in samples] == [1, 2, 3]
    assert len(open_samples(settings(tmp_path), [info(2)])) == 4


def test_the_files_of_several_inputs_go_together_in_the_order_of_the_inputs(tmp_path: Path) -> None:
    for name, dtype in (("a", np.float32), ("b", np.int64)):
        (tmp_path / name).mkdir()
        for at in range(3):
            np.full(2, at, dtype).tofile(tmp_path / name / f"{at}.bin")
    data = DataSettings((("b", tmp_path / "b"), ("a", tmp_path / "a")), "BIN", 3)
    inputs = [info(2, name="a"), info(2, name="b", dtype=np.int64)]
    for at, (a, b) in enumerate(open_samples(data, inputs)):
        assert (a.dtype, b.dtype) == (np.float32, np.int64)
        assert a[0] == b[0] == at


def test_folders_and_inputs_that_do_not_fit_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "few").mkdir()
    np.zeros(1).tofile(tmp_path / "few/a")
    folders = (("z", tmp_path / "few"), ("x", tmp_path / "none"))
    found = problems(DataSettings(folders, "BIN", 5), info(2), info(2, name="y"))
    assert found == [
        "calibrate_path has no folder for the input 'y'",
        "calibrate_path names 'z', which is no input of the model; it has ['x', 'y']",
        f"the folder '{tmp_path / 'few'}' for the input 'z' holds 1 files, wanted at least 5",
        f"the folder '{tmp_path / 'none'}' for the input 'x' does not exist",
    ]


def test_an_empty_folder_is_told(tmp_path: Path) -> None:
    (found,) = problems(settings(tmp_path), info(2))
    assert "holds 0 files, wanted at least 1" in found


def test_unequal_numbers_of_files_are_told(tmp_path: Path) -> None:
    for name, count in (("x", 2), ("y", 3)):
        (tmp_path / name).mkdir()
        for at in range(count):
            (tmp_path / name / str(at)).write_bytes(b"")
    data = DataSettings((("x", tmp_path / "x"), ("y", tmp_path / "y")), "BIN")
    (found,) = problems(data, info(2), info(2, name="y"))
    assert "unequal numbers of files (2 for 'x', 3 for 'y'); set calibrate_size" in found


# --- bare bytes -----------------------------------------------------------------------------------


def test_bytes_are_the_input(tmp_path: Path) -> None:
    want = np.arange(6, dtype=F32).reshape(2, 3)
    want.tofile(tmp_path / "a.bin")
    np.testing.assert_array_equal(only(tmp_path, info(2, 3)), want)
    np.testing.assert_array_equal(only(tmp_path, info(-1, 3)), want)


@pytest.mark.parametrize(
    ("layout", "shape", "stored"),
    [
        ("NHWC", (1, 3, 4, 5), (1, 4, 5, 3)),
        ("NCHW", (1, 3, 4, 5), (1, 3, 4, 5)),
        ("NHWC", (1, 4, 5, 3), (1, 4, 5, 3)),
        ("NCHW", (1, 4, 5, 3), (1, 3, 4, 5)),
        ("NHWC", (-1, 3, 4, 5), (1, 4, 5, 3)),
        ("NHWC", (2, 16, 4, 5), (2, 4, 5, 16)),
    ],
)
def test_four_dims_lie_as_the_layout_says(
    tmp_path: Path, layout: str, shape: tuple[int, ...], stored: tuple[int, ...]
) -> None:
    first = np.arange(np.prod(stored), dtype=F32).reshape(stored)
    first.tofile(tmp_path / "a.bin")
    found = only(tmp_path, info(*shape), layout=layout)
    turned = [found, found.transpose(0, 2, 3, 1), found.transpose(0, 3, 1, 2)]
    assert found.shape == tuple(max(dim, 1) for dim in shape)
    assert any(np.array_equal(first, array) for array in turned if array.shape == stored)


@pytest.mark.parametrize(
    ("size", "shape", "words"),
    [
        (20, (2, 3), "has 20 bytes, the input 'x' of [2, 3] float32 takes 24"),
        (48, (2, 3), "has 48 bytes, the input 'x' of [2, 3] float32 takes 24"),
        (0, (2, 3), "has 0 bytes"),
        (0, (-1, 3), "takes a multiple of 12"),
        (20, (-1, 3), "has 20 bytes, the input 'x' of [-1, 3] float32 takes a multiple of 12"),
        (24, (-1, -1), "bare bytes do not tell the shape"),
    ],
)
def test_a_wrong_number_of_bytes_is_told(
    tmp_path: Path, size: int, shape: tuple[int, ...], words: str
) -> None:
    (tmp_path / "a.bin").write_bytes(bytes(size))
    assert words in refused(tmp_path, info(*shape))


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(bytes(8))
    samples = open_samples(settings(tmp_path), [info(2)])
    (tmp_path / "a.bin").unlink()
    with pytest.raises(InputError, match=r"cannot read .*a\.bin': No such file"):
        list(samples)


# --- arrays ---------------------------------------------------------------------------------------


def test_an_array_has_its_shape_with_it(tmp_path: Path) -> None:
    want = np.arange(24, dtype=F32).reshape(1, 2, 3, 4)
    np.save(tmp_path / "a.npy", want)
    np.testing.assert_array_equal(only(tmp_path, info(1, -1, -1, 4)), want)


def test_an_array_may_lie_the_other_way_round(tmp_path: Path) -> None:
    want = np.arange(60, dtype=F32).reshape(1, 4, 5, 3)
    np.save(tmp_path / "a.npy", want)
    np.testing.assert_array_equal(only(tmp_path, info(1, 3, 4, 5)), want.transpose(0, 3, 1, 2))
    np.testing.assert_array_equal(only(tmp_path, info(-1, 4, 5, 3)), want)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((2, 3)), "holds float64, the input 'x' wants float32; store array.astype"),
        (np.zeros((3, 2), F32), "has shape [3, 2], the input 'x' wants [2, 3]"),
        (np.zeros(6, F32), "has shape [6]"),
        (np.array([None]), "is no array stored by numpy.save"),
    ],
)
def test_a_wrong_array_is_told(tmp_path: Path, array: np.ndarray, words: str) -> None:
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    assert words in refused(tmp_path, info(2, 3))


def test_an_array_file_that_claims_more_than_it_has_is_told(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((2, 3), F32))
    data = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(data.replace(b"(2, 3), }", b"(2, 3000000), }", 1)[: len(data)])
    assert "is no array stored by numpy.save" in refused(tmp_path, info(2, -1))


@pytest.mark.parametrize("data", [b"", b"no array", b"\x93NUMPY\x01\x00\xff\xff{", b"PK\x03\x04"])
def test_what_is_no_array_is_told(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.npy").write_bytes(data)
    assert "is no array stored by numpy.save" in refused(tmp_path, info(2, 3))


# --- pictures -------------------------------------------------------------------------------------

PIXELS = np.random.default_rng(1).integers(0, 256, (6, 8, 3), np.uint8)
RGB = ImageSteps("RGB")


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    Image.fromarray(PIXELS).save(tmp_path / "a.png")
    return tmp_path


@pytest.mark.parametrize("batch", [1, -1])
def test_a_picture_lies_as_the_model_has_it(pictures: Path, batch: int) -> None:
    found = only(pictures, info(batch, 3, 6, 8), "IMAGE", image=RGB)
    np.testing.assert_array_equal(found, PIXELS.transpose(2, 0, 1)[None].astype(F32))
    found = only(pictures, info(batch, 6, 8, 3), "IMAGE", image=RGB)
    np.testing.assert_array_equal(found, PIXELS[None].astype(F32))
    found = only(pictures, info(batch, 3, -1, -1, dtype=np.uint8), "IMAGE", image=RGB)
    np.testing.assert_array_equal(found, PIXELS.transpose(2, 0, 1)[None])


def test_a_picture_of_another_size_is_told(pictures: Path) -> None:
    words = refused(pictures, info(1, 3, 8, 8), "IMAGE")
    assert "a.png becomes [1, 3, 6, 8], the input 'x' wants [1, 3, 8, 8]; set resize_width" in words
    words = refused(pictures, info(1, 1, 6, 8), "IMAGE")
    assert "or image_to_format" in words


def test_fractions_do_not_go_into_whole_numbers(pictures: Path) -> None:
    wanted = info(1, 3, 6, 8, dtype=np.uint8)
    words = refused(pictures, wanted, "IMAGE", image=ImageSteps(mean=(1, 1, 1)))
    assert "leave normalize_mean and normalize_std out" in words


def test_inputs_that_are_no_single_pictures_are_told(pictures: Path) -> None:
    (found,) = problems(settings(pictures, "IMAGE"), info(1, 3))
    assert "images serve 4-D inputs, use BIN" in found
    (found,) = problems(settings(pictures, "IMAGE"), info(4, 3, 6, 8))
    assert "takes 4 images at once: store them and use BIN" in found


def test_without_pillow_it_is_told_before_anything_is_read(
    pictures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(EngineUnavailableError, match="needs Pillow"):
        open_samples(settings(pictures, "IMAGE"), [info(1, 3, 6, 8)])
