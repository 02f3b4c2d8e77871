"""What a benchmark measured: rows of a table go in, a JSON file comes out that render.py reads.

A cell is the text that benchmarks/README.md will show. Figures are numbers that a picture is drawn
of. The file also says how it was made: the command, the machine, the versions, the day.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from mindspore_lite.core import cores
from mindspore_lite.core.machine import cpu_name
from mindspore_lite.version import __version__


class Table:
    """A head, and rows of as many cells."""

    def __init__(self, *head: str) -> None:
        self.head = head
        self.rows: list[Sequence[str]] = []

    def add(self, *cells: str) -> None:
        """One more row."""
        if len(cells) != len(self.head):
            raise ValueError(f"a row has {len(cells)} cells, its table {len(self.head)} columns")
        self.rows.append(cells)


def write(
    path: Path | None,
    tables: Mapping[str, Table],
    figures: Mapping[str, Any] | None = None,
    packages: Sequence[str] = ("onnxruntime",),
) -> None:
    """Write the results of the script that runs; nothing where no file was asked for.

    Args:
        path: What --json gave.
        tables: By name, as the README's markers have them.
        figures: What a picture needs.
        packages: The other distributions that took part, those that are not installed left out.
    """
    if path is None:
        return
    record = {
        "name": Path(sys.argv[0]).stem,
        "run": "",  # run_all.py knows
        "command": command(sys.argv),
        "measured": datetime.date.today().isoformat(),
        "machine": machine(),
        "versions": {"mslite": __version__} | versions(packages),
        "tables": {name: vars(table) for name, table in tables.items()},
        "figures": figures or {},
    }
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def command(argv: Sequence[str]) -> str:
    """How to do it again; where the results went is left out."""
    script, *rest = argv
    if "--json" in rest:
        at = rest.index("--json")
        del rest[at : at + 2]
    return shlex.join(["python", f"benchmarks/{Path(script).name}", *rest])


def machine() -> dict[str, str | int]:
    """The one that this runs on."""
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": cpu_name(),
        "cores": cores.usable().limit,
        "memory": f"{size / 2**30:.0f} GiB",
        "python": platform.python_version(),
    }


def versions(packages: Sequence[str]) -> dict[str, str]:
    """Of those that are installed."""
    found = {}
    for name in packages:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
