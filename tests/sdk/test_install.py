from __future__ import annotations

from pathlib import Path

import pytest
from support.cpp_stand_in import write

from mindspore_lite.errors import LiteError
from mindspore_lite.sdk.install import check_target, install, list_path

A, B = "runtime/a.h", "runtime/deep/b.h"


def tree(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_text() for path in files}


def test_texts_and_copies_lie_under_their_names_with_a_list(tmp_path: Path) -> None:
    write(tmp_path / "source", "copied")
    (tmp_path / "source").chmod(0o755)
    target = tmp_path / "not/there/yet"
    install(target, "cpp", {A: "text", B: tmp_path / "source"})
    assert tree(target) == {A: "text", B: "copied", list_path("cpp"): f"{A}\n{B}\n"}
    assert (target / B).stat().st_mode & 0o777 == 0o755


def test_the_next_time_replaces_and_takes_away_but_only_its_own(tmp_path: Path) -> None:
    install(tmp_path, "cpp", {A: "old", B: "old"})
    write(tmp_path / "runtime/users.txt", "mine")
    install(tmp_path, "java", {"runtime/c.jar": "jar"})
    install(tmp_path, "cpp", {A: "new"})
    assert tree(tmp_path) == {
        A: "new",
        "runtime/users.txt": "mine",
        "runtime/c.jar": "jar",
        list_path("cpp"): f"{A}\n",
        list_path("java"): "runtime/c.jar\n",
    }
    assert not (tmp_path / B).parent.exists()


def test_who_has_the_old_file_open_keeps_it(tmp_path: Path) -> None:
    install(tmp_path, "cpp", {A: "old"})
    with open(tmp_path / A) as file:
        install(tmp_path, "cpp", {A: "new"})
        assert file.read() == "old"


def test_a_file_of_someone_else_is_not_replaced(tmp_path: Path) -> None:
    write(tmp_path / B, "theirs")
    with pytest.raises(LiteError, match=r"b\.h' is there already, and not by `mslite sdk cpp`"):
        install(tmp_path, "cpp", {A: "ours", B: "ours"})
    assert tree(tmp_path) == {B: "theirs"}


def test_a_list_that_was_tampered_with_removes_nothing_outside(tmp_path: Path) -> None:
    write(tmp_path / "outside", "stays")
    target = tmp_path / "sdk"
    write(target / list_path("cpp"), f"../outside\n{tmp_path / 'outside'}\n\n")
    install(target, "cpp", {A: "text"})
    assert (tmp_path / "outside").read_text() == "stays"


def test_a_place_that_is_no_directory_is_refused_before_the_work(tmp_path: Path) -> None:
    write(tmp_path / "file", "")
    with pytest.raises(LiteError, match="file' is not a directory"):
        check_target(tmp_path / "file/sdk", "cpp", {})


def test_a_place_without_the_right_to_write_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: path != tmp_path)  # root may do anything
    with pytest.raises(LiteError, match="no right to write in"):
        check_target(tmp_path / "sdk", "cpp", {})
