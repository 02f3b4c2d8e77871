"""Runs commands in this process, as the console script would."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from mindspore_lite.cli import benchmark as benchmark_script
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


@pytest.fixture
def script(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[Callable[[], None]], Callable[..., Done]]:
    """Call `script(main)(*arguments)` for a script with the original's flags."""

    def of(entry: Callable[[], None]) -> Callable[..., Done]:
        def run(*arguments: object) -> Done:
            monkeypatch.setattr(sys, "argv", ["script", *map(str, arguments)])
            with monkeypatch.context() as patch, pytest.raises(SystemExit) as caught:
                patch.setattr(warnings, "showwarning", warnings.showwarning)  # put back afterwards
                entry()
            assert isinstance(caught.value.code, int)
            captured = capsys.readouterr()
            return Done(caught.value.code, captured.out, captured.err)

        return run

    return of


@pytest.fixture
def benchmark(script: Callable[[Callable[[], None]], Callable[..., Done]]) -> Callable[..., Done]:
    """Call `benchmark(*flags)`."""
    return script(benchmark_script.main)
