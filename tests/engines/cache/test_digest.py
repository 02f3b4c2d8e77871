"""Digests of model files: an unchanged file is read once, a changed one is always noticed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.damage import fill_with_garbage, truncate

from mindspore_lite.core.files import File, open_file
from mindspore_lite.core.snapshot import Snapshot
from mindspore_lite.engines.cache import digest


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    """The files that were really read."""
    done: list[Path] = []
    real = File.load

    def spy(file: File) -> memoryview:
        done.append(file.path)
        return real(file)

    monkeypatch.setattr(File, "load", spy)
    yield done


@pytest.fixture
def seen(tmp_path: Path) -> Path:
    folder = tmp_path / "seen"
    folder.mkdir()
    return folder


def read(path: Path, seen: Path, after_ns: int = digest.RACY_NS) -> digest.Content:
    """Read a file that was opened so long after its last change."""
    file = open_file(path)
    file.opened_ns = max(file.stamp[-2:]) + after_ns
    return digest.read(Snapshot([file]), seen)


def test_unchanged_file_is_read_once(tmp_path: Path, seen: Path, reads: list[Path]) -> None:
    file = tmp_path / "file"
    file.write_text("content")
    link = tmp_path / "link"
    link.symlink_to(file)
    first = read(file, seen)
    assert read(file, seen) == first
    assert read(link, seen).sha256 == first.sha256
    assert len(reads) == 1


def test_fresh_file_is_read_again(tmp_path: Path, seen: Path, reads: list[Path]) -> None:
    file = tmp_path / "file"
    file.write_text("content")
    read(file, seen, digest.RACY_NS - 1)
    read(file, seen)
    read(file, seen)
    assert len(reads) == 2


def test_same_size_and_mtime_but_other_content_is_noticed(
    tmp_path: Path, seen: Path, reads: list[Path]
) -> None:
    file = tmp_path / "file"
    file.write_text("content")
    before, stat = read(file, seen), file.stat()
    while (
        file.stat().st_ctime_ns == stat.st_ctime_ns
    ):  # file times tick a few hundred times a second
        file.write_text("CONTENT")
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert file.stat().st_mtime_ns == stat.st_mtime_ns
    assert read(file, seen).sha256 != before.sha256


@pytest.mark.parametrize(
    "damage", [truncate, fill_with_garbage, Path.unlink], ids=lambda d: d.__name__
)
def test_damaged_memory_is_ignored(
    damage: Callable[[Path], None], tmp_path: Path, seen: Path, reads: list[Path]
) -> None:
    file = tmp_path / "file"
    file.write_text("content")
    first = read(file, seen)
    (note,) = seen.iterdir()
    damage(note)
    assert read(file, seen) == first
    assert len(reads) == 2


@pytest.mark.parametrize(
    "change", [{"sha256": 5}, {"path": "/other"}, {"stamp": None}, {"read_ns": "x"}, {"read_ns": 0}]
)
def test_memory_that_does_not_fit_is_ignored(
    change: dict[str, Any], tmp_path: Path, seen: Path, reads: list[Path]
) -> None:
    file = tmp_path / "file"
    file.write_text("content")
    first = read(file, seen)
    (note,) = seen.iterdir()
    note.write_text(json.dumps(json.loads(note.read_text()) | change))
    assert read(file, seen) == first
    assert len(reads) == 2


def test_unwritable_memory_is_done_without(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("content")
    assert read(file, file) == read(file, tmp_path / "absent")


def test_the_code_that_changes_graphs_is_part_of_the_key() -> None:
    one, other = "prepare/widen", "prepare/quirks"
    assert digest.code_of(one) != digest.code_of(other) != digest.code_of(one, other)
    assert len(digest.code_of(one)) == 64
