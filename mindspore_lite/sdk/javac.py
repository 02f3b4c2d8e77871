"""Finds the user's Java compiler, and runs it on the sources of the jar."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from mindspore_lite.core.environment import variables
from mindspore_lite.errors import LiteError
from mindspore_lite.sdk.tool import must_run, run

RELEASE = 17  # of the releases that are looked after for long, the first with Unix domain sockets
_INSTALL = (
    f"install a JDK, version {RELEASE} or newer (Debian, Ubuntu: apt install "
    f"openjdk-{RELEASE}-jdk-headless; Fedora: dnf install java-{RELEASE}-openjdk-devel), or set "
    "$JAVA_HOME to one"
)


def locate_javac(environment: Mapping[str, str] = variables) -> str | None:
    """The javac of $JAVA_HOME, else the one on $PATH, of whatever version; None: there is none."""
    home = environment.get("JAVA_HOME")
    places = [os.path.join(home, "bin") if home else "", environment.get("PATH", "")]
    found = shutil.which("javac", path=os.pathsep.join(filter(None, places)))
    return found and os.path.abspath(found)  # it will run in another directory


def find_javac(environment: Mapping[str, str] = variables) -> str:
    """The same, and new enough.

    Raises:
        LiteError: There is none, or it is too old.
    """
    found = locate_javac(environment)
    if found is None:
        raise LiteError(f"there is no Java compiler (javac); {_INSTALL}")
    said = run([found, "-version"], Path.cwd()).stdout
    # as in "javac 17.0.15"; up to Java 8 it was "javac 1.8.0_352"
    version = re.search(r"^javac (?:1\.)?(\d+)", said, re.MULTILINE)
    if version is None:
        raise LiteError(f"{found!r} does not tell its version; asked for it, it said: {said}")
    if int(version[1]) < RELEASE:
        raise LiteError(f"{found!r} is of Java {version[1]}, which is too old; {_INSTALL}")
    return found


def compile_classes(javac: str, source: Path, target: Path, version: str) -> None:
    """Compile everything below `source`, which is a module of this version, into `target`.

    Raises:
        LiteError: The compiler failed; its own words are in it.
    """
    files = sorted(path.relative_to(source).as_posix() for path in source.rglob("*.java"))
    # it runs where the sources are: no absolute path gets into a class, and its words are short
    options = ["--release", str(RELEASE), "-encoding", "UTF-8", "-proc:none", "-Xlint:none"]
    command = [javac, *options, "--module-version", version, "-d", str(target.absolute()), *files]
    must_run(command, source, javac, "compile the library")
