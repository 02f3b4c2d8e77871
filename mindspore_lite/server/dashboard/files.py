"""The files of the dashboard: our own, and the chart library of the package uplot-python.

They are the same for everybody and hold nothing about this server, so they need no token: a page
must be there before somebody can type one in. What it shows is asked for with the token.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_HTML, _CSS, _JS = "text/html; charset=utf-8", "text/css; charset=utf-8", "text/javascript"
_PAGE = Path(__file__).parent / "page"


@dataclass(frozen=True)
class File:
    """A file of the page.

    Attributes:
        path: Under which browsers find it.
        content: Its type.
        name: In the folder `page`, or in the static files of uplot-python.
        is_ours: In the former.
    """

    path: str
    content: str
    name: str
    is_ours: bool = True


FILES = (
    File("/dashboard", _HTML, "index.html"),
    File("/dashboard/style.css", _CSS, "style.css"),
    File("/dashboard/tables.css", _CSS, "tables.css"),
    *(
        File(f"/dashboard/{name}.js", _JS, f"{name}.js")
        for name in (
            "admin", "app", "charts", "detail", "dom", "feed", "header", "heat", "models",
            "slowest", "store", "text", "theme", "try",
        )
    ),
    File("/dashboard/uplot.js", _JS, "uPlot.iife.js", is_ours=False),
    File("/dashboard/uplot.css", _CSS, "uPlot.min.css", is_ours=False),
)  # fmt: skip


@cache
def content_of(file: File) -> bytes | None:
    """The bytes of a file; None if the package that has it is not installed."""
    folder = _PAGE if file.is_ours else _uplot_folder()
    path = folder / file.name if folder is not None else None
    if path is None or not path.is_file():
        return None
    return path.read_bytes()


def _uplot_folder() -> Path | None:
    """Where the static files of uplot-python are. It is not imported: it would load IPython."""
    spec = importlib.util.find_spec("uplot")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "static"
