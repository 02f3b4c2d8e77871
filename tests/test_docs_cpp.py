"""Executes every C++ block of the docs, and the commands about them, and compares what they print.

A ```cpp block is a whole program: it is written to main.cc, compiled, and run. A ```cmake block is
written to CMakeLists.txt. Commands run in the directory of these files.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cpp import compiled, run_program
from support.doc_blocks import PAGES, ROOT, assert_same_output, blocks, is_about_cpp
from support.doc_desk import Desk

CPP_PAGES = [
    page for page in PAGES if any(is_about_cpp(kind, code) for kind, code, _ in blocks(page))
]


def program(desk: Desk, code: str) -> str:
    (desk.folder / "main.cc").write_text(code)
    done = run_program(
        compiled(desk.folder / "main.cc", desk.folder / "main", desk.sdk), cwd=desk.folder
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("page", CPP_PAGES, ids=lambda page: page.name)
def test_cpp_blocks_compile_run_and_print_what_they_say(
    page: Path, tmp_path: Path, cpp_sdk: Path
) -> None:
    desk = Desk(tmp_path, cpp_sdk, "cpp", ("g++", "cmake", "pkg-config"), quiet="cmake")
    for language, code, wanted in blocks(page):
        if not is_about_cpp(language, code):
            continue
        printed = ""
        if language == "cpp":
            printed = program(desk, code)
        elif language == "cmake":
            (tmp_path / "CMakeLists.txt").write_text(code)
        else:
            printed = desk.shell(code)
        if wanted is not None:
            assert_same_output(printed, wanted)


def test_the_page_about_cpp_has_programs() -> None:
    languages = [language for language, _, _ in blocks(ROOT / "docs/cpp.md")]
    assert languages.count("cpp") >= 3
    assert "cmake" in languages
