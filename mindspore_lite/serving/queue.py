"""The waiting requests, in the order in which they start: by priority, with ageing.

A request's priority rises by one for every 100 ms that it waits. As all rise alike, the order of
two requests never changes while they wait: it is that of `arrived_ns - priority * AGEING_NS`. So
nobody starves: a request is overtaken by one of a priority higher by n only if that one comes
within n * 100 ms after it.

Requests of one priority are in the order in which they came, which an OrderedDict keeps at no
cost; the head is the first of the heads of the few priorities that wait. Where all have priority
0, there is one OrderedDict and nothing to compare.

Used under the pool's lock only.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Iterator

from mindspore_lite.serving.request import Request

AGEING_NS = 100_000_000  # of waiting that count as much as one more priority; guess
_AGAIN = 1 << 40  # the level of requests that were put back: before all others

_Level = OrderedDict[Request, None]


class Queue:
    """Adding, removing and finding the head take the same time however many wait."""

    __slots__ = ("_others", "_usual", "count")

    def __init__(self) -> None:
        self.count = 0  # how many wait
        self._usual: _Level = OrderedDict()  # of priority 0
        self._others: dict[int, _Level] = {}  # by priority, or _AGAIN; none of them is empty

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Request]:
        """All that wait, the head first."""
        if not self._others:
            return iter(self._usual)
        return heapq.merge(*self._levels(), key=_turn)

    def add(self, request: Request) -> None:
        """Add a request behind those of its priority."""
        level = request.level
        if level:
            self._others.setdefault(level, OrderedDict())[request] = None
        else:
            self._usual[request] = None
        self.count += 1

    def put_back(self, request: Request) -> None:
        """Add a request that had its turn already: before all others."""
        request.level = _AGAIN
        self.add(request)
        self._others[_AGAIN].move_to_end(request, last=False)

    def remove(self, request: Request) -> None:
        """Remove a request from wherever it is."""
        level = request.level
        if level:
            found = self._others[level]
            del found[request]
            if not found:
                del self._others[level]
        else:
            del self._usual[request]
        self.count -= 1

    def head(self) -> Request:
        """The request whose turn it is; there must be one."""
        if not self._others:
            return next(iter(self._usual))
        return min((next(iter(level)) for level in self._levels()), key=_turn)

    def oldest_ns(self) -> int:
        """When the one that waits longest arrived; there must be one."""
        if not self._others:
            return next(iter(self._usual)).arrived_ns
        firsts = [next(iter(level)).arrived_ns for level in self._levels()]
        # a batch that was put back lies before one that was put back earlier
        again = (request.arrived_ns for request in self._others.get(_AGAIN, ()))
        return min([*firsts, *again])

    def _levels(self) -> list[_Level]:
        return [level for level in (self._usual, *self._others.values()) if level]


def _turn(request: Request) -> tuple[int, int]:
    """What the order goes by; of two that are equal, the one that came first."""
    return request.arrived_ns - request.level * AGEING_NS, request.arrived_ns
