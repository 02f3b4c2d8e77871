"""Words for a path that leads nowhere: where it was looked for, and the nearest name there."""

from __future__ import annotations

import difflib
import os

_MOST_NAMES = 10_000  # of a folder that are compared; guess
_MOST_TEXT = 300  # characters of a path that are shown


def nowhere(path: str | os.PathLike[str]) -> str:
    """The path in quotes, the folder that was looked in, and what is there of a similar name."""
    text = os.fspath(path)
    shown = repr(text[:_MOST_TEXT])
    if not text:
        return shown
    try:
        folder, name = os.path.split(os.path.abspath(text))
        while not os.path.isdir(folder):  # what is missing is a folder on the way
            folder, name = os.path.split(folder)
        with os.scandir(folder) as entries:
            names = [entry.name for entry, _ in zip(entries, range(_MOST_NAMES), strict=False)]
    except (OSError, ValueError):  # not allowed, or no path at all
        return shown
    near = difflib.get_close_matches(name, names, 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    where = f"; there is no {name[:_MOST_TEXT]!r} in {folder!r}" if folder != name else ""
    return f"{shown}{where}{hint}"
