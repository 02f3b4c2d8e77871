"""What pictures share: a figure of matplotlib goes in, an SVG file that tells its source comes out.

The same figures give the same bytes. The file carries a digest of them, so that one can see without
matplotlib whether it is a picture of given figures.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

NEEDS = "needs matplotlib: pip install 'mslite[bench]'"


def pyplot() -> Any:
    """matplotlib's pyplot, for files alone. Raises ImportError where there is no matplotlib."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "mslite"  # else names in the file are random
    from matplotlib import pyplot as found

    return found


def save(figure: Any, path: Path, figures: Any) -> None:
    """Write a picture of these figures; its ground is white, whatever lies behind it."""
    metadata = {"Date": None, "Identifier": _digest(figures)}
    part = path.with_name(f".{path.name}.part")  # a file is there as a whole or not at all
    figure.savefig(part, format="svg", facecolor="white", metadata=metadata)
    os.replace(part, path)


def shows(path: Path, figures: Any) -> bool:
    """Whether a file is a picture of these figures."""
    return path.exists() and _digest(figures) in path.read_text(encoding="utf-8")


def _digest(figures: Any) -> str:
    text = json.dumps(figures, sort_keys=True)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
