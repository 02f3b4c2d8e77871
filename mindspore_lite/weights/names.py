"""The names of weights that may change: a file goes in, its entries come out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from mindspore_lite.config import useful_lines
from mindspore_lite.errors import ModelFileError

SHOWN = 10  # of a long list in an error; guess: whoever has more to mend runs it again


class Entry(NamedTuple):
    """A line of the file: what callers call the weight, and the node that uses it, if given."""

    name: str
    node: str = ""


def read_names(path: Path) -> tuple[Entry, ...]:
    """Read a file of one `name` or `name,node` per line; blank lines and comments are left out."""
    if not os.path.exists(path):  # false for a name that no file system takes, too
        raise ModelFileError(f"variable weight name list is not exists: {str(path)!r}")
    if not path.is_file():  # a pipe would be waited for
        raise ModelFileError(f"variable weight name list {str(path)!r} is no plain file")
    try:
        found = entries(list(useful_lines(path)), str(path))
    except (OSError, ValueError) as exc:
        raise ModelFileError(f"variable weight name list cannot be read: {exc}") from exc
    if not found:
        raise ModelFileError(f"variable weight name list {str(path)!r} holds no names")
    return found


def entries(lines: Iterable[tuple[int, str]], where: str) -> tuple[Entry, ...]:
    """What numbered lines say; `where` is what errors call the whole of them."""
    found: dict[Entry, None] = {}
    for number, line in lines:
        parts = [part.strip() for part in line.split(",")]
        if len(parts) > 2 or not all(parts):
            raise ModelFileError(
                f"{where}:{number}: only support 1 or 2 row name list, a weight or a weight and "
                f"its node with a comma between them, but got {line!r}"
            )
        found[Entry(*parts)] = None
    return tuple(found)


def as_lines(found: Iterable[Entry]) -> str:
    """Entries as they stand in a file."""
    return "\n".join(",".join(filter(None, entry)) for entry in found)


class Near:
    """Tells which known names resemble an unknown one.

    Of the first few unknown ones, that is: no more are shown, and large models have many names to
    compare with.
    """

    def __init__(self, known: Iterable[str]) -> None:
        self._known = set(known)
        self._left = SHOWN

    def __call__(self, name: str) -> str:
        """The end of a sentence about an unknown name; "" if no other resembles it."""
        import difflib  # for errors alone

        self._left -= 1
        found = difflib.get_close_matches(name, self._known) if self._left >= 0 else []
        return f", but {' or '.join(map(repr, found))}" if found else ""


def shortened(texts: Sequence[str], between: str = ", ") -> str:
    """Texts in a row; of many, the first ones and how many there are more."""
    more = len(texts) - SHOWN
    return between.join(texts[:SHOWN]) + (f"{between}and {more} more" if more > 0 else "")
