"""weights/sharing/hold.py: a folder stays where it is as long as somebody holds it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from mindspore_lite.weights.sharing.hold import Hold, unheld


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "artefact"
    made.mkdir()
    for name in ("b", "a", "meta"):
        (made / name).write_text(name)
    return made


@pytest.fixture
def hold(folder: Path) -> Iterator[Hold]:
    made = Hold(folder, without=["meta"])
    yield made
    made.close()


def is_free(folder: Path) -> bool:
    with unheld(folder) as free:
        return free


def test_the_files_are_open_and_cannot_be_written_to(hold: Hold) -> None:
    assert list(hold.files) == ["a", "b"]
    assert os.pread(hold.files["b"], 9, 0) == b"b"
    for descriptor in hold.files.values():
        assert not os.get_inheritable(descriptor)
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.write(descriptor, b"x")


def test_a_folder_is_free_once_all_have_let_go(folder: Path, hold: Hold) -> None:
    second = Hold(folder)
    assert not is_free(folder)
    hold.release()
    assert not is_free(folder)
    second.release()
    assert is_free(folder)


def test_a_hold_that_is_forgotten_or_closed_is_none(folder: Path) -> None:
    Hold(folder)
    assert is_free(folder)
    hold = Hold(folder)
    hold.close()
    hold.close()
    assert is_free(folder)


def test_letting_go_counts_although_a_copy_of_the_descriptor_is_open(
    folder: Path, hold: Hold
) -> None:
    """As a process has that was forked without any hook of Python."""
    copies = [os.dup(number) for number in hold._open]
    hold.release()
    assert is_free(folder)
    for copy in copies:
        os.close(copy)


def test_files_that_were_opened_stay_readable_after_the_folder_is_let_go(hold: Hold) -> None:
    hold.release()
    assert os.pread(hold.files["a"], 9, 0) == b"a"


def test_nothing_can_be_held_while_a_folder_is_removed(folder: Path, tmp_path: Path) -> None:
    with unheld(folder) as free:
        assert free
        folder.rename(tmp_path / "elsewhere")
    with pytest.raises(FileNotFoundError):
        Hold(folder)


@pytest.mark.parametrize("kind", ["absent", "file", "link"])
def test_what_is_no_folder_is_free_and_cannot_be_held(
    kind: str, folder: Path, tmp_path: Path
) -> None:
    place = tmp_path / "place"
    if kind == "file":
        place.touch()
    elif kind == "link":
        place.symlink_to(folder)
    assert is_free(place)
    with pytest.raises(OSError, match="place"):
        Hold(place)


@pytest.mark.parametrize("kind", ["fifo", "folder", "link", "many"])
def test_a_folder_with_anything_but_a_few_plain_files_is_refused(kind: str, folder: Path) -> None:
    before = set(os.listdir("/proc/self/fd"))
    if kind == "fifo":
        os.mkfifo(folder / "pipe")
    elif kind == "folder":
        (folder / "inner").mkdir()
    elif kind == "link":
        (folder / "link").symlink_to(folder / "a")
    else:
        for number in range(20):
            (folder / str(number)).touch()
    with pytest.raises(OSError, match=r"artefact|link"):
        Hold(folder)
    assert set(os.listdir("/proc/self/fd")) <= before
    assert is_free(folder)
