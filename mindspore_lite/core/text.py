"""Cleans text from model files before people see it."""

from __future__ import annotations


def harmless(text: str) -> str:
    """A text without what a terminal would obey; lines and tabs stay."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in text)
