"""A session for inputs of any rank: compiles one session per number of dims.

Engines compile for a fixed number of dims. Sessions are made when a number is first met, all sizes
left open, and kept; the dict of them is only touched under the lock, a run holds no lock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mindspore_lite.core.fork import ForkLock
from mindspore_lite.core.tensor_info import ANY_RANK
from mindspore_lite.engines.base import Session, SessionInfo, Stop
from mindspore_lite.errors import ClosedError, EngineError, UnsupportedOpError
from mindspore_lite.graph.source import Shapes

MAX_SESSIONS = 16  # numbers of dims, or combinations of them, of one model; guess


class AnyRankSession:
    """Many sessions that look like one; see engines/base.py for the contract."""

    def __init__(self, info: SessionInfo, load: Callable[[Shapes], Session]) -> None:
        """`info` is not mapped, for another such session would make all sessions again.

        It has no variables: serving/build.py refuses such models where some may change.
        """
        self.info = info
        self._load = load
        self._lock = ForkLock()
        self._sessions: dict[tuple[int, ...], Session] = {}
        self._open = [at for at, one in enumerate(info.inputs) if one.shape == ANY_RANK]
        self._closed = False

    def run(self, inputs: Sequence[np.ndarray], stop: Stop | None = None) -> list[np.ndarray]:
        """Compute the outputs with the session of these ranks, made first if need be."""
        ranks = tuple(inputs[at].ndim for at in self._open)
        return self._session(ranks).run(inputs, stop)

    def _session(self, ranks: tuple[int, ...]) -> Session:
        with self._lock:
            if self._closed:
                raise ClosedError("the session is closed; build the model again to run it")
            found = self._sessions.get(ranks)
            if found is None:
                if len(self._sessions) == MAX_SESSIONS:
                    raise EngineError(
                        f"the model was run with {MAX_SESSIONS} different numbers of dims already"
                    )
                found = self._sessions[ranks] = self._made(ranks)
            return found

    def _made(self, ranks: tuple[int, ...]) -> Session:
        shapes = {
            self.info.inputs[at].name: [None] * rank
            for at, rank in zip(self._open, ranks, strict=True)
        }
        try:
            return self._load(shapes)
        except UnsupportedOpError as exc:  # with the sizes known it may go
            raise exc.prefixed("call resize() with the sizes first: ") from exc.__cause__

    def skeleton(self) -> bytes:
        """There is no graph before the ranks are known."""
        raise EngineError("inputs of any rank have no graph yet; call resize() first")

    def close(self) -> None:
        """Close all sessions; harmless when repeated."""
        with self._lock:
            self._closed = True
            for session in self._sessions.values():
                session.close()
