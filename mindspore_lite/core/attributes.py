"""Attributes that check what users set, and return copies."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any, ClassVar, Generic, Self, TypeVar, overload

T = TypeVar("T")

_warned: set[tuple[type, str]] = set()


class Setting(Generic[T]):
    """One attribute: the check that a new value must pass, and the default."""

    def __init__(self, check: Callable[[str, Any], T], default: T) -> None:
        self.check = check
        self.default = default

    def __set_name__(self, owner: type[Settings], name: str) -> None:
        self.name = name
        self.label = owner._prefix + name  # error messages say cpu_thread_num, not thread_num

    @overload
    def __get__(self, obj: None, owner: type) -> Self: ...
    @overload
    def __get__(self, obj: object, owner: type) -> T: ...
    def __get__(self, obj: object | None, owner: type) -> Self | T:
        if obj is None:
            return self
        # a copy: changing a list or dict that was read must not get past the checks
        value: T = copy.deepcopy(obj.__dict__.get(self.name, self.default))
        return value

    def __set__(self, obj: object, value: object) -> None:
        obj.__dict__[self.name] = self.check(self.label, value)


class Settings:
    """Base of all that holds settings: a name it does not know is kept, with a warning."""

    _path: ClassVar[str]
    _prefix: ClassVar[str] = ""

    def __setattr__(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)
        kind = type(self)
        if name.startswith("_") or hasattr(kind, name) or (kind, name) in _warned:
            return
        _warned.add((kind, name))
        known = ", ".join(key for key, row in vars(kind).items() if isinstance(row, Setting))
        warnings.warn(
            f"{self._path} has no setting {name!r}: the value is kept but has no effect "
            f"(settings here: {known})",
            UserWarning,
            stacklevel=2,
        )
