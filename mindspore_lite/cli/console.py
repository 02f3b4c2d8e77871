"""What all commands share of talking to people: output, errors, and signs of life on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn


def say(text: str = "") -> None:
    """One line on standard output."""
    print(text)  # noqa: T201 - this is where commands print


def fail(text: str, code: int) -> NoReturn:
    """One line on standard error, then the end."""
    print(f"mslite: {text}", file=sys.stderr)  # noqa: T201 - likewise
    raise SystemExit(code)


@contextmanager
def working(text: str) -> Iterator[None]:
    """A spinner on standard error while something takes long; nothing at all in a pipe."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(text):
        yield
