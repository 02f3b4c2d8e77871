"""weights/npz_file.py: archives of arrays, as untrusted input."""

from __future__ import annotations

import io
import os
import struct
import zipfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from fuzzing.mutate_bytes import changed_bytes
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib import format as npy

from mindspore_lite.errors import LiteError, ModelFileError
from mindspore_lite.weights.npz_file import read_npz

ARRAYS = {
    "z": np.arange(6, dtype=np.float32).reshape(2, 3),
    "a/b.weight": np.arange(3, dtype=np.int64),
    "scalar": np.array(5, np.float16),
    "empty": np.zeros((0, 3), np.float32),
    "turned": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "swapped": np.arange(3, dtype=">i4"),
}


def saved(path: Path, save: Any = np.savez, **arrays: np.ndarray) -> Path:
    path = path / "x.npz"
    save(path, **arrays)
    return path


def packed(path: Path, packing: int = zipfile.ZIP_STORED, **members: bytes) -> Path:
    """An archive of any members."""
    path = path / "x.npz"
    with zipfile.ZipFile(path, "w", packing) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def header(shape: Any, descr: Any = "<f4", version: tuple[int, int] = (1, 0)) -> bytes:
    out = io.BytesIO()
    write = npy.write_array_header_1_0 if version == (1, 0) else npy.write_array_header_2_0
    write(out, {"descr": descr, "fortran_order": False, "shape": shape})
    return out.getvalue()


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_come_in_the_order_of_the_file(tmp_path: Path, save: Any) -> None:
    found = list(read_npz(saved(tmp_path, save, **ARRAYS)))
    assert [name for name, _ in found] == list(ARRAYS)
    for (_, array), wanted in zip(found, ARRAYS.values(), strict=True):
        assert array.dtype == wanted.dtype and array.shape == wanted.shape
        np.testing.assert_array_equal(array, wanted)


def test_zeros_may_be_packed_tightly(tmp_path: Path) -> None:
    ((_, array),) = read_npz(saved(tmp_path, np.savez_compressed, w=np.zeros(10**6, np.float32)))
    assert array.shape == (10**6,) and not array.any()


def test_a_header_of_the_second_version_is_read(tmp_path: Path) -> None:
    path = packed(tmp_path, **{"w.npy": header((2,), version=(2, 0)) + bytes(8)})
    ((name, array),) = read_npz(path)
    assert (name, array.tolist()) == ("w", [0, 0])


class Armed:
    """Whoever unpickles it makes a folder."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> Any:
        return os.mkdir, (self.path,)


def test_pickles_are_never_read(tmp_path: Path) -> None:
    objects = np.array([Armed(tmp_path / "fired")], object)
    path = saved(tmp_path, **{"fine": np.ones(2), "w": objects})
    with pytest.raises(ModelFileError, match=r"'w\.npy' holds Python objects, which are pickled"):
        list(read_npz(path))
    assert not (tmp_path / "fired").exists()
    with np.load(path, allow_pickle=True) as loaded:
        _ = loaded["w"]
    assert (tmp_path / "fired").exists()  # else the test would prove nothing


BAD_MEMBERS = {
    "more than the file holds": (header((10**9,)), "takes 4000000000 bytes, but holds 0"),
    "less than the file holds": (header((1,)) + bytes(8), "takes 4 bytes, but holds 8"),
    "more than anything holds": (header((2**40, 2**40)), "but holds 0"),
    "a negative size": (header((-1, -1)) + bytes(4), r"shape \[-1, -1\]"),
    "another negative size": (header((-1, 0)), r"shape \[-1, 0\]"),
    "no header": (b"", "no .npz file that can be read"),
    "half a header": (header((1,))[:50], "no .npz file that can be read"),
    "no magic": (b"x" * 100, "no .npz file that can be read"),
    "an unknown version": (b"\x93NUMPY\x09\x00" + header((1,))[8:], r"unknown version \(9, 0\)"),
    "a header that is code": (
        b"\x93NUMPY\x01\x00" + struct.pack("<H", 30) + b"__import__('os').getpid()".ljust(30),
        "no .npz file that can be read",
    ),
    "a header of brackets": (
        b"\x93NUMPY\x01\x00" + struct.pack("<H", 9000) + b"[" * 9000,
        "no .npz file that can be read",
    ),
}


@pytest.mark.parametrize(("data", "words"), BAD_MEMBERS.values(), ids=BAD_MEMBERS.keys())
def test_a_bad_member_is_refused(tmp_path: Path, data: bytes, words: str) -> None:
    with pytest.raises(ModelFileError, match=words):
        list(read_npz(packed(tmp_path, **{"w.npy": data})))


def test_what_is_no_array_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"member 'readme\.txt' is no array"):
        list(read_npz(packed(tmp_path, **{"readme.txt": b"hello"})))


def test_a_name_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("w.npy", header((0,)))
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("w.npy", header((0,)))
    with pytest.raises(ModelFileError, match=r"'w\.npy' is there twice"):
        list(read_npz(path))


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_packing_that_numpy_does_not_use_is_refused(tmp_path: Path, packing: int) -> None:
    path = packed(tmp_path, packing, **{"w.npy": header((0,))})
    with pytest.raises(ModelFileError, match="packed in a way that NumPy does not use"):
        list(read_npz(path))


def directory_of(data: bytes) -> int:
    """Where the archive's table of members begins."""
    return data.index(b"PK\x01\x02")


def test_a_size_that_cannot_be_is_refused(tmp_path: Path) -> None:
    path = packed(tmp_path, zipfile.ZIP_DEFLATED, **{"w.npy": header((10**9,))})
    data = bytearray(path.read_bytes())
    at = directory_of(data) + 24  # the size after unpacking
    data[at : at + 4] = struct.pack("<I", 4 * 10**9 + len(header((10**9,))))
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match="which cannot become as many"):
        list(read_npz(path))


def test_members_that_share_their_bytes_are_refused(tmp_path: Path) -> None:
    path = packed(tmp_path, **{"a.npy": header((1000,)) + bytes(4000)})
    data = path.read_bytes()
    at = directory_of(data)
    end = data.index(b"PK\x05\x06")
    entry, tail = data[at:end], bytearray(data[end:])
    tail[8:12] = struct.pack("<HH", 2, 2)
    tail[12:16] = struct.pack("<I", 2 * len(entry))
    path.write_bytes(data[:at] + entry + entry.replace(b"a.npy", b"b.npy") + tail)
    with pytest.raises(ModelFileError, match=r"members claim \d+ bytes, and the file has \d+"):
        list(read_npz(path))


def test_a_wrong_checksum_is_found(tmp_path: Path) -> None:
    path = saved(tmp_path, w=np.arange(100, dtype=np.float32))
    data = bytearray(path.read_bytes())
    data[directory_of(data) - 5] ^= 1  # of the last number
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match="CRC"):
        list(read_npz(path))


def test_a_pipe_and_a_folder_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.npz")
    for path in (tmp_path / "pipe.npz", tmp_path, tmp_path / "missing.npz"):
        with pytest.raises(ModelFileError, match="cannot read"):
            list(read_npz(path))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    folder = tmp_path_factory.mktemp("npz")
    return [saved(folder, save, **ARRAYS).read_bytes() for save in (np.savez, np.savez_compressed)]


@pytest.mark.filterwarnings("ignore:Reading `.npy` or `.npz` file required additional header")
@given(seed=st.integers(0, 2**32), packed=st.booleans())
def test_a_damaged_file_is_an_error_at_worst(
    tmp_path_factory: pytest.TempPathFactory, files: list[bytes], seed: int, packed: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.npz"
    path.write_bytes(changed_bytes(files[packed], Random(seed)))
    try:
        for _, array in read_npz(path):
            assert array.nbytes < 10**6
    except LiteError:
        pass


def test_an_archive_that_unpacks_to_far_more_than_it_holds_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.npz"
    np.savez_compressed(path, w=np.zeros(257 << 20, np.uint8))
    with pytest.raises(ModelFileError, match=r"claim 269484\d+ bytes once unpacked, .* np\.savez"):
        list(read_npz(path))
    path.unlink()


def test_zeros_that_are_packed_are_read_as_long_as_they_are_few(tmp_path: Path) -> None:
    path = tmp_path / "w.npz"
    np.savez_compressed(path, w=np.zeros(8 << 20, np.uint8))
    ((_, array),) = read_npz(path)
    assert array.nbytes == 8 << 20
