"""Runs a compiler as a child process, and shows its output when it fails."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from mindspore_lite.errors import LiteError


def run(command: Sequence[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run it to its end; stdout has all of its words.

    Raises:
        LiteError: It cannot be started.
    """
    try:
        return subprocess.run(
            command,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as exc:
        raise LiteError(f"cannot start the compiler {command[0]!r}: {exc.strerror}") from exc


def must_run(command: Sequence[str], cwd: Path, name: str, what: str) -> None:
    """Run it, and see that it succeeds at `what`.

    Raises:
        LiteError: It failed, or cannot be started; `name` and its own words are in it.
    """
    done = run(command, cwd)
    if done.returncode != 0:
        words = done.stdout.strip()
        raise LiteError(f"{name} could not {what} (exit code {done.returncode}); it said:\n{words}")
