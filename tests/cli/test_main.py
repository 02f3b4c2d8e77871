from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mindspore_lite
from mindspore_lite.cli import main as main_module
from mindspore_lite.version import __version__

Run = Callable[..., Any]


def test_the_version_is_the_packages(mslite: Run) -> None:
    assert mslite("--version").out.strip() == __version__


@pytest.mark.parametrize("command", main_module.COMMANDS)
def test_help_of_every_command_has_an_example(mslite: Run, command: str) -> None:
    done = mslite(command, "--help")
    assert done.code == 0
    assert f"Example: mslite {command}" in done.out


def test_general_help_names_every_command(mslite: Run) -> None:
    out = mslite("--help").out
    assert all(command in out for command in main_module.COMMANDS)


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["run"], ["run", "m.mindir", "--top", "many"], ["demo", "--loud"]]
)
def test_wrong_usage_is_one_line_and_exit_code_2(mslite: Run, arguments: list[str]) -> None:
    done = mslite(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("mslite: ")
    assert done.err.count("\n") == 1


def test_an_interrupt_ends_quietly(mslite: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mindspore_lite.cli.demo.samples", interrupted)
    done = mslite("demo")
    assert (done.code, done.err) == (130, "mslite: interrupted\n")


def test_the_package_run_as_a_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "mindspore_lite", "--version"],
        env={"PYTHONPATH": str(Path(mindspore_lite.__file__).parent.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == mindspore_lite.__version__
