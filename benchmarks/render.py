"""Files of results go in, the tables of benchmarks/README.md and the pictures come out.

A table stands between <!-- table FILE.TABLE --> and <!-- end -->, where FILE is that of the results
without .json. Beside those of run_all.py there may be files of other machines, written with --json.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gpu_plot
import parallel_plot
import pictures

HERE = Path(__file__).parent
PAGE, RESULTS = HERE / "README.md", HERE / "results"
_PLACE = re.compile(r"(<!-- table ([\w-]+)\.(\w+) -->\n).*?(?=<!-- end -->)", re.DOTALL)
_MARKS = re.compile(r"^## (.*)$|<!-- table ([\w-]+)\.", re.MULTILINE)


class ResultsError(Exception):
    """The README has a place for a table that cannot be filled."""


@dataclass(frozen=True)
class Picture:
    """An SVG file, and the figures that it shows."""

    file: str
    source: str
    figures: Callable[[dict[str, Any]], Any]
    draw: Callable[[Any, Path], None]


PICTURES = (
    Picture("clients.svg", "parallel", lambda r: r["figures"]["throughput"], parallel_plot.picture),
    Picture("gpu.svg", "gpu", gpu_plot.joined, gpu_plot.picture),
)


def read(name: str) -> dict[str, Any]:
    """A file of results."""
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def put(path: Path, text: str) -> None:
    """Write a file as a whole or not at all."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)


def page(text: str) -> str:
    """The README with the tables of the results."""
    if text.count("<!-- table ") != text.count("<!-- end -->"):
        raise ResultsError("a table of the README has no <!-- end -->")
    return _PLACE.sub(lambda place: place[1] + _lines(place[2], place[3]), text)


def sections(text: str, names: Iterable[str]) -> list[str]:
    """The headings over the tables of these results."""
    wanted, heading, found = set(names), "", []
    for title, name in _MARKS.findall(text):
        heading = title or heading
        if name in wanted and heading not in found:
            found.append(heading)
    return found


def draw(picture: Picture, always: bool = True) -> str | None:
    """Draw a picture anew; returns why that cannot be done, where it would have to be.

    Args:
        picture: Which one.
        always: Also where the file is a picture of these figures already.
    """
    figures, path = picture.figures(read(picture.source)), RESULTS / picture.file
    is_fresh = pictures.shows(path, figures)
    if is_fresh and not always:
        return None
    try:
        picture.draw(figures, path)
    except ImportError:
        return None if is_fresh else f"it shows other figures; {pictures.NEEDS}"
    return None


def _lines(name: str, table: str) -> str:
    """One table in Markdown, and where it comes from."""
    try:
        found = read(name)
        if "latency" in found:  # of gpu.py, whose file has a form of its own
            lines = gpu_plot.table(found[table])
        else:
            lines = _markdown(**found["tables"][table])
    except (OSError, ValueError, KeyError) as exc:
        raise ResultsError(
            f"the README has a table {name}.{table}, which results/{name}.json does not give "
            f"({type(exc).__name__}); measure it, or take the table out"
        ) from exc
    return f"{lines}\n\n*{_origin(found)}*\n"


def _markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("|" + "".join(f" {cell} |" if cell else " |" for cell in r) for r in lines)


def _origin(found: dict[str, Any]) -> str:
    """When and where the figures were measured, and with what; as much of it as is known."""
    machine = found["machine"]
    versions = found.get("versions") or {n: machine[n] for n in ("torch", "cuda") if n in machine}
    when = [found.get("run") and f"{found['run']} run", found.get("measured")]
    where = [machine.get("card") or machine["cpu"], f"{machine['cores']} cores"]
    where += [machine.get("memory"), machine["python"] and f"Python {machine['python']}"]
    where += [f"{package} {version}" for package, version in versions.items()]
    return ": ".join(filter(None, (", ".join(filter(None, part)) for part in (when, where))))
