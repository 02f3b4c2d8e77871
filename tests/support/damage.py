"""Ways in which a file may be damaged."""

from __future__ import annotations

import os
from pathlib import Path


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path) -> None:
    """One bit, with size and mtime as before: only ctime tells."""
    before = path.stat()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def fill_with_garbage(path: Path) -> None:
    path.write_bytes(b"\xffgarbage" * 100)
