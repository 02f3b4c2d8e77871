"""C++ in tests: the library as `mslite sdk cpp` makes it, and programs built with it."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
BINDINGS = ROOT / "bindings/cpp"
DIGITS = ROOT / "mindspore_lite/cli/data/digits.mindir"
SEVEN = ROOT / "examples/quick_start/input.bin"
COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
NO_COMPILER = "no C++ compiler; install g++ to run these tests"
needs_compiler = pytest.mark.skipif(COMPILER is None, reason=NO_COMPILER)
needs_cmake = pytest.mark.skipif(
    COMPILER is None or shutil.which("cmake") is None,
    reason="no CMake or no C++ compiler; install cmake and g++ to run these tests",
)


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


def built_sdk(factory: pytest.TempPathFactory) -> Path:
    """What `mslite sdk cpp DIR` makes, once a test run; what it said is in the file beside it."""
    if COMPILER is None:
        pytest.skip(NO_COMPILER)
    with shared_once(factory, "cpp-sdk") as (folder, is_first):
        if is_first:
            command = [sys.executable, "-P", "-m", "mindspore_lite", "sdk", "cpp"]
            done = subprocess.run(
                [*command, str(folder / "made")],
                env=environment(),
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            (folder / "said").write_text(done.stdout)
    return folder / "made"


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """That of a program whose worker is this very interpreter and package."""
    ours = {"MSLITE_PYTHON": sys.executable, "MSLITE_SOCKET": "", "PYTHONPATH": str(ROOT)}
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
