from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.cpp import needs_compiler
from support.cpp_stand_in import stand_in, write
from support.java import needs_jdk
from support.java_stand_in import stand_in as java_stand_in

Run = Callable[..., Any]


@pytest.fixture(autouse=True)
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Something small to compile, and no settings of the developer's shell."""
    root = stand_in(tmp_path / "root")
    monkeypatch.setattr("mindspore_lite.sdk.cpp.find_sources", lambda: root)
    jar = java_stand_in(tmp_path / "jar")
    monkeypatch.setattr("mindspore_lite.sdk.java.find_sources", lambda: jar)
    for name in ("CXX", "CXXFLAGS", "LDFLAGS"):
        monkeypatch.delenv(name, raising=False)
    return root


@needs_compiler
def test_it_says_what_to_do_next_and_nothing_else(mslite: Run, tmp_path: Path) -> None:
    folder = tmp_path / "my sdk"
    done = mslite("sdk", "cpp", folder, "--jobs", 1)
    assert (done.code, done.err) == (0, "")
    first, home, compiler, flags = done.out.splitlines()
    assert first == f"libmindspore-lite is in {folder}. Next:"
    assert home == f"  export LITE_HOME='{folder}'"
    assert compiler.startswith("  g++ -std=c++14 main.cc")
    assert "-lmindspore-lite" in flags
    assert (folder / "runtime/lib/libmindspore-lite.so").is_file()


@needs_jdk
def test_java_says_what_to_do_next_as_well(mslite: Run, tmp_path: Path) -> None:
    folder = tmp_path / "my sdk"
    done = mslite("sdk", "java", folder)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        f"mindspore-lite-java.jar is in {folder}. Next:",
        f"  export LITE_HOME='{folder}'",
        '  javac -cp "$LITE_HOME/runtime/lib/mindspore-lite-java.jar" Main.java',
        '  java -cp "$LITE_HOME/runtime/lib/mindspore-lite-java.jar:." Main',
    ]
    assert (folder / "runtime/lib/mindspore-lite-java.jar").is_file()


@needs_compiler
def test_a_relative_directory_is_told_in_full(
    mslite: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert f"LITE_HOME={tmp_path}/sdk\n" in mslite("sdk", "cpp", "sdk").out


@needs_compiler
def test_a_home_directory_may_be_a_tilde(
    mslite: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert mslite("sdk", "cpp", "~/sdk").code == 0
    assert (tmp_path / "sdk/runtime").is_dir()


@needs_compiler
def test_the_compilers_words_come_with_exit_code_1(
    mslite: Run, tmp_path: Path, sources: Path
) -> None:
    write(sources / "src/bad.cc", "#error this is wrong\n")
    done = mslite("sdk", "cpp", tmp_path / "sdk")
    assert (done.code, done.out) == (1, "")
    first, *more = done.err.splitlines()
    assert first.startswith("mslite: ")
    assert first.endswith("could not compile the library (exit code 1); it said:")
    assert any("this is wrong" in line for line in more)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["sdk", "cpp"], 2, "mslite --help"),
        (["sdk", "cpp", "DIR", "--jobs", 0], 2, "--jobs is 0, wanted 1 or more"),
        (["sdk", "cpp", "DIR", "--compiler", "no-such"], 1, "there is no command 'no-such'"),
        (["sdk", "java"], 2, "mslite --help"),
        (["sdk", "cobol", "DIR"], 2, "cobol"),
    ],
)
def test_wrong_usage_is_one_line(
    mslite: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[object],
    code: int,
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = mslite(*arguments)
    assert (done.code, done.out) == (code, "")
    assert words in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "DIR").exists()


def test_a_machine_without_a_compiler_is_told_what_to_install(
    mslite: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = mslite("sdk", "cpp", tmp_path / "sdk")
    assert done.code == 1
    assert "there is no C++ compiler" in done.err
    assert "apt install g++" in done.err
    monkeypatch.delenv("JAVA_HOME", raising=False)
    done = mslite("sdk", "java", tmp_path / "sdk")
    assert done.code == 1
    assert "there is no Java compiler" in done.err
    assert "apt install openjdk-17" in done.err


def test_help_names_the_languages_and_each_has_an_example(mslite: Run) -> None:
    for language in ("cpp", "java"):
        assert language in mslite("sdk", "--help").out
        assert f"Example: mslite sdk {language}" in mslite("sdk", language, "--help").out
