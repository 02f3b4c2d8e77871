"""Stop: ends a run from another thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Stop:
    """Ends the run that it was given to; one Stop may serve many runs, until it is fired.

    An engine asks for `handle` in every run: what its runtime calls to learn of a stop is made
    once, so that a run that is never stopped costs nothing more. Firing after the run's end is
    harmless to that run, but ends every later one: a fired Stop is thrown away.
    """

    __slots__ = ("_end", "_handle", "fired")

    def __init__(self) -> None:
        self.fired = False
        self._handle: Any = None
        self._end: Callable[[Any], None] | None = None

    def handle(self, make: Callable[[], Any], end: Callable[[Any], None]) -> Any:
        """The runtime's own handle, made on first use; `end(handle)` is called when fired."""
        if self._handle is None:
            self._handle, self._end = make(), end
            if self.fired:  # fire() may have come before there was a handle
                end(self._handle)
        return self._handle

    def fire(self) -> None:
        """End the run, where the engine can; harmless when repeated."""
        self.fired = True
        if self._end is not None:
            self._end(self._handle)
