"""One change of several things: all of them are changed, or none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def all_or_none(undo: Callable[[T], object]) -> Iterator[Callable[[T], None]]:
    """A block that changes several things, and calls what it is given with each one it has changed.

    If the block fails, what was changed is undone, the last one first, and the block's own error is
    raised. One that cannot be undone does not keep the others from it; the error gets a note.
    Things may be changed by several threads, if all have ended when the block ends.
    """
    done: list[T] = []
    try:
        yield done.append
    except BaseException as error:
        for one in reversed(done):
            try:
                undo(one)
            except Exception as exc:  # noqa: BLE001 - the first error counts, and the rest is undone
                error.add_note(f"undoing the change failed, too: {exc}")
        raise
