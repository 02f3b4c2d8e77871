"""The name of the processor, as the kernel reports it."""

from __future__ import annotations

import platform
import re
from pathlib import Path


def cpu_name(proc_root: Path = Path("/proc")) -> str:
    """What the processor calls itself, else the architecture."""
    try:
        text = (proc_root / "cpuinfo").read_text()
    except OSError:
        text = ""
    found = re.search(r"^model name\s*:\s*(.*)$", text, re.MULTILINE)
    return found[1] if found else platform.machine()
