#!/usr/bin/env python3
"""Prints the oldest releases that pyproject.toml allows, as constraints for pip.

    python scripts/lowest.py > lowest.txt
    pip install -c lowest.txt '.[crypto,images,openvino]' pytest hypothesis

`make lowest` does that and runs a part of the tests: a lower bound that nobody tries is a guess.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("crypto", "images", "openvino")  # those that the part of the tests uses


def lowest(text: str) -> list[str]:
    """`name==version` for each requirement of the package and of EXTRAS."""
    project = tomllib.loads(text)["project"]
    wanted = list(project["dependencies"])
    for extra in EXTRAS:
        wanted += project["optional-dependencies"][extra]
    found = []
    for requirement in wanted:
        match = re.fullmatch(r"([A-Za-z0-9._-]+)>=([0-9.]+)", requirement)
        if match is None:
            raise SystemExit(f"{requirement!r} has no lower bound, wanted NAME>=VERSION")
        found.append(f"{match[1]}=={match[2]}")
    return found


if __name__ == "__main__":
    print("\n".join(lowest((ROOT / "pyproject.toml").read_text(encoding="utf-8"))))
