"""Moves weights that OpenVINO packed during a build into huge pages.

A core looks pages up in a table, and remembers a few thousand of 4 KiB; a hundred megabytes of
weights that are read from end to end in every run are more than that. On Linux such memory can be
put into pages of 2 MiB afterwards. Only what is full of pages already is: nothing takes more memory
than before. Where the system has no such pages to give, or `transparent_hugepage/enabled` is
`never`, nothing happens.
"""

from __future__ import annotations

import bisect
import ctypes
import mmap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

_SETTINGS = Path("/sys/kernel/mm/transparent_hugepage")
_MAPS = Path("/proc/self/maps")
_COLLAPSE = 25  # MADV_COLLAPSE, since Linux 6.1; others refuse it

Span = tuple[int, int]  # addresses, the second one behind the end


@contextmanager
def for_new_memory() -> Iterator[None]:
    """Put what the block leaves behind into huge pages, as far as it can be."""
    size = _page_bytes()
    before = _mapped() if size else []
    yield
    if not size:
        return
    for span in _without(_mapped(), before):
        for start in _full_blocks(span, size):
            _libc().madvise(start, size, _COLLAPSE)  # refused: it stays as it was


def _page_bytes() -> int:
    """The size of a huge page; 0 where none are available."""
    try:
        if "[never]" in (_SETTINGS / "enabled").read_text() or not _MAPS.exists():
            return 0
        return int((_SETTINGS / "hpage_pmd_size").read_text())
    except (OSError, ValueError):
        return 0


def _mapped() -> list[Span]:
    """Memory of this process that is of no file, and can be written to."""
    found = []
    for line in _MAPS.read_text(errors="replace").splitlines():
        span, rights, _, _, _, *name = line.split(maxsplit=5)
        if rights == "rw-p" and name in ([], ["[heap]"]):
            start, _, end = span.partition("-")
            found.append((int(start, 16), int(end, 16)))
    return found


def _without(spans: Sequence[Span], others: Sequence[Span]) -> Iterator[Span]:
    """What of the spans is in none of the others; both are in order, and do not overlap."""
    ends = [end for _, end in others]
    for start, end in spans:
        at = bisect.bisect_right(ends, start)  # those before end before it
        while at < len(others) and others[at][0] < end:
            if start < others[at][0]:
                yield start, others[at][0]
            start = others[at][1]
            at += 1
        if start < end:
            yield start, end


def _full_blocks(span: Span, size: int) -> Iterator[int]:
    """Where blocks of that size begin that have all of their pages in memory."""
    start, end = -(-span[0] // size) * size, span[1] // size * size
    if start >= end:
        return
    there = np.zeros((end - start) // mmap.PAGESIZE, np.uint8)
    if _libc().mincore(start, end - start, there.ctypes.data):
        return  # it was unmapped meanwhile
    blocks = (there & 1).reshape(-1, size // mmap.PAGESIZE).all(axis=1)
    yield from (start + int(at) * size for at in np.flatnonzero(blocks))


def _libc() -> ctypes.CDLL:
    library = ctypes.CDLL(None)
    library.madvise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    library.mincore.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p
    return library
