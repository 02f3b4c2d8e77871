"""Memory of processes, read from /proc at the cost of microseconds.

`statm` is written from counters. `smaps_rollup` would know more, and walks all pages: milliseconds
for a large process, while its memory map is locked.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Memory(NamedTuple):
    """What processes hold in RAM: all, and what of it is in files or memory that can be shared."""

    rss_bytes: int
    shared_bytes: int

    @property
    def private_bytes(self) -> int:
        """What nobody else can have."""
        return self.rss_bytes - self.shared_bytes


def memory_of(pids: Iterable[int | str]) -> Memory:
    """Of several processes together; shared pages count for each. One that ended has none."""
    rss = shared = 0
    for pid in pids:
        with suppress(OSError):
            file = os.open(f"/proc/{pid}/statm", os.O_RDONLY)
            try:
                fields = os.read(file, 256).split()
            finally:
                os.close(file)
            rss += int(fields[1])
            shared += int(fields[2])
    return Memory(rss * _PAGE_BYTES, shared * _PAGE_BYTES)
