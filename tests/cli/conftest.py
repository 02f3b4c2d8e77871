"""Runs commands in this process, as the console script would."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from mindspore_lite.cli.main import main


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def mslite(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Done]:
    """Call `mslite(*arguments)`."""

    def run(*arguments: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["mslite", *map(str, arguments)])
        code: object = 0
        try:
            main()
        except SystemExit as exc:
            code = exc.code or 0
        assert isinstance(code, int)
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run
