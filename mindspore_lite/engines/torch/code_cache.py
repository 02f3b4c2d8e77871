"""Files of the cache that hold what was learnt about a graph, for later starts.

The files lie where torch's compiler keeps its own, each in a folder that may be removed at any time
(see evict in engines/cache/store.py): a process that misses one finds out again.
"""

from __future__ import annotations

import functools
import importlib.metadata
import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import torch

from mindspore_lite.engines.cache import digest
from mindspore_lite.engines.cache import store as cache

_KERNELS = Path(__file__).parent / "kernels"
_MAKERS = tuple(
    f"torch/{name}" for name in ("compile", "rows", "trace", "trace_program", "plan_cache")
)


def name_of(parts: Sequence[str]) -> str:
    """A name for what follows from all of these, and from nothing else but code."""
    return digest.joined([_code(), str(torch.__version__), *parts])


def place() -> Path | None:
    """The folder of all that is kept, and of the compiler's own files; None: nothing is kept."""
    store = cache.usable(quietly=True)
    return None if store is None else store.compiler_place()


def file(name: str) -> Path | None:
    """Where something of this name is kept, in a folder that is there; None: nothing is kept."""
    root = place()
    with suppress(OSError):
        if root is not None:
            (root / name).mkdir(mode=0o700, exist_ok=True)
            return root / name / "kept"
    return None


def read(name: str) -> bytes | None:
    """What was kept; None if nothing was. What is read will not be removed for long."""
    path = file(name)
    content = None
    with suppress(OSError):  # a cache that cannot be written to is of use all the same
        if path is not None:
            content = path.read_bytes()
            os.utime(path)
    return content


def write(name: str, content: bytes) -> None:
    """Keep something; a failure to keep it is ignored."""
    path = file(name)
    if path is None:
        return
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    with suppress(OSError):
        part.write_bytes(content)
        os.replace(part, path)


@functools.cache
def _code() -> str:
    """Changes with any line that decides what a graph becomes, and with the version of Triton.

    The lines before the kernels are in the model's own key.
    """
    names = sorted(f"torch/kernels/{file.stem}" for file in _KERNELS.glob("*.py"))
    try:
        triton = importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        triton = ""
    return digest.joined([triton, digest.code_of(*_MAKERS, *names)])
