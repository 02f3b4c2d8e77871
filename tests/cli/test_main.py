from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mindspore_lite
from mindspore_lite.cli import main as main_module
from mindspore_lite.cli.demo import DIGITS_MODEL
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


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError("Unable to allocate 8 GiB"), "no more memory (Unable to allocate 8 GiB)"),
        (OSError(errno.EMFILE, "Too many open files"), "no more file descriptors of this process"),
        (RuntimeError("can't start new thread"), "no more threads can be started"),
    ],
)
def test_what_the_machine_refuses_is_said_in_our_words(
    mslite: Run, monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("mindspore_lite.cli.demo.samples", refused)
    done = mslite("demo")
    assert done.code == 1
    assert done.err.startswith("mslite: ")
    assert words in done.err
    assert done.err.count("\n") == 1


def test_a_bug_keeps_its_traceback(mslite: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("dictionary changed size during iteration")

    monkeypatch.setattr("mindspore_lite.cli.demo.samples", broken)
    with pytest.raises(RuntimeError, match="dictionary changed"):
        mslite("demo")


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("main", ["inspect", "--ops"]),  # more than a pipe holds
        ("main", ["inspect", str(DIGITS_MODEL)]),  # less than a buffer
        ("main", ["inspect", str(DIGITS_MODEL), "--json"]),
        ("main", ["doctor"]),
        ("main", ["run", "--help"]),
        ("main", ["run", str(DIGITS_MODEL)]),
        ("converter_lite", ["--help"]),
        ("benchmark", ["--help"]),
    ],
)
def test_output_that_nobody_reads_ends_the_command_quietly(
    module: str, arguments: list[str]
) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    program = f"from mindspore_lite.cli.{module} import main; main()"
    with os.fdopen(write_end, "wb") as closed:
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.stderr == ""
    assert done.returncode in (128 + signal.SIGPIPE, 1)  # the second is what the help ends with


def test_an_error_counts_before_output_that_nobody_reads(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "wb") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "mindspore_lite", "inspect", str(tmp_path / "none.onnx")],
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert "none.onnx" in done.stderr
    assert done.stderr.count("\n") == 1
