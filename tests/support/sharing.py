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
from contextlib import contextmanager
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


def descriptors() -> dict[str, int]:
    """How many descriptors of each kind this process has open, and how many threads."""
    gc.collect()  # errors of earlier tests may hold pipes in circles
    found: dict[str, int] = {"threads": threading.active_count()}
    for number in os.listdir("/proc/self/fd"):
        try:
            kind = os.readlink(f"/proc/self/fd/{number}").split(":")[0]
        except OSError:  # that of the listing itself
            continue
        found[kind] = found.get(kind, 0) + 1
    return found


def assert_no_more_than(before: dict[str, int]) -> None:
    """This process has as many open as before; a thread may still be closing what it served."""
    until = time.monotonic() + LIMIT_S
    while descriptors() != before and time.monotonic() < until:
        os.sched_yield()
    assert descriptors() == before
