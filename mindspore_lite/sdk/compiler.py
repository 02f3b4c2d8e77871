"""Finds the user's C++ compiler, and runs it on many sources at once.

Flags of the user's own come from $CXXFLAGS and $LDFLAGS, as with make and CMake.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from mindspore_lite.core.environment import variables
from mindspore_lite.errors import LiteError
from mindspore_lite.sdk.tool import must_run

NAMES = ("c++", "g++", "clang++")
_INSTALL = "install one (Debian, Ubuntu: apt install g++; Fedora: dnf install gcc-c++)"


@dataclass(frozen=True)
class Compiler:
    """A command that compiles C++, and the flags that its user wants."""

    command: tuple[str, ...]
    compile_flags: tuple[str, ...] = ()
    link_flags: tuple[str, ...] = ()

    def object(self, root: Path, source: Path, target: Path) -> None:
        """Compile one source, from `root`: no absolute path gets into the result."""
        ours = ("-std=c++14", "-fPIC", "-fvisibility=hidden", "-pthread", "-I.")
        command = [*self.command, "-O2", *self.compile_flags, *ours]
        self._run([*command, "-c", str(source), "-o", str(target)], root, "compile the library")

    def library(self, root: Path, objects: Sequence[Path], target: Path) -> None:
        """Link objects to a shared library, which programs will ask for by its file's name.

        It is never unloaded: a thread of it waits for the worker's end, however late that is.
        """
        ours = [f"-Wl,-soname,{target.name}", "-Wl,--version-script=cmake/exports.map"]
        ours += ["-Wl,-z,nodelete"]
        self._run(
            [*self.command, *self.compile_flags, "-shared", "-pthread", *ours]
            + [*map(str, objects), *self.link_flags, "-o", str(target)],
            root,
            f"link {target.name}",
        )

    def _run(self, command: Sequence[str], cwd: Path, what: str) -> None:
        must_run(command, cwd, shlex.join(self.command), what)


def find_compiler(wanted: str | None, environment: Mapping[str, str] = variables) -> Compiler:
    """The compiler of this name, else of $CXX, else the first of NAMES that is there.

    Raises:
        LiteError: There is none.
    """
    path = environment.get("PATH")
    where = "--compiler" if wanted is not None else "$CXX"
    text = wanted if wanted is not None else environment.get("CXX", "")
    command = _words(where, text)  # such as "ccache g++"
    if wanted is not None and not command:
        raise LiteError("--compiler is empty, wanted a command such as g++")
    if command and shutil.which(command[0], path=path) is None:
        raise LiteError(f"{where} is {text!r}, but there is no command {command[0]!r}; {_INSTALL}")
    if not command:
        command = tuple(name for name in NAMES if shutil.which(name, path=path))[:1]
    if not command:
        raise LiteError(f"there is no C++ compiler ({', '.join(NAMES)}); {_INSTALL}")
    if os.sep in command[0]:  # it will run in another directory
        command = (os.path.abspath(command[0]), *command[1:])
    flags = (_words(f"${name}", environment.get(name, "")) for name in ("CXXFLAGS", "LDFLAGS"))
    return Compiler(command, *flags)


def _words(where: str, text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError as exc:
        raise LiteError(f"{where} is {text!r}, which no shell would take: {exc}") from exc


def build_library(
    compiler: Compiler,
    root: Path,
    target: Path,
    jobs: int,
    step: Callable[[str], None],
) -> None:
    """Make `target` of all sources in root/src; objects lie next to it meanwhile.

    Raises:
        LiteError: The compiler failed; its own words are in it.
    """
    sources = sorted((root / "src").rglob("*.cc"))
    # Most of the time goes into the standard library's headers: each job reads them once, for all
    # of its sources. They have no name twice; tests/bindings/test_cpp_unit.py compiles all as one.
    parts = [sources[job::jobs] for job in range(min(jobs, len(sources)))]
    files = [target.parent / f"{number}.cc" for number in range(len(parts))]
    for file, part in zip(files, parts, strict=True):
        names = (source.relative_to(root).as_posix() for source in part)
        file.write_text("".join(f'#include "{name}"\n' for name in names), encoding="utf-8")
    objects = [file.with_suffix(".o") for file in files]
    step(f"{len(sources)} sources in {len(files)} parts; about a minute")
    with ThreadPoolExecutor(jobs) as pool:
        try:
            running = [
                pool.submit(compiler.object, root, file, made)
                for file, made in zip(files, objects, strict=True)
            ]
            for count, future in enumerate(as_completed(running)):
                future.result()
                step(f"{count + 1} of {len(files)} parts done")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # what runs is waited for, at the end
            raise
    step("linking")
    compiler.library(root, objects, target)
