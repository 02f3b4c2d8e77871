"""What was found out of a graph, for later starts: a name goes in, a file of the cache comes out.

The files lie where torch's compiler keeps its own, each in a folder that may be removed at any time
(see evict in cache.py): whoever misses one finds out again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from mindspore_lite.engines import cache


def name_of(parts: Iterable[bytes | str]) -> str:
    """A name for what follows from all of these and from nothing else."""
    found = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        found.update(len(data).to_bytes(8, "little") + data)
    return found.hexdigest()


def file(name: str) -> Path | None:
    """Where something of this name is kept, in a folder that is there; None: nothing is kept."""
    store = cache.usable(quietly=True)
    place = None if store is None else store.compiler_place()
    if place is None:
        return None
    folder = place / name
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder / "kept"
    return None


def read(name: str) -> bytes | None:
    """What was kept; None if nothing was."""
    path = file(name)
    with suppress(OSError):
        return path.read_bytes() if path is not None else None
    return None


def write(name: str, content: bytes) -> None:
    """Keep something; that it cannot be kept does not matter."""
    path = file(name)
    if path is None:
        return
    fresh = path.with_suffix(f".{os.getpid()}")
    with suppress(OSError):
        fresh.write_bytes(content)
        fresh.replace(path)
