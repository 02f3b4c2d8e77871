"""How much memory the machine, or the container of this process, has."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path


@cache
def total_bytes(root: Path = Path("/sys/fs/cgroup")) -> int:
    """All of the memory, used or not."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for name in ("memory.max", "memory/memory.limit_in_bytes"):  # versions 2 and 1
        try:
            text = (root / name).read_text().strip()
        except OSError:
            continue
        if text.isdecimal():
            machine = min(machine, int(text))
    return machine
