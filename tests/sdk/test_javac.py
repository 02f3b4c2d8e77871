from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.cpp_stand_in import write

from mindspore_lite.errors import LiteError
from mindspore_lite.sdk.javac import find_javac


def fake(folder: Path, says: str = "javac 17.0.15") -> str:
    """A javac that can only tell its version, in a directory of its own."""
    write(folder / "javac", f"#!/bin/sh\necho '{says}' >&2\n")
    (folder / "javac").chmod(0o755)
    return str(folder)


def test_java_home_wins_over_the_path(tmp_path: Path) -> None:
    fake(tmp_path / "home/bin")
    path = fake(tmp_path / "path")
    home = {"JAVA_HOME": str(tmp_path / "home"), "PATH": path}
    assert find_javac(home) == str(tmp_path / "home/bin/javac")
    assert find_javac({"PATH": path}) == str(tmp_path / "path/javac")
    assert find_javac({"JAVA_HOME": "", "PATH": path}) == str(tmp_path / "path/javac")


def test_a_java_home_that_has_no_compiler_leaves_it_to_the_path(tmp_path: Path) -> None:
    path = fake(tmp_path / "path")
    found = find_javac({"JAVA_HOME": str(tmp_path / "only-a-runtime"), "PATH": path})
    assert found == str(tmp_path / "path/javac")


def test_a_relative_place_is_found_from_any_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(tmp_path / "home/bin")
    monkeypatch.chdir(tmp_path)
    assert find_javac({"JAVA_HOME": "home"}) == str(tmp_path / "home/bin/javac")


def test_without_a_compiler_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(tmp_path)
    monkeypatch.chdir(tmp_path)  # where it is not looked for
    for nothing in ({}, {"PATH": ""}, {"PATH": str(tmp_path / "empty"), "JAVA_HOME": ""}):
        with pytest.raises(LiteError, match=r"no Java compiler.* 17 or newer .*apt install"):
            find_javac(nothing)


@pytest.mark.parametrize(
    ("says", "words"),
    [
        ("javac 1.8.0_352", "javac' is of Java 8, which is too old; install a JDK, version 17"),
        ("javac 11.0.2", "is of Java 11, which is too old"),
        ("who, me?", "does not tell its version; asked for it, it said: who, me?"),
    ],
)
def test_a_compiler_that_is_too_old_is_told(tmp_path: Path, says: str, words: str) -> None:
    with pytest.raises(LiteError, match=re.escape(words)):
        find_javac({"PATH": fake(tmp_path, says)})


@pytest.mark.parametrize("says", ["javac 25-ea", "Picked up JAVA_TOOL_OPTIONS: -Xmx1g\njavac 21"])
def test_a_newer_one_will_do_whatever_it_says_besides(tmp_path: Path, says: str) -> None:
    assert find_javac({"PATH": fake(tmp_path, says)}) == str(tmp_path / "javac")


def test_a_compiler_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    write(tmp_path / "javac", "#!/no/such/interpreter\n")
    (tmp_path / "javac").chmod(0o755)
    with pytest.raises(LiteError, match=r"cannot start the compiler '.*javac'"):
        find_javac({"PATH": str(tmp_path)})
