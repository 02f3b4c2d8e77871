"""mindir/files.py: only plain files are opened, and only those inside of the model's folder."""

from __future__ import annotations

import mmap
import os
import socket
from pathlib import Path

import pytest

from mindspore_lite.errors import ModelFileError
from mindspore_lite.mindir.files import Glimpses, contained, mapped

# --- mapped -----------------------------------------------------------------------------------


def test_a_file_is_mapped_and_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"content")
    found = mapped(tmp_path / "f")
    assert isinstance(found.obj, mmap.mmap)
    assert bytes(found) == b"content"
    assert found.readonly


def test_an_empty_file_is_no_bytes(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    assert len(mapped(tmp_path / "f")) == 0


def test_the_bytes_outlive_the_file_name(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"content")
    found = mapped(tmp_path / "f")
    (tmp_path / "f").unlink()
    assert bytes(found) == b"content"


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    before = sorted(os.listdir("/proc/self/fd"))
    mapped(tmp_path / "f")
    with pytest.raises(ModelFileError):
        mapped(tmp_path)
    assert sorted(os.listdir("/proc/self/fd")) == before


def special(folder: Path, kind: str) -> Path:
    path = folder / kind
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))
    return path


@pytest.mark.parametrize("kind", ["pipe", "directory", "device"])
def test_what_is_no_plain_file_is_refused_without_waiting(tmp_path: Path, kind: str) -> None:
    with pytest.raises(ModelFileError, match=f"it is a {kind}, wanted a plain file"):
        mapped(special(tmp_path, kind))


@pytest.mark.parametrize(
    ("name", "words"), [("gone", "No such file"), ("a\0b", "null"), ("n" * 300, "too long")]
)
def test_a_name_that_is_no_file_is_refused(tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(ModelFileError, match=f"cannot read .*{words}"):
        mapped(tmp_path / name)


# --- contained --------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model's folder with good and bad names in it."""
    (tmp_path / "secret").write_bytes(b"secret")
    made = tmp_path / "model"
    (made / "inner").mkdir(parents=True)
    (made / "data").write_bytes(b"data")
    (made / "inner/data").write_bytes(b"data")
    (made / "out").symlink_to(tmp_path / "secret")
    (made / "up").symlink_to("..")
    (made / "here").symlink_to("inner/data")
    (made / "loop").symlink_to("loop")
    (made / "dangling").symlink_to("nowhere")
    os.link(tmp_path / "secret", made / "hard")
    return made


@pytest.mark.parametrize("name", ["data", "inner/data", "./data", "here"])
def test_plain_files_and_links_that_stay_inside_are_taken(folder: Path, name: str) -> None:
    assert contained(folder, name) == folder / name


def test_a_folder_that_is_itself_a_link_is_fine(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    assert contained(tmp_path / "link", "data").read_bytes() == b"data"


BAD = {
    "": "lies outside the model's folder",
    "/etc/passwd": "lies outside the model's folder",
    "../secret": "lies outside the model's folder",
    "inner/../../secret": "lies outside the model's folder",
    "inner/../data": "lies outside the model's folder",
    "out": "is a link out of the model's folder",
    "up/secret": "is a link out of the model's folder",
    "hard": "has 2 names (hard links)",
    "up/model/../secret": "lies outside",
    "gone": "is missing; put it beside the model",
    "dangling": "is missing; put it beside the model",
    "inner": "it is a directory, wanted a plain file",
    ".": "it is a directory, wanted a plain file",
    "loop": "cannot be opened",
    "data/more": "cannot be opened",
    "a\0b": "cannot be opened",
    "n" * 5000: "cannot be opened",
}


@pytest.mark.parametrize("name", BAD, ids=lambda s: repr(s[:30]))
def test_a_name_that_leads_elsewhere_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(ModelFileError) as caught:
        contained(folder, name)
    assert BAD[name] in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_what_is_no_plain_file_is_not_taken(tmp_path: Path, kind: str) -> None:
    special(tmp_path, kind)
    with pytest.raises(ModelFileError, match=f"it is a {kind}, wanted a plain file"):
        contained(tmp_path, kind)


def test_glimpses_show_what_the_file_holds(tmp_path: Path) -> None:
    content = bytes(range(256)) * 40
    (tmp_path / "f").write_bytes(content)
    with Glimpses(tmp_path / "f") as glimpses:
        assert len(glimpses) == len(content)
        for at in (0, 255, 4095, 4096, 9999, 7):
            assert glimpses[at] == content[at]
        assert glimpses[5:300] == content[5:300]
        assert glimpses[10230:99999] == content[10230:]


def test_glimpses_of_a_file_that_was_cut_off_are_refused(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(9000))
    with Glimpses(tmp_path / "f") as glimpses:
        assert glimpses[0] == 0
        os.truncate(tmp_path / "f", 100)
        with pytest.raises(ModelFileError, match="ends before byte 8000; is it being written"):
            _ = glimpses[8000]


def test_glimpses_of_no_plain_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="it is a directory, wanted a plain file"):
        Glimpses(tmp_path)
