"""Executes every code block of the README and the docs, and compares what it prints."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from support import doc_deploy
from support.doc_blocks import (
    PAGES,
    ROOT,
    all_blocks,
    assert_same_output,
    blocks,
    is_about_cpp,
    is_about_java,
    shell_lines,
)

_COMMANDS = {  # our own, by the module that has their main()
    "mslite": "mindspore_lite.cli.main",
    "converter_lite": "mindspore_lite.cli.converter_lite",
    "benchmark": "mindspore_lite.cli.benchmark",
}


def run_python(code: str, names: dict[str, object]) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "<docs>", "exec"), names)
    return out.getvalue()


class Servers:
    """Servers that a page starts in the background, on other ports than it says."""

    def __init__(self) -> None:
        self._children: list[subprocess.Popen[str]] = []
        self._ports: dict[str, str] = {}

    def start(self, arguments: list[str]) -> str:
        """Start one; what it says when it is ready."""
        command = [sys.executable, "-m", "mindspore_lite", *arguments, "--http-port", "0"]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._children.append(child)
        assert child.stdout is not None
        line = child.stdout.readline()
        for scheme, said in (("http", "8000"), ("grpc", "8001")):
            (port,) = re.findall(rf"{scheme}://127.0.0.1:(\d+)", line)
            self._ports[f"localhost:{said}"] = f"127.0.0.1:{port}"
            line = line.replace(f":{port}", f":{said}")
        return line

    def known(self, text: str) -> str:
        """A text with the ports as they are."""
        for said, found in self._ports.items():
            text = text.replace(said, found)
        return text

    def end(self) -> None:
        for child in self._children:
            child.kill()
            child.communicate()


def run_shell(code: str, servers: Servers) -> Iterator[str]:
    """Our own commands are run; make and slow scripts are checked to be there."""
    for line in shell_lines(code):
        command = shlex.split(servers.known(line), comments=True)
        if command[:2] == ["mslite", "serve"] and command[-1] == "&":
            yield servers.start(command[1:-1])
        elif command[0] == "curl":
            if shutil.which("curl") is None:
                pytest.skip("no curl; install it to run this page")
            yield subprocess.run(command, capture_output=True, text=True, check=True).stdout
        elif command[0] in _COMMANDS:
            code = f"from {_COMMANDS[command[0]]} import main; main()"
            command = [sys.executable, "-c", code, *command[1:]]
            yield subprocess.run(command, capture_output=True, text=True, check=True).stdout
        elif command[0] == "make":
            if shutil.which("make"):
                subprocess.run(["make", "-n", *command[1:]], capture_output=True, check=True)
        elif command[0] in doc_deploy.COMMANDS:
            doc_deploy.check(command)
        elif command[0] == "python":
            help_text = subprocess.run(
                [sys.executable, command[1], "--help"], capture_output=True, text=True, check=True
            )
            assert "Run:" in help_text.stdout
        else:
            raise AssertionError(f"no way to test {line!r}")


@mock.patch.dict(os.environ)  # a page may set variables
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_blocks_run_and_print_what_they_say(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    names: dict[str, object] = {"__name__": "docs"}
    servers = Servers()
    try:
        for language, code, wanted in blocks(page):
            if is_about_cpp(language, code) or is_about_java(language, code):
                continue  # test_docs_cpp.py, test_docs_java.py
            assert language in ("python", "bash"), f"{page.name}: a block in {language!r}"
            if language == "python":
                printed = run_python(servers.known(code), names)
            else:
                printed = "".join(run_shell(code, servers))
            if wanted is not None:
                assert_same_output(printed, wanted)
    finally:
        servers.end()


def test_blocks_that_need_a_card_are_sound_without_one() -> None:
    found = [(page, *block) for page in PAGES for block in all_blocks(page) if block[1]]
    assert found
    for page, language, _, code, _ in found:
        if language == "python":
            compile(code, page.name, "exec")
        else:
            assert all(shlex.split(line)[0] in _COMMANDS for line in shell_lines(code)), page


def test_the_readme_has_code_to_run() -> None:
    languages = [language for language, _, _ in blocks(ROOT / "README.md")]
    assert "python" in languages
    assert "bash" in languages


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"
