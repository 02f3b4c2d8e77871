"""Processes for tests of shared weights: told what to do by code, by lines, or by a fork."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from support.fake_engine import LIMIT_S

ROOT = Path(__file__).parents[2]


@contextmanager
def python(code: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """A Python process that runs `code`; killed at the end of the block if it still runs."""
    child = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    with child:
        try:
            yield child
        finally:
            child.kill()


def said(child: subprocess.Popen[str]) -> str:
    """The next line that a process prints."""
    assert child.stdout is not None
    return child.stdout.readline().rstrip("\n")


def tell(child: subprocess.Popen[str], line: object) -> None:
    """Write a line to a process."""
    assert child.stdin is not None
    child.stdin.write(f"{line}\n")
    child.stdin.flush()


def forked(act: Callable[[], str]) -> str:
    """What a forked child of this process returns, or the error that it meets."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():  # since Python 3.12 a fork beside threads is worth one
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        try:
            text = act()
        except BaseException as exc:  # noqa: BLE001 - it must not return into the test
            text = f"{type(exc).__name__}: {exc}"
        os.write(writer, text.encode())
        os._exit(0)
    os.close(writer)
    with open(reader) as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    return text


def descriptors() -> set[object]:
    """What this process has open, each by its number and name, and its threads."""
    gc.collect()  # errors of earlier tests may hold pipes in circles
    found: set[object] = set(threading.enumerate())
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # that of the listing itself
            found.add(f"{number} is {os.readlink(f'/proc/self/fd/{number}')}")
    return found


def assert_no_more_than(before: set[object]) -> None:
    """Nothing is open that was not before; a thread may still be closing what it served.

    What earlier tests left, such as threads that end some seconds after their last task, may go
    meanwhile.
    """
    until = time.monotonic() + LIMIT_S
    while descriptors() - before and time.monotonic() < until:
        os.sched_yield()
    assert descriptors() - before == set()
