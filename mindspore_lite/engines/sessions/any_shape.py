"""A session that also takes inputs of other sizes than the model file declares.

Engines compile for the sizes of the file. A session with the differing sizes left open is made
when a shape is first met, and kept. After an update of the weights such a session is opened again
when a request of its sizes comes, from what was compiled for the one before. Sessions are made
under the lock, one at a time; the tuple of them is replaced, never changed, so that a run needs no
lock to find its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from mindspore_lite.core.fork import ForkLock
from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.engines.base import Opener, Reopening, Session, Stop
from mindspore_lite.errors import ClosedError

MAX_SESSIONS = 16  # beyond, the one that was made first is let go; guess

Dims = tuple[int, ...]
Load = Callable[[list[Dims]], Session]


class AnyShapeSession:
    """Many sessions that look like one; see engines/base.py for the contract."""

    def __init__(self, first: Session, load: Load) -> None:
        self.info = first.info
        self._first = first
        self._shapes = [info.shape for info in first.info.inputs]
        self._load = load
        self._lock = ForkLock()
        self._others: tuple[Session, ...] = ()
        self._compiled: list[tuple[tuple[TensorInfo, ...], Opener]] = []  # but not opened yet
        self._replaced: Mapping[str, np.ndarray] = {}  # what to open them with
        self._closed = False

    def run(self, inputs: Sequence[np.ndarray], stop: Stop | None = None) -> list[np.ndarray]:
        """Compute the outputs with the session for these shapes, made first if need be."""
        shapes = [array.shape for array in inputs]
        if shapes == self._shapes or accepts(self.info.inputs, shapes):
            return self._first.run(inputs, stop)
        return self._other(shapes).run(inputs, stop)

    def _other(self, shapes: list[Dims]) -> Session:
        for session in self._others:
            if accepts(session.info.inputs, shapes):
                return session
        if len(shapes) != len(self._shapes):  # which it says better than a session made for them
            return self._first
        with self._lock:
            for session in self._others:  # another thread may have been faster
                if accepts(session.info.inputs, shapes):
                    return session
            if self._closed:
                raise ClosedError("the session is closed; build the model again to run it")
            made = self._opened(shapes) or self._load(shapes)
            # whoever is pushed out is not closed: a thread may have found it and be about to run
            self._others = (*self._others[-MAX_SESSIONS + 1 :], made)
            return made

    def _opened(self, shapes: list[Dims]) -> Session | None:
        """A session for sizes that were met before an update."""
        for one in self._compiled:
            inputs, opener = one
            if accepts(inputs, shapes):
                made = opener(self._replaced)
                self._compiled.remove(one)
                return made
        return None

    def updated(
        self, first: Session, load: Load, replaced: Mapping[str, np.ndarray]
    ) -> AnyShapeSession:
        """The same for a model after an update; `first` and `load` have the new weights.

        Sizes that were met here need no `load` there.
        """
        made = AnyShapeSession(first, load)
        made._replaced = replaced
        with self._lock:
            met = [
                (one.info.inputs, one.opener())
                for one in self._others
                if isinstance(one, Reopening)
            ]
            made._compiled = [*self._compiled, *met][-MAX_SESSIONS:]
        return made

    def skeleton(self) -> bytes:
        """The graph with the sizes of the file."""
        return self._first.skeleton()

    def close(self) -> None:
        """Close all sessions; harmless when repeated."""
        with self._lock:
            self._closed = True
            for session in (self._first, *self._others):
                session.close()


def accepts(infos: Sequence[TensorInfo], shapes: Sequence[Dims]) -> bool:
    """Whether inputs so declared take arrays of these shapes; every request passes here."""
    if len(infos) != len(shapes):
        return False
    for info, dims in zip(infos, shapes):  # noqa: B905 - counted above
        declared = info.shape
        if declared == dims:
            continue
        if len(declared) != len(dims):
            return False
        for wanted, got in zip(declared, dims):  # noqa: B905 - counted above
            if wanted not in (-1, got):
                return False
    return True
