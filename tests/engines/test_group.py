from __future__ import annotations

from pathlib import Path

import pytest

from mindspore_lite.engines.group import Group, add_file, group_of


def test_a_file_belongs_to_the_group_it_was_last_added_to(tmp_path: Path) -> None:
    first, second = Group(), Group()
    path = str(tmp_path / "a")
    assert group_of(path) is None
    add_file(path, first)
    assert group_of(path) is first
    add_file(path, second)
    assert group_of(path) is second


def test_a_group_that_is_gone_has_no_files(tmp_path: Path) -> None:
    group = Group()
    add_file(str(tmp_path / "a"), group)
    del group
    assert group_of(str(tmp_path / "a")) is None


def test_a_file_is_known_by_all_its_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").touch()
    (tmp_path / "link").symlink_to("a")
    group = Group()
    add_file(str(tmp_path / "link"), group)
    monkeypatch.chdir(tmp_path)
    assert group_of("a") is group
    assert group_of("b") is None
