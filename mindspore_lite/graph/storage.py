"""The storages of a graph walk, so that in-place operators mean what MindSpore means.

A name is bound to a Slot, and two names of one storage to the same Slot: Load and Depend hand the
Slot on, an in-place operator puts its result into it, and every later reader sees the new value. A
view (TransposeView, ...) has a Slot of its own, but shares the storage of its base: writing a view
writes its base, and whatever shares a storage that was written is taken from its base anew.

After an `if` or a loop, a value may or may not share its storage with one from before it. Such
Slots are rivals: writing one makes the others unreadable, because only the run could decide.

A branch of an `if` may change storages that exist outside it. Every write says what it replaced,
so that a walk can take back what it did inside a branch and join the outcomes of both.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from mindspore_lite.errors import ModelFileError, UnsupportedOpError

MAX_TUPLE = 100_000  # values in one tuple, nested ones included; a file can double them at will
MAX_DEPTH = 100  # of tuples in tuples, views of views; real files stay below 5
_FAILURE = object()
_births = itertools.count()

Take = Callable[[Any], Any]  # base -> view
Put = Callable[[Any, Any, Take], Any]  # base, new content of what Take gives -> new base


@dataclass(frozen=True)
class View:
    """What a view is taken from, how, and how the base looks once the view was written."""

    base: Slot
    take: Take
    put: Put
    depth: int  # of views of views

    def __post_init__(self) -> None:
        if self.depth > MAX_DEPTH:
            raise ModelFileError(f"the model makes views of views deeper than {MAX_DEPTH} levels")

    def part(self, index: int) -> View:
        """One element of a view that is a tuple."""
        return replace(self, take=lambda base: self.take(base)[index])


class Slot:
    """One storage and what it holds now: a tensor, a constant, or a tuple of further Slots."""

    __slots__ = (
        "_depth",
        "_failed",
        "_group",
        "_rivals",
        "_size",
        "_spoiled",
        "_stale",
        "_value",
        "_view",
        "birth",
    )

    def __init__(self, value: Any, view: View | None = None) -> None:
        self.birth = next(_births)  # says which Slots were there when a branch began
        self._value = value
        self._size, self._depth = _extent(value)
        # never changes: what failed is not written any more, and nothing fails when it is written
        parts = value if isinstance(value, tuple | list) else ()
        self._failed = value is _FAILURE or any(part._failed for part in parts)
        self._stale = self._spoiled = False
        self._rivals: list[Slot] = [self]  # bases; one list for all that may be one storage
        self._view = view
        self._group: list[Slot] = [] if view is None else view.base._group
        self._group.append(self)

    def read(self) -> Any:
        """The current value, tuples taken apart into plain ones."""
        if self._spoiled:
            raise UnsupportedOpError("a value is read after its storage was changed in place")
        if self._stale:  # not kept: the nodes may lie in a branch that others cannot see
            assert self._view is not None  # a base is never stale
            return self._view.take(self._view.base.read())
        if isinstance(self._value, tuple | list):
            return type(self._value)(s.read() for s in self._value)
        return self._value

    def view(self, take: Take, put: Put) -> View:
        """How something is taken out of this storage, and put back."""
        return View(self, take, put, 1 if self._view is None else self._view.depth + 1)

    def write(self, value: Any) -> list[Before]:
        """Replace the content, and that of all that shares the storage.

        Returns what was there, for take_back.
        """
        if self._view is None:
            before = [slot._now() for slot in self._group]
            for slot in self._group:
                slot._stale, slot._spoiled = slot is not self, False
            for rival in self._rivals:
                if rival is not self:
                    before += rival.spoil()
        else:
            base = self._view.base
            before = base.write(self._view.put(base.read(), value, self._view.take))
            self._stale = False
        self._value = value
        return before

    def spoil(self) -> list[Before]:
        """From here on its content is unknown to the translation; reading it is refused."""
        before = [slot._now() for slot in self._group]
        for slot in self._group:
            slot._spoiled = True
        return before

    def may_share(self, others: Iterable[Slot]) -> None:
        """Note that its storage may be that of one of these."""
        for other in others:
            small, large = self._group[0]._rivals, other._group[0]._rivals
            if small is large:
                continue
            if len(small) > len(large):
                small, large = large, small
            large += small
            for slot in small:
                slot._rivals = large

    @property
    def kin(self) -> int:
        """The same number for all that may be one storage."""
        return id(self._group[0]._rivals)

    @property
    def held(self) -> Any:
        """What it was last given, readable or not."""
        return self._value

    def _now(self) -> Before:
        return Before(self, self._value, self._stale, self._spoiled)

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
        return self._failed

    @property
    def spoiled(self) -> bool:
        """Whether reading it is refused."""
        return self._spoiled

    @property
    def is_view(self) -> bool:
        """Whether its storage belongs to another Slot."""
        return self._view is not None

    @property
    def parts(self) -> tuple[Slot, ...] | None:
        """The Slots of a tuple or list, None for a single value."""
        return tuple(self._value) if isinstance(self._value, tuple | list) else None

    def items(self) -> tuple[Slot, ...]:
        """The Slots of a tuple."""
        if not isinstance(self._value, tuple | list):
            raise UnsupportedOpError("a tuple was expected")
        return tuple(self._value)


@dataclass(frozen=True, slots=True, eq=False)
class Before:
    """What a Slot held before a write."""

    slot: Slot
    value: Any
    stale: bool
    spoiled: bool


def take_back(changes: list[Before]) -> None:
    """Undo writes, the last one first."""
    for change in reversed(changes):
        slot = change.slot
        slot._value, slot._stale, slot._spoiled = change.value, change.stale, change.spoiled


def birth_mark() -> int:
    """Slots made from now on have a birth above this."""
    return next(_births)


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


def stored(value: Any, view: View | None = None) -> Slot:
    """A fresh Slot for a result; tuples get one per element."""
    if isinstance(value, tuple | list):
        return Slot(
            type(value)(
                stored(v, None if view is None else view.part(i)) for i, v in enumerate(value)
            )
        )
    return Slot(value, view)
