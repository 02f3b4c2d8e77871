"""Where the values of a graph walk live, so that in-place operators mean what MindSpore means.

A name is bound to a Slot, and two names of one storage to the same Slot: Load and Depend hand the
Slot on, an in-place operator puts its result into it, and every later reader sees the new value. A
view (TransposeView, ...) has a Slot of its own, but belongs to the storage group of its base. When
a member of a group is written, the others no longer hold what MindSpore would read from them;
reading one of those is refused rather than answered wrongly.
"""

from __future__ import annotations

from typing import Any

from mindspore_lite.errors import ModelFileError, UnsupportedOpError

MAX_TUPLE = 100_000  # values in one tuple, nested ones included; a file can double them at will
MAX_DEPTH = 100  # of tuples in tuples; real files stay below 5
_FAILURE = object()


class Slot:
    """One storage and what it holds now: a tensor, a constant, or a tuple of further Slots."""

    __slots__ = ("_depth", "_group", "_size", "_stale", "_value")

    def __init__(self, value: Any, view_of: Slot | None = None) -> None:
        self._value = value
        self._size, self._depth = _extent(value)
        self._stale = False
        self._group: list[Slot] = [self] if view_of is None else view_of._group
        if view_of is not None:
            self._group.append(self)

    def read(self) -> Any:
        """The current value, tuples taken apart into plain ones."""
        if self._stale:
            raise UnsupportedOpError("a view is read after its storage was changed in place")
        if isinstance(self._value, tuple | list):
            return type(self._value)(s.read() for s in self._value)
        return self._value

    def write(self, value: Any) -> None:
        """Replace the content; views of it, or what it is a view of, are out of date from here."""
        for slot in self._group:
            slot._stale = slot is not self
        self._value = value

    def still_holds(self, value: Any) -> bool:
        """Whether nothing was written since this value was put in."""
        return self._value is value and not self._stale

    @classmethod
    def of_failure(cls) -> Slot:
        """Stands for the result of a node that could not be translated."""
        return cls(_FAILURE)

    @property
    def failed(self) -> bool:
        """Whether this, or a part of it, could not be translated."""
        if isinstance(self._value, tuple | list):
            return any(slot.failed for slot in self._value)
        return self._value is _FAILURE

    def items(self) -> tuple[Slot, ...]:
        """The Slots of a tuple."""
        if not isinstance(self._value, tuple | list):
            raise UnsupportedOpError("a tuple was expected")
        return tuple(self._value)


def _extent(value: Any) -> tuple[int, int]:
    """How many slots a value consists of, and how deep they are nested."""
    if not isinstance(value, tuple | list):
        return 1, 0
    size = 1 + sum(slot._size for slot in value)
    depth = 1 + max((slot._depth for slot in value), default=0)
    if size > MAX_TUPLE:
        raise ModelFileError(f"the model makes tuples of more than {MAX_TUPLE} values")
    if depth > MAX_DEPTH:
        raise ModelFileError(f"the model makes tuples nested deeper than {MAX_DEPTH} levels")
    return size, depth


def stored(value: Any, view_of: Slot | None = None) -> Slot:
    """A fresh Slot for a result; tuples get one per element."""
    if isinstance(value, tuple | list):
        return Slot(type(value)(stored(v, view_of) for v in value))
    return Slot(value, view_of)
