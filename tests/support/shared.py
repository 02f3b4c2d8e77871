"""What tests of other languages share: an SDK made once a test run, programs with a worker."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
DIGITS = ROOT / "mindspore_lite/cli/data/digits.mindir"
SEVEN = ROOT / "examples/quick_start/input.bin"


@contextmanager
def shared_once(factory: pytest.TempPathFactory, name: str) -> Iterator[tuple[Path, bool]]:
    """A directory of all processes of a test run, and whether it is this one's part to fill it.

    The others wait for that; after a failure the next one tries.
    """
    own = factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / name
    folder.mkdir(exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        filled = folder / "filled"
        yield folder, not filled.exists()
        filled.touch()


def made_sdk(factory: pytest.TempPathFactory, language: str) -> Path:
    """What `mslite sdk LANGUAGE DIR` makes, once a test run; its words are in `said` beside it."""
    with shared_once(factory, f"{language}-sdk") as (folder, is_first):
        if is_first:
            command = [sys.executable, "-P", "-m", "mindspore_lite", "sdk", language]
            done = run([*command, folder / "made"])
            assert done.returncode == 0, done.stderr
            (folder / "said").write_text(done.stdout)
    return folder / "made"


def as_in_wheel(folder: Path) -> Path:
    """The package in a directory, with what its wheel takes from beside it."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        wheel = tomllib.load(file)["tool"]["hatch"]["build"]["targets"]["wheel"]
    for source, target in wheel["force-include"].items():
        shutil.copytree(ROOT / source, folder / target)
    return folder / "mindspore_lite"


def files(folder: Path) -> dict[str, bytes]:
    """All files below a directory."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """That of a program whose worker is this very interpreter and package."""
    ours = {"MSLITE_PYTHON": sys.executable, "MSLITE_SOCKET": "", "PYTHONPATH": str(ROOT)}
    return {**os.environ, **ours, **(more or {})}


def run(
    command: Sequence[object], cwd: Path = ROOT, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; its worker ends with it."""
    return subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=environment(more),
        capture_output=True,
        text=True,
        timeout=1800,  # all tests of a binding, on a busy machine
        check=False,
    )
