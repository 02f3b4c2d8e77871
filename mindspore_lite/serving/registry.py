"""Services by name and version: each is started once and shared by all that hold it.

A service is looked up or started by `join`, and closed when the last lease is released. While one
thread starts a service, others that ask for the same name wait for it, as long as they like; if the
start fails, the next of them tries, so that everybody gets an error of its own.

`_changed` guards the table and the counts, and tells those who wait. It is never held while a
service is started or closed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from mindspore_lite.errors import CancelledError, ClosedError, InputError, RequestTimeoutError
from mindspore_lite.serving.call import Known


class Closable(Protocol):
    """What a registry needs to know of a service."""

    def close(self, drain_s: float | None) -> None:
        """Finish what was taken within a time, None being as long as it takes, and release all."""


S = TypeVar("S", bound=Closable)
Key = tuple[str, str]  # name, version


@dataclass(eq=False)
class _Entry(Generic[S]):
    """A service and its holders; those that wait for its start count as well."""

    origin: object  # what it was started from; others must ask for the same
    holders: int = 0
    service: S | None = None  # None until it is started
    is_over: bool = False  # its start, which may have failed


class Lease(Generic[S]):
    """One holder's share of a service."""

    def __init__(self, registry: Registry[S], key: Key, entry: _Entry[S], service: S) -> None:
        self.name, self.version = key
        self.service = service
        self._registry = registry
        self._entry: _Entry[S] | None = entry

    def release(self, drain_s: float | None = None) -> None:
        """Give it up; the last holder closes the service. Harmless when repeated."""
        with self._registry._changed:
            entry, self._entry = self._entry, None
        if entry is not None:
            self._registry._released((self.name, self.version), entry, drain_s)


class Registry(Generic[S]):
    """All services of a process that have a name. Safe from many threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._entries: dict[Key, _Entry[S]] = {}

    def join(
        self,
        name: str,
        version: str = "",
        origin: object = None,
        start: Callable[[], S] | None = None,
        *,
        limit_s: float | None = None,
        known: Known | None = None,
    ) -> Lease[S]:
        """A lease of the service with this name, which is started if there is none.

        Args:
            name: What the service is called.
            version: Which of several; "" is the newest, or the first where it must be started.
            origin: What the caller would start it from; None takes whatever is there.
            start: Starts it; None only looks.
            limit_s: For which to wait while another thread starts it; None as long as that takes.
            known: Called before such a wait with a function that ends it, for other threads.

        Raises:
            RequestTimeoutError: Another thread did not start it in time.
            CancelledError: The wait was ended.
            ClosedError: There is no such service, and the caller did not say how to start it.
            InputError: It was started from something else.
            Exception: What the start raised.
        """
        while True:
            key, entry, is_starter = self._found(name, version, origin, start is not None)
            if is_starter:
                assert start is not None
                return self._start(key, entry, start)
            try:
                self._await_start(key, entry, limit_s, known)
            except BaseException:
                self._released(key, entry, None)
                raise
            if entry.service is not None:
                return Lease(self, key, entry, entry.service)
            self._released(key, entry, None)  # its start failed: look again

    def _await_start(
        self, key: Key, entry: _Entry[S], limit_s: float | None, known: Known | None
    ) -> None:
        """Wait until another thread has started a service, or failed to."""
        is_wanted = True

        def cancel() -> None:
            nonlocal is_wanted
            with self._changed:
                is_wanted = False
                self._changed.notify_all()

        if known is not None:
            known(cancel)
        with self._changed:
            came = self._changed.wait_for(lambda: entry.is_over or not is_wanted, limit_s)
        if not is_wanted:
            raise CancelledError("the build was cancelled")
        if not came:
            raise RequestTimeoutError(
                f"model {key[0]!r} version {key[1]} is being built for another client, and was not "
                f"ready within {limit_s:g} s ([build] max_seconds); ask again later"
            )

    def services(self) -> dict[Key, S]:
        """Those that are started, by name and version."""
        with self._changed:
            found = sorted(self._entries.items())
        return {key: entry.service for key, entry in found if entry.service is not None}

    def _found(
        self, name: str, version: str, origin: object, may_start: bool
    ) -> tuple[Key, _Entry[S], bool]:
        """The entry to hold, which the caller now does, and whether the caller must start it."""
        with self._changed:
            key = (name, version or self._newest(name))
            entry = self._entries.get(key)
            is_new = entry is None
            if entry is None:
                if not may_start:
                    raise ClosedError(self._missing(name, version))
                entry = self._entries[key] = _Entry(origin)
            elif origin is not None and entry.origin != origin:
                raise InputError(
                    f"the name {name!r}, version {key[1]}, belongs to {entry.origin}, and "
                    f"{origin} was asked for; choose another name or version"
                )
            entry.holders += 1
            return key, entry, is_new

    def _newest(self, name: str) -> str:
        versions = [version for other, version in self._entries if other == name]
        return max(versions, key=_order, default="1")

    def _missing(self, name: str, version: str) -> str:
        known = ", ".join(f"{other!r} version {number}" for other, number in sorted(self._entries))
        wanted = f"{name!r} version {version}" if version else repr(name)
        return f"there is no model {wanted}; there are: {known or 'none'}"

    def _start(self, key: Key, entry: _Entry[S], start: Callable[[], S]) -> Lease[S]:
        try:
            entry.service = service = start()
        except BaseException:
            with self._changed:
                del self._entries[key]
            raise
        finally:
            with self._changed:
                entry.is_over = True
                self._changed.notify_all()
        return Lease(self, key, entry, service)

    def _released(self, key: Key, entry: _Entry[S], drain_s: float | None) -> None:
        with self._changed:
            entry.holders -= 1
            is_last = not entry.holders and entry.service is not None
            if is_last:
                del self._entries[key]
        if is_last and entry.service is not None:
            entry.service.close(drain_s)


def _order(version: str) -> tuple[int, int, str]:
    """Numbers count as newer than all other words, and a larger one as newer than a smaller."""
    is_number = version.isascii() and version.isdecimal()
    return (int(is_number), int(version) if is_number else 0, version)
