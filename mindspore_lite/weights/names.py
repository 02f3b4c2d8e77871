"""Names of weights in error texts: those that resemble an unknown one, and long lists of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

SHOWN = 10  # of a long list in an error; guess: a user with more to fix runs it again


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
