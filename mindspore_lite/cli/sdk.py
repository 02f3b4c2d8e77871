"""`mslite sdk LANGUAGE DIR`: makes what programs in other languages are built with."""

from __future__ import annotations

import shlex
from pathlib import Path

import cyclopts

from mindspore_lite.cli.console import fail, say, steps, tidy_end, working

sdk = cyclopts.App(name="sdk", help_format="plaintext")
_CPP = """Compile libmindspore-lite, the C++ library, with your compiler, and lay it out.

Example: mslite sdk cpp ~/mslite-sdk"""
_JAVA = """Compile mindspore-lite-java.jar, the Java library, with your JDK, and lay it out.

The compiler is javac of $JAVA_HOME, else of $PATH, version 17 or newer.

Example: mslite sdk java ~/mslite-sdk"""


@sdk.command(help=_CPP)
def cpp(folder: Path, /, *, compiler: str | None = None, jobs: int | None = None) -> None:
    """Compile and lay out the C++ library.

    Parameters
    ----------
    folder
        Where it goes, to be LITE_HOME: headers to runtime/include, the library to runtime/lib.
    compiler
        The C++ compiler; without it $CXX, else c++, g++ or clang++.
    jobs
        How many compilers to run at once; without it, one for each core.
    """
    from mindspore_lite.core import cores
    from mindspore_lite.sdk.compiler import find_compiler
    from mindspore_lite.sdk.cpp import find_sources, make_sdk

    if jobs is not None and jobs < 1:
        fail(f"--jobs is {jobs}, wanted 1 or more", code=2)
    folder = folder.expanduser().absolute()
    found = find_compiler(compiler)
    with tidy_end(), steps("compiling libmindspore-lite") as step:
        make_sdk(folder, found, jobs or cores.usable().limit, step, find_sources())
    say(f"libmindspore-lite is in {folder}. Next:")
    say(f"  export LITE_HOME={shlex.quote(str(folder))}")
    say('  g++ -std=c++14 main.cc -I"$LITE_HOME/runtime" -L"$LITE_HOME/runtime/lib" \\')
    say('    -Wl,-rpath,"$LITE_HOME/runtime/lib" -lmindspore-lite -pthread -o main')


@sdk.command(help=_JAVA)
def java(folder: Path, /) -> None:
    """Compile and lay out the Java library.

    Parameters
    ----------
    folder
        Where it goes, to be LITE_HOME: the jar and its Maven description to runtime/lib.
    """
    from mindspore_lite.sdk.java import JAR, find_sources, make_sdk
    from mindspore_lite.sdk.javac import find_javac

    folder = folder.expanduser().absolute()
    with tidy_end(), working(f"compiling {Path(JAR).name}"):
        make_sdk(folder, find_javac(), find_sources())
    say(f"{Path(JAR).name} is in {folder}. Next:")
    say(f"  export LITE_HOME={shlex.quote(str(folder))}")
    say(f'  javac -cp "$LITE_HOME/{JAR}" Main.java')
    say(f'  java -cp "$LITE_HOME/{JAR}:." Main')
