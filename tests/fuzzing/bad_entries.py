"""Entries that misbehave on purpose, so that tests see whether the harness notices it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

from fuzzing.case import Act, Entry
from fuzzing.damage import Damage

from mindspore_lite.errors import ModelFileError


def _bad(act: Callable[[Path], object], good: Callable[[Path], object] = str) -> Entry:
    """Every second case misbehaves; the warm-up does not."""

    def make(damage: Damage, folder: Path) -> Act:
        (folder / "model").write_bytes(damage.bytes(b"content"))
        chosen = damage.choice((good, act))
        return lambda: chosen(folder)

    name = f"bad-{act.__name__.strip('_').replace('_', '-')}"
    return Entry(name, act.__doc__ or "", make)


def _signal(folder: Path) -> None:
    """Dies of a signal."""
    os.kill(os.getpid(), signal.SIGSEGV)


def _exception(folder: Path) -> None:
    """Raises what is none of ours."""
    raise KeyError("x")


def _refusal(folder: Path) -> None:
    """Raises an error of ours, which is right."""
    raise ModelFileError("it is damaged")


def _cpu(folder: Path) -> None:
    """Computes without end."""
    while True:
        pass


def _memory(folder: Path) -> None:
    """Takes a gigabyte."""
    bytearray(b"x") * (1 << 30)


def _link(folder: Path) -> None:
    """Reads through a link out of its folder."""
    (folder / "link").read_bytes()


def _working_directory(folder: Path) -> None:
    """Reads a file that lies in the working directory."""
    Path("stray").read_bytes()


def _own_file(folder: Path) -> None:
    """Reads its own file, which is right."""
    (folder / "model").read_bytes()


BAD = {
    entry.name: entry
    for entry in map(
        _bad,
        (_signal, _exception, _refusal, _cpu, _memory, _link, _working_directory, _own_file),
    )
}
