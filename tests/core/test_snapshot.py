from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mindspore_lite.core import machine, snapshot
from mindspore_lite.core.files import File, open_file
from mindspore_lite.core.snapshot import RACY_NS, Snapshot, Unread, excerpt, sealed_copy
from mindspore_lite.errors import ModelFileError, ResourceError


def test_files_are_loaded_in_their_order(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text(name)
    held = Snapshot([open_file(tmp_path / name) for name in "ab"])
    assert [bytes(content) for content in held.load()] == [b"a", b"b"]
    assert held.paths == (tmp_path / "a", tmp_path / "b")


def test_a_file_that_was_changed_since_it_was_opened_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("old")
    held = Snapshot([open_file(path)])
    path.write_text("a new one")
    with pytest.raises(ModelFileError, match="changed while it was read; build again when"):
        held.load()


def test_a_change_within_a_tick_of_the_clock_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("old")
    file = open_file(path)
    held = Snapshot([file])
    held.sha256(0)
    path.write_text("new")
    file.stamp = file.stamp_now()  # as if the clock had not moved
    with pytest.raises(ModelFileError, match="changed while it was read"):
        held.load()


def test_a_file_long_unchanged_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f"
    path.write_text("content")
    file = open_file(path)
    file.opened_ns = max(file.stamp[-2:]) + RACY_NS
    monkeypatch.setattr(file, "holds", lambda content: pytest.fail("read a second time"))
    assert bytes(Snapshot([file]).load()[0]) == b"content"


def test_a_lone_file_may_be_replaced_and_stays_what_it_was(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("old")
    held = Snapshot([open_file(path)])
    (tmp_path / "new").write_text("new")
    (tmp_path / "new").replace(path)
    assert bytes(held.load()[0]) == b"old"


def test_one_of_several_files_must_not_be_replaced(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text("old")
    held = Snapshot([open_file(tmp_path / name) for name in "ab"])
    (tmp_path / "new").write_text("new")
    (tmp_path / "new").replace(tmp_path / "b")
    with pytest.raises(ModelFileError, match="b' changed while it was read"):
        held.load()


def test_more_than_the_machine_can_hold_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sparse"
    path.touch()
    os.truncate(path, 100 << 30)
    monkeypatch.setattr(snapshot, "total_bytes", lambda: 16 << 30)
    with pytest.raises(ResourceError, match="102400 MiB together, and this machine has 16384 MiB"):
        Snapshot([open_file(path)])


def test_the_memory_of_a_container_counts(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("1048576\n")
    assert machine.total_bytes(tmp_path) == 1 << 20
    (tmp_path / "memory.max").write_text("max\n")
    machine.total_bytes.cache_clear()
    assert machine.total_bytes(tmp_path) > 1 << 20


def test_a_sealed_copy_stays_what_the_file_was(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"content" * 1000)
    with sealed_copy(path) as copy:
        path.write_bytes(b"")
        assert Path(f"/proc/self/fd/{copy}").read_bytes() == b"content" * 1000
        with pytest.raises(PermissionError):
            os.pwrite(copy, b"x", 0)
        with pytest.raises(PermissionError):
            os.ftruncate(copy, 1)


def test_what_is_loaded_has_the_digest_that_was_recalled(tmp_path: Path) -> None:
    """A writer that maps the file may change it and leave its times alone."""
    path = tmp_path / "f"
    path.write_text("content")
    file = open_file(path)
    file.opened_ns = max(file.stamp[-2:]) + RACY_NS
    held = Snapshot([file])
    held.recall(0, "0" * 64)
    with pytest.raises(ModelFileError, match="changed while it was read"):
        held.load()


def settled(path: Path) -> File:
    """An open file that looks as if it had not been changed for a while."""
    os.utime(path, (1e9, 1e9))
    file = open_file(path)
    file.opened_ns = max(file.stamp[-2:]) + RACY_NS
    return file


def test_a_file_long_unchanged_can_be_read_later(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"0123456789")
    (found,) = Snapshot([settled(tmp_path / "f")]).open_later()
    unread = excerpt(found, 2, 9)
    assert isinstance(unread, Unread)
    assert unread.nbytes == len(unread) == 7
    assert b"".join(unread.pieces()) == bytes(unread.read()) == b"2345678"


def test_a_file_that_was_just_written_is_not_read_later(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"0123456789")
    (found,) = Snapshot([open_file(tmp_path / "f")]).open_later()
    (tmp_path / "f").write_bytes(b"abcdefghij")
    kept = excerpt(found, 2, 5)
    assert isinstance(kept, memoryview)
    assert bytes(kept) == b"234"


def test_what_is_passed_on_comes_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "_PIECE_BYTES", 4)
    (tmp_path / "f").write_bytes(b"0123456789")
    file = settled(tmp_path / "f")
    assert [bytes(p) for p in Unread(file, 1, 10).pieces()] == [b"1234", b"5678", b"9"]
    assert list(Unread(file, 3, 3).pieces()) == []


def test_what_somebody_has_looked_at_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f").write_bytes(b"0123456789")
    file = settled(tmp_path / "f")
    unread = Unread(file, 0, 10)
    seen = unread.read()
    monkeypatch.setattr(file, "read_into", lambda *_: pytest.fail("read a second time"))
    assert unread.read() is seen
    assert list(unread.pieces()) == [seen]


@pytest.mark.parametrize("read", [Unread.read, lambda unread: list(unread.pieces())])
@pytest.mark.parametrize("content", [b"abcdefghij", b"0123", b"0123456789"])
def test_a_change_before_a_later_reading_is_an_error(
    tmp_path: Path, read: Callable[[Unread], object], content: bytes
) -> None:
    (tmp_path / "f").write_bytes(b"0123456789")
    file = settled(tmp_path / "f")
    (found,) = Snapshot([file]).open_later()
    (tmp_path / "f").write_bytes(content)
    unread = excerpt(found, 0, 10)
    assert isinstance(unread, Unread)
    with pytest.raises(ModelFileError, match=r"changed while it was read|ends before byte"):
        read(unread)


def test_times_that_were_set_back_are_an_error_where_nothing_was_read(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"0123456789")
    file = settled(tmp_path / "f")
    file.stamp = (*file.stamp[:4], file.stamp[4] - 1)  # the inode has changed since, nothing else
    with pytest.raises(ModelFileError, match="changed while it was read"):
        Unread(file, 0, 10).read()


def test_files_that_do_not_belong_together_are_not_read_later(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text("old")
    held = Snapshot([settled(tmp_path / name) for name in "ab"])
    (tmp_path / "new").write_text("new")
    (tmp_path / "new").replace(tmp_path / "b")
    with pytest.raises(ModelFileError, match="b' changed while it was read"):
        held.open_later()
