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

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/*.md")])
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TIME = re.compile(r"\d+\.\d+ ms")
_APART = re.compile(r"(difference|cosine)([^\d\n]*)\d[\d.e-]*")  # of the order of rounding errors
_LONG_NUMBER = re.compile(r"\d+\.\d{4,}")
_COMMANDS = {  # our own, by the module that has their main()
    "mslite": "mindspore_lite.cli.main",
    "converter_lite": "mindspore_lite.cli.converter_lite",
}


def blocks(page: Path) -> list[tuple[str, str, str | None]]:
    """(language, code, text block right after it or None) of each code block."""
    found = _BLOCK.findall(page.read_text(encoding="utf-8"))
    following = [*found[1:], ("", "")]
    return [
        (language, code, after if kind == "text" else None)
        for (language, code), (kind, after) in zip(found, following, strict=False)
        if language != "text"
    ]


def assert_same_output(printed: str, wanted: str) -> None:
    """Equal but for times, and for the last digits of results, which depend on the CPU."""
    texts = (_APART.sub(r"\1\2D", _TIME.sub("T ms", text)) for text in (printed, wanted))
    got, want = (text.split("\n") for text in texts)
    assert len(got) == len(want), printed
    for got_line, want_line in zip(got, want, strict=True):
        rounded = [
            _LONG_NUMBER.sub(lambda m: f"{float(m[0]):.3g}", line) for line in (got_line, want_line)
        ]
        assert rounded[0] == rounded[1]


def run_python(code: str, names: dict[str, object]) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "<docs>", "exec"), names)
    return out.getvalue()


def run_shell(code: str) -> Iterator[str]:
    """Our own commands are run; make and slow scripts are checked to be there."""
    for line in code.splitlines():
        command = shlex.split(line, comments=True)
        if command[0] in _COMMANDS:
            code = f"from {_COMMANDS[command[0]]} import main; main()"
            command = [sys.executable, "-c", code, *command[1:]]
            yield subprocess.run(command, capture_output=True, text=True, check=True).stdout
        elif command[0] == "make":
            if shutil.which("make"):
                subprocess.run(["make", "-n", *command[1:]], capture_output=True, check=True)
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
    for language, code, wanted in blocks(page):
        assert language in ("python", "bash"), f"{page.name}: a block in {language!r}"
        printed = run_python(code, names) if language == "python" else "".join(run_shell(code))
        if wanted is not None:
            assert_same_output(printed, wanted)


def test_the_readme_has_code_to_run() -> None:
    languages = [language for language, _, _ in blocks(ROOT / "README.md")]
    assert "python" in languages
    assert "bash" in languages


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"
