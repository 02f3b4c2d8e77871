"""C++ in tests: the library as `mslite sdk cpp` makes it, and programs built with it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from support.shared import DIGITS as DIGITS
from support.shared import ROOT, made_sdk, run
from support.shared import SEVEN as SEVEN
from support.shared import environment as environment

BINDINGS = ROOT / "bindings/cpp"
COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
NO_COMPILER = "no C++ compiler; install g++ to run these tests"
needs_compiler = pytest.mark.skipif(COMPILER is None, reason=NO_COMPILER)
needs_cmake = pytest.mark.skipif(
    COMPILER is None or shutil.which("cmake") is None,
    reason="no CMake or no C++ compiler; install cmake and g++ to run these tests",
)


def built_sdk(factory: pytest.TempPathFactory) -> Path:
    """What `mslite sdk cpp DIR` makes, once a test run; what it said is in the file beside it."""
    if COMPILER is None:
        pytest.skip(NO_COMPILER)
    return made_sdk(factory, "cpp")


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
    return run([program, *arguments], cwd, **more)
