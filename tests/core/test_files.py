"""core/files.py: only plain files are opened, and only those inside of the model's folder."""

from __future__ import annotations

import errno
import mmap
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from mindspore_lite.core import files
from mindspore_lite.core.files import File, open_beneath, open_file
from mindspore_lite.errors import ModelFileError

# --- open_file --------------------------------------------------------------------------------


def test_a_file_is_loaded_into_memory_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"content")
    found = open_file(tmp_path / "f").load()
    os.truncate(tmp_path / "f", 0)
    assert isinstance(found.obj, mmap.mmap)
    assert bytes(found) == b"content"


def test_an_empty_file_is_no_bytes(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    file = open_file(tmp_path / "f")
    assert len(file) == len(file.load()) == 0
    assert file.holds(memoryview(b""))
    assert not file.holds(memoryview(b"x"))


def test_the_file_outlives_its_name(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"content")
    file = open_file(tmp_path / "f")
    (tmp_path / "f").unlink()
    assert bytes(file.load()) == b"content"
    assert not file.is_in_place()


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    before = set(os.listdir("/proc/self/fd"))
    open_file(tmp_path / "f").load()
    open_beneath(tmp_path, "f").is_in_place()
    open_file(tmp_path / "f").stream().close()
    for attempt in (lambda: open_file(tmp_path), lambda: open_beneath(tmp_path, ".")):
        with pytest.raises(ModelFileError):
            attempt()
    assert set(os.listdir("/proc/self/fd")) <= before


def test_a_large_file_is_read_and_compared_whole(tmp_path: Path) -> None:
    content = os.urandom((17 << 20) + 3)
    (tmp_path / "f").write_bytes(content)
    file = open_file(tmp_path / "f")
    assert bytes(file.load()) == content
    assert file.holds(memoryview(content))
    for at in (0, 1 << 20, len(content) - 1):
        other = bytearray(content)
        other[at] ^= 1
        assert not file.holds(memoryview(other))
    assert not file.holds(memoryview(content)[:-1])


@pytest.mark.parametrize("read", [File.load, lambda file: file.holds(memoryview(bytes(10_000)))])
def test_a_file_that_is_cut_off_is_an_error(tmp_path: Path, read: Callable[[File], object]) -> None:
    (tmp_path / "f").write_bytes(bytes(10_000))
    file = open_file(tmp_path / "f")
    os.truncate(tmp_path / "f", 5000)
    with pytest.raises(ModelFileError, match="ends before byte 5000; is it being written"):
        read(file)


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
        open_file(special(tmp_path, kind))


@pytest.mark.parametrize(
    ("name", "words"), [("gone", "No such file"), ("a\0b", "null"), ("n" * 300, "too long")]
)
def test_a_name_that_is_no_file_is_refused(tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(ModelFileError, match=f"cannot read .*{words}"):
        open_file(tmp_path / name)


# --- open_beneath --------------------------------------------------------------------------------


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
    assert open_beneath(folder, name).path == folder / name


def test_a_folder_that_is_itself_a_link_is_fine(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    assert bytes(open_beneath(tmp_path / "link", "data").load()) == b"data"


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
        open_beneath(folder, name)
    assert BAD[name] in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("kind", "words"),
    [("pipe", "it is a pipe, wanted a plain file"), ("socket", "cannot be opened")],
)
def test_what_is_no_plain_file_is_not_taken(tmp_path: Path, kind: str, words: str) -> None:
    special(tmp_path, kind)
    with pytest.raises(ModelFileError, match=words):
        open_beneath(tmp_path, kind)


def test_an_exchange_while_the_name_is_resolved_cannot_lead_out(folder: Path) -> None:
    """What a check by name, and an opening by the same name later, cannot hold."""
    file = open_beneath(folder, "inner/data")
    (folder / "inner/data").unlink()
    (folder / "inner/data").symlink_to(folder.parent / "secret")
    assert bytes(file.load()) == b"data"
    assert not file.is_in_place()


@pytest.fixture
def no_openat2(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(above: int, name: bytes) -> int:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(files, "_openat2", missing)


@pytest.mark.usefixtures("no_openat2")
@pytest.mark.parametrize("name", ["data", "inner/data", "./data"])
def test_an_older_kernel_opens_plain_files(folder: Path, name: str) -> None:
    assert bytes(open_beneath(folder, name).load()) == b"data"


@pytest.mark.usefixtures("no_openat2")
@pytest.mark.parametrize("name", ["here", *BAD], ids=lambda s: repr(s[:30]))
def test_an_older_kernel_follows_no_link_at_all(folder: Path, name: str) -> None:
    with pytest.raises(ModelFileError):
        open_beneath(folder, name)


# --- a few places -----------------------------------------------------------------------------


def test_indexing_shows_what_the_file_holds(tmp_path: Path) -> None:
    content = bytes(range(256)) * 40
    (tmp_path / "f").write_bytes(content)
    with open_file(tmp_path / "f") as file:
        assert len(file) == len(content)
        for at in (0, 255, 4095, 4096, 9999, 7):
            assert file[at] == content[at]
        assert file[5:300] == content[5:300]
        assert file[10230:99999] == content[10230:]


def test_indexing_a_file_that_was_cut_off_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(10_000))
    with open_file(tmp_path / "f") as file:
        os.truncate(tmp_path / "f", 10)
        with pytest.raises(ModelFileError, match="is it being written"):
            file[5000]


def hollow(path: Path, size: int, held: int) -> File:
    path.write_bytes(b"x" * held)
    os.truncate(path, size)  # a hole: it takes no room on the disk
    return open_file(path)


@pytest.mark.parametrize("held", [0, 100])
def test_a_large_file_that_is_nothing_but_a_hole_is_refused(tmp_path: Path, held: int) -> None:
    words = r"has 8589934592 bytes, of which \d+ are written and the rest is a hole"
    with hollow(tmp_path / "f", 8 << 30, held) as file:
        for use in (file.load, file.stream):
            with pytest.raises(ModelFileError, match=words):
                use()


def test_a_hole_in_a_file_is_no_harm(tmp_path: Path) -> None:
    with hollow(tmp_path / "small", 64 << 20, 0) as file:
        assert len(file.load()) == 64 << 20
    with hollow(tmp_path / "partly", 257 << 20, 5 << 20) as file:
        file.refuse_hollow()
