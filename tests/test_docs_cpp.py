"""Executes every C++ block of the docs, and the commands about them, and compares what they print.

A ```cpp block is a whole program: it is written to main.cc, compiled, and run. A ```cmake block is
written to CMakeLists.txt. Commands run in the directory of these files, one shell for each line.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from support.cpp import compiled, environment, run_program
from support.doc_blocks import PAGES, ROOT, assert_same_output, blocks, is_about_cpp, shell_lines

SDK = "/home/me/mslite-sdk"  # where the docs have it
CPP_PAGES = [
    page for page in PAGES if any(is_about_cpp(kind, code) for kind, code, _ in blocks(page))
]


class Desk:
    """The directory that a page's reader works in."""

    def __init__(self, folder: Path, sdk: Path) -> None:
        self.folder, self.sdk = folder, sdk
        self.exports: list[str] = []
        for name in ("examples", "mindspore_lite"):
            (folder / name).symlink_to(ROOT / name)

    def program(self, code: str) -> str:
        (self.folder / "main.cc").write_text(code)
        program = compiled(self.folder / "main.cc", self.folder / "main", self.sdk)
        done = run_program(program, cwd=self.folder)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def shell(self, code: str) -> str:
        return "".join(self.line(line) for line in shell_lines(code))

    def line(self, line: str) -> str:
        command = line.split()
        if command[:3] == ["mslite", "sdk", "cpp"]:  # the fixture is what it made
            assert command[3:] == ["~/mslite-sdk"]
            said = (self.sdk.parent / "said").read_text()
            return said.replace(str(self.sdk), SDK)
        line = line.replace(SDK, str(self.sdk))
        if command[0] == "export":
            self.exports.append(line)
            return ""
        for tool in ("g++", "cmake", "pkg-config"):
            if tool in line and shutil.which(tool) is None:
                pytest.skip(f"no {tool}; install it to run this page")
        script = "\n".join(["set -euo pipefail", *self.exports, line])
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return "" if command[0] == "cmake" else done.stdout  # nobody wants to read what it says


@pytest.mark.parametrize("page", CPP_PAGES, ids=lambda page: page.name)
def test_cpp_blocks_compile_run_and_print_what_they_say(
    page: Path, tmp_path: Path, cpp_sdk: Path
) -> None:
    desk = Desk(tmp_path, cpp_sdk)
    for language, code, wanted in blocks(page):
        if not is_about_cpp(language, code):
            continue
        printed = ""
        if language == "cpp":
            printed = desk.program(code)
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
