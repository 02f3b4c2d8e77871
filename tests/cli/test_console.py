from __future__ import annotations

import io
import sys

import pytest

from mindspore_lite.cli.console import working


def test_nothing_is_shown_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with working("busy"):
        pass
    assert capsys.readouterr() == ("", "")


def test_a_terminal_shows_what_is_going_on(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with working("busy building"):
        pass
    assert "busy building" in terminal.getvalue()
