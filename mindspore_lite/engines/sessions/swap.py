"""Sessions that are replaced all at once while runs go on.

Who owns what: a change of the model replaces the tuple of sessions in one assignment, so a run sees
all old sessions or all new ones without taking a lock. Sessions that are no longer in the tuple are
not closed; they go when the last run on them has ended. `_lock` only keeps swap and close apart:
sessions that come after the close must be closed at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mindspore_lite.core.fork import ForkLock
from mindspore_lite.engines.base import Session, Stop
from mindspore_lite.errors import ClosedError


class SessionSwap:
    """Some sessions of one model, one after the other in several states."""

    def __init__(self, sessions: Sequence[Session]) -> None:
        self.now = tuple(sessions)
        self._lock = ForkLock()
        self._closed = False

    def faces(self) -> list[Session]:
        """One session for each, which stays the same when they are exchanged."""
        return [SwappedSession(self, at) for at in range(len(self.now))]

    def swap(self, sessions: Sequence[Session]) -> None:
        """Let other sessions take over.

        Raises:
            ClosedError: They come too late, and were closed.
        """
        with self._lock:
            if not self._closed:
                self.now = tuple(sessions)
                return
        for session in sessions:
            session.close()
        raise ClosedError("the model was closed meanwhile; build it again to use it")

    def close(self) -> None:
        """Close those that there are; harmless when repeated."""
        with self._lock:
            self._closed = True
        for session in self.now:
            session.close()


class SwappedSession:
    """One place of a SessionSwap; see engines/base.py for the contract."""

    def __init__(self, swap: SessionSwap, at: int) -> None:
        self.info = swap.now[at].info
        self._swap = swap
        self._at = at

    def run(self, inputs: Sequence[np.ndarray], stop: Stop | None = None) -> list[np.ndarray]:
        """Compute the outputs with the session that is in place now."""
        return self._swap.now[self._at].run(inputs, stop)

    def held(self) -> Session:
        """The session that is in place now, for several runs that belong together."""
        return self._swap.now[self._at]

    def skeleton(self) -> bytes:
        """The graph, which is the same in all states."""
        return self._swap.now[self._at].skeleton()

    def close(self) -> None:
        """Close the sessions of all places: they end together."""
        self._swap.close()


def held(session: Session) -> Session:
    """A session that stays as it is, whatever is exchanged meanwhile."""
    return session.held() if isinstance(session, SwappedSession) else session
