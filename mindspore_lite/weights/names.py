"""Names of weights in error texts: those that resemble an unknown one, and long lists of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mindspore_lite.weights.rename import module_names

SHOWN = 10  # of a long list in an error; guess: a user with more to fix runs it again
ROOM = 1300  # characters of such a list: with what is said around it, it fits on one screen
_NEAREST = 2
_MAX_NAME = 120  # characters; the end of a name tells more than its beginning


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
        self._left -= 1
        found = self._nearest(name) if self._left >= 0 else []
        return f", but {' or '.join(map(clipped, found))}" if found else ""

    def _nearest(self, name: str) -> list[str]:
        import difflib  # for errors alone

        # names of LoRA files resemble those of the model when their own words are taken off
        for one in (name, *(f"{module}.weight" for module in module_names(name))):
            if found := difflib.get_close_matches(one[: 2 * _MAX_NAME], self._known, _NEAREST):
                return found
        return []


def clipped(name: str) -> str:
    """A name in quotes; of a very long one, the end."""
    return repr(name if len(name) <= _MAX_NAME else f"...{name[-_MAX_NAME:]}")


def shortened(texts: Sequence[str], between: str = ", ", room: int = ROOM) -> str:
    """Texts in a row; of many or long ones, the first and how many there are more."""
    shown: list[str] = []
    for text in texts[:SHOWN]:
        room -= len(text) + len(between)
        if room < 0 and shown:
            break
        shown.append(text)
    more = len(texts) - len(shown)
    return between.join(shown) + (f"{between}and {more} more" if more > 0 else "")
