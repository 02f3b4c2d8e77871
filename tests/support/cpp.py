"""C++ in tests: the library as `mslite sdk cpp` makes it, and programs built with it."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
BINDINGS = ROOT / "bindings/cpp"
DIGITS = ROOT / "mindspore_lite/cli/data/digits.mindir"
SEVEN = ROOT / "examples/quick_start/input.bin"
MAIN = "from mindspore_lite.cli.main import main; main()"
COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
needs_compiler = pytest.mark.skipif(
    COMPILER is None, reason="no C++ compiler; install g++ to run these tests"
)
needs_cmake = pytest.mark.skipif(
    COMPILER is None or shutil.which("cmake") is None,
    reason="no CMake or no C++ compiler; install cmake and g++ to run these tests",
)


def run_once(shared: Path, command: list[str], name: str) -> Path:
    """A directory that `command NAME` made: by the first test process that asks, for all of them.

    What the command printed is in the file `said` beside it.
    """
    folder = shared / name
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        said = folder / "said"
        if not said.exists():
            done = subprocess.run(
                [*command, str(folder / "made")],
                env=environment(),
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            said.write_text(done.stdout)
    return folder / "made"


def shared_folder(factory: pytest.TempPathFactory) -> Path:
    """One directory for all processes of a test run."""
    own = factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


def built_sdk(factory: pytest.TempPathFactory) -> Path:
    """What `mslite sdk cpp DIR` makes, compiled once a test run; not to be changed."""
    if COMPILER is None:
        pytest.skip("no C++ compiler; install g++ to run these tests")
    command = [sys.executable, "-c", MAIN, "sdk", "cpp"]
    return run_once(shared_folder(factory), command, "cpp-sdk")


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """That of a program whose worker is this very interpreter and package."""
    ours = {"MSLITE_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    return {**os.environ, **ours, **(more or {})}


def compiled(source: Path, target: Path, sdk: Path, *flags: str) -> Path:
    """A program of one source, built as the command says in its last lines."""
    assert COMPILER is not None
    runtime = sdk / "runtime"
    command = [COMPILER, "-std=c++14", "-Wall", "-Wextra", "-Werror", *flags, str(source)]
    command += [f"-I{runtime}", f"-L{runtime / 'lib'}", f"-Wl,-rpath,{runtime / 'lib'}"]
    command += ["-lmindspore-lite", "-pthread", "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


def run_program(
    program: Path, *arguments: object, cwd: Path = ROOT, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; its worker ends with it."""
    command = [str(program), *map(str, arguments)]
    return subprocess.run(
        command,
        cwd=cwd,
        env=environment(more),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
