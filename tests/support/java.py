"""Java in tests: the jar as `mslite sdk java` makes it, and programs built with it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from support.shared import ROOT, made_sdk, run

from mindspore_lite.sdk.java import JAR
from mindspore_lite.sdk.javac import RELEASE, locate_javac

BINDINGS = ROOT / "bindings/java"
PUBLIC = ("com.mindspore", "com.mindspore.config")
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")  # for what runs for a second
STRICT = ("--release", str(RELEASE), "-encoding", "UTF-8", "-proc:none", "-Xlint:all", "-Werror")
JAVAC = locate_javac()
JAVA = str(Path(JAVAC or "javac").with_name("java"))
NO_JDK = "no Java compiler; install a JDK to run these tests"
needs_jdk = pytest.mark.skipif(JAVAC is None, reason=NO_JDK)


def built_sdk(factory: pytest.TempPathFactory) -> Path:
    """What `mslite sdk java DIR` makes, once a test run; what it said is in the file beside it."""
    if JAVAC is None:
        pytest.skip(NO_JDK)
    return made_sdk(factory, "java")


def compiled(
    sources: list[Path], target: Path, *class_path: Path, flags: tuple[str, ...] = ()
) -> Path:
    """A directory of classes, which compile without a single warning."""
    command: list[object] = [JAVAC, *(f"-J{option}" for option in QUICK), *STRICT]
    command += [*flags, "-d", target]
    if class_path:
        command += ["-cp", joined(*class_path)]
    done = run([*command, *sources])
    assert done.returncode == 0, done.stdout + done.stderr
    return target


def joined(*class_path: Path) -> str:
    """A class path."""
    return os.pathsep.join(map(str, class_path))


class Program:
    """A program as it is built and run by hand: compiled against the jar."""

    def __init__(self, sources: list[Path], folder: Path, sdk: Path) -> None:
        self._path = joined(sdk / JAR, compiled(sources, folder, sdk / JAR))

    def run(
        self, name: str, *arguments: object, cwd: Path = ROOT, **more: str
    ) -> subprocess.CompletedProcess[str]:
        """Run the class of this name to its end; its worker ends with it."""
        return run([JAVA, *QUICK, "-cp", self._path, name, *arguments], cwd, **more)
