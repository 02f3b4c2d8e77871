from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from support.cpp import needs_compiler
from support.cpp_stand_in import PROGRAM, stand_in, write

from mindspore_lite.errors import LiteError
from mindspore_lite.sdk.compiler import Compiler, build_library, find_compiler


def fake(folder: Path, *names: str) -> dict[str, str]:
    """An environment with these commands and no others."""
    for name in names:
        write(folder / name, "#!/bin/sh\n")
        (folder / name).chmod(0o755)
    return {"PATH": str(folder)}


def test_the_option_wins_over_the_environment_and_that_over_the_usual_names(tmp_path: Path) -> None:
    usual = fake(tmp_path, "mine", "theirs", "g++", "clang++")
    assert find_compiler("mine", {**usual, "CXX": "theirs"}).command == ("mine",)
    assert find_compiler(None, {**usual, "CXX": "theirs"}).command == ("theirs",)
    assert find_compiler(None, usual).command == ("g++",)
    assert find_compiler(None, {**usual, "CXX": ""}).command == ("g++",)


def test_a_compiler_may_have_words_before_and_after_it(tmp_path: Path) -> None:
    found = find_compiler("ccache g++ -m64", fake(tmp_path, "ccache"))
    assert found.command == ("ccache", "g++", "-m64")


def test_a_compiler_with_a_relative_path_is_found_from_any_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(tmp_path / "bin", "mine")
    monkeypatch.chdir(tmp_path)
    found = find_compiler("bin/mine -m64", {"PATH": ""})
    assert found.command == (str(tmp_path / "bin/mine"), "-m64")


def test_flags_of_the_environment_are_taken_along(tmp_path: Path) -> None:
    more = {"CXXFLAGS": "-g '-DA=b c'", "LDFLAGS": "-static-libstdc++"}
    found = find_compiler(None, {**fake(tmp_path, "c++"), **more})
    assert found.compile_flags == ("-g", "-DA=b c")
    assert found.link_flags == ("-static-libstdc++",)


def test_without_a_compiler_the_error_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(LiteError, match=r"no C\+\+ compiler \(c\+\+, g\+\+, clang\+\+\).*apt"):
        find_compiler(None, fake(tmp_path))


@pytest.mark.parametrize(
    ("option", "variable", "words"),
    [
        ("no-such", "", "--compiler is 'no-such', but there is no command 'no-such'"),
        (None, "no-such -m64", r"\$CXX is 'no-such -m64', but there is no command 'no-such'"),
        ("", "c++", "--compiler is empty"),
        ("'c++", "", "which no shell would take: No closing quotation"),
    ],
)
def test_a_compiler_that_is_not_there_is_named(
    tmp_path: Path, option: str | None, variable: str, words: str
) -> None:
    with pytest.raises(LiteError, match=words):
        find_compiler(option, {**fake(tmp_path, "c++"), "CXX": variable})


@needs_compiler
def test_a_library_has_its_name_and_exports_only_what_it_says(tmp_path: Path) -> None:
    root, library = stand_in(tmp_path / "root"), tmp_path / "libwhere.so"
    told: list[str] = []
    build_library(find_compiler(None), root, library, 2, told.append)
    assert told == [
        "2 sources in 2 parts; about a minute",
        "1 of 2 parts done",
        "2 of 2 parts done",
        "linking",
    ]
    write(tmp_path / "main.cc", PROGRAM)
    program = tmp_path / "main"
    link = [str(library), "-o", str(program), f"-Wl,-rpath,{tmp_path}"]
    compiler = find_compiler(None).command
    subprocess.run([*compiler, f"-I{root}", str(tmp_path / "main.cc"), *link], check=True)
    assert subprocess.check_output([program], text=True) == "./src/deep/where.cc\n"
    assert b"Where" in library.read_bytes()
    write(tmp_path / "main.cc", "int Hidden(); int main() { return Hidden(); }")
    done = subprocess.run(
        [*compiler, str(tmp_path / "main.cc"), *link], capture_output=True, text=True, check=False
    )
    assert "undefined reference to `Hidden()'" in done.stderr


@needs_compiler
def test_the_compilers_own_words_are_told(tmp_path: Path) -> None:
    root = stand_in(tmp_path / "root")
    write(root / "src/bad.cc", "#error this is what is wrong\n")
    with pytest.raises(LiteError, match=r"could not compile the library \(exit code 1\)") as caught:
        build_library(find_compiler(None), root, tmp_path / "lib.so", 1, lambda what: None)
    assert re.search(r"src/bad\.cc:1:.*this is what is wrong", str(caught.value))


@needs_compiler
def test_a_linker_that_fails_is_told_as_well(tmp_path: Path) -> None:
    found = find_compiler(None)
    compiler = Compiler(found.command, link_flags=("-lno-such-library",))
    with pytest.raises(LiteError, match=r"could not link lib\.so.*\n(.*\n)*.*no-such-library"):
        build_library(compiler, stand_in(tmp_path / "root"), tmp_path / "lib.so", 1, str)


def test_a_compiler_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    root = stand_in(tmp_path / "root")
    with pytest.raises(LiteError, match="cannot start the compiler '/no/such'"):
        build_library(Compiler(("/no/such",)), root, tmp_path / "lib.so", 1, str)
