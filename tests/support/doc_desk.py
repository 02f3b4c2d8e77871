"""A reader's directory: programs and commands of a page about another language are run there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.doc_blocks import ROOT, shell_lines
from support.shared import run

SDK = "/home/me/mslite-sdk"  # where the docs have it


class Desk:
    """The directory that a page's reader works in.

    Commands run one shell for each line. `tools` are those that a machine may lack; what `quiet`
    ones say nobody wants to read.
    """

    def __init__(
        self, folder: Path, sdk: Path, language: str, tools: tuple[str, ...], quiet: str = ""
    ) -> None:
        self.folder, self.sdk = folder, sdk
        self._language, self._tools, self._quiet = language, tools, quiet
        self._exports: list[str] = []
        for name in ("examples", "mindspore_lite"):
            (folder / name).symlink_to(ROOT / name)

    def shell(self, code: str) -> str:
        """What the commands of a block print."""
        return "".join(self._line(line) for line in shell_lines(code))

    def _line(self, line: str) -> str:
        command = line.split()
        if command[:2] == ["mslite", "sdk"]:  # the fixture is what it made
            assert command[2:] == [self._language, "~/mslite-sdk"]
            said = (self.sdk.parent / "said").read_text()
            return said.replace(str(self.sdk), SDK)
        line = line.replace(SDK, str(self.sdk))
        if command[0] == "export":
            self._exports.append(line)
            return ""
        for tool in self._tools:
            if tool in line and shutil.which(tool) is None:
                pytest.skip(f"no {tool}; install it to run this page")
        script = "\n".join(["set -euo pipefail", *self._exports, line])
        done = run(["bash", "-c", script], self.folder)
        assert done.returncode == 0, done.stderr
        return "" if command[0] == self._quiet else done.stdout
