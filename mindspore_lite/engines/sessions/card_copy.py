"""The sessions of one copy of the weights on a card, one per size and worker.

Who owns what: a CardCopy has the session of the sizes in the file, and others that were made when
a request first had other sizes; the weights of each are on the card once. Every worker has a twin
of each, with a stream of its own, made when the worker first needs it. All is made, changed and
closed under one lock, so that no session misses a change of the weights; the tuple of forms is
replaced, never changed, so that a run needs no lock to find its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mindspore_lite.core.fork import ForkLock
from mindspore_lite.engines.base import CardSession, Stop
from mindspore_lite.engines.sessions.any_shape import MAX_SESSIONS, Dims, accepts
from mindspore_lite.errors import ClosedError
from mindspore_lite.weights.all_or_none import all_or_none

Load = Callable[[list[Dims]], CardSession]


class _Form:
    """The model for some sizes: a session, and a twin of it for every worker but the first."""

    def __init__(self, first: CardSession) -> None:
        self.first = first
        self.inputs = first.info.inputs
        self.sessions: dict[int, CardSession] = {}

    def made_for(self, worker: int) -> CardSession:
        """The worker's own session, which must not be there yet."""
        made = self.first.twin() if self.sessions else self.first
        self.sessions[worker] = made
        return made


class CardCopy:
    """The sessions of one copy of the weights; see the module's text."""

    def __init__(self, first: CardSession, load: Load) -> None:
        """`load` makes a session for other sizes, with the weights as they are at the moment."""
        self.first = first
        self._load = load
        self._lock = ForkLock()
        self._forms: tuple[_Form, ...] = (_Form(first),)
        self._closed = False

    def worker(self, number: int) -> CardWorker:
        """The session of a worker, for requests of any sizes."""
        with self._lock:
            self._forms[0].made_for(number)
        return CardWorker(self, number)

    def find(self, worker: int, shapes: list[Dims]) -> CardSession:
        """The worker's session for these sizes, made first if need be."""
        for form in self._forms:
            if accepts(form.inputs, shapes):
                found = form.sessions.get(worker)
                if found is not None:
                    return found
        if len(shapes) != len(self.first.info.inputs):
            return self.first  # which says so
        with self._lock:
            if self._closed:
                raise ClosedError("the session is closed; build the model again to run it")
            known = [form for form in self._forms if accepts(form.inputs, shapes)]
            if not known:
                known = [_Form(self._load(shapes))]
                # an evicted session is not closed: a thread may have found it, about to run
                kept = self._forms[1:][-MAX_SESSIONS + 1 :]
                self._forms = (self._forms[0], *kept, *known)
            return known[0].sessions.get(worker) or known[0].made_for(worker)

    def update(self, replaced: Mapping[str, np.ndarray], before: Mapping[str, np.ndarray]) -> None:
        """Change the weights of all sessions, or of none; `before` is what was changed till now."""

        def undo(session: CardSession) -> None:
            session.update(before)

        with self._lock, all_or_none(undo) as done:
            for form in self._forms:
                form.first.update(replaced)
                done(form.first)

    def close(self) -> None:
        """Close all sessions; harmless when repeated."""
        with self._lock:
            self._closed = True
            for form in self._forms:
                for session in (*form.sessions.values(), form.first):
                    session.close()


class CardWorker:
    """What a worker runs; see Session in engines/base.py, and CardSession for run_joined."""

    def __init__(self, copy: CardCopy, number: int) -> None:
        self.info = copy.first.info
        self._copy = copy
        self._number = number

    def run(self, inputs: Sequence[Any], stop: Stop | None = None) -> list[Any]:
        """Compute the outputs with the session for these sizes."""
        return self._session(inputs).run(inputs, stop)

    def run_joined(
        self, requests: Sequence[Sequence[Any]], stop: Stop | None = None
    ) -> list[list[Any]]:
        """Several requests, whose sizes are the same but for the rows, as one run."""
        return self._session(requests[0]).run_joined(requests, stop)

    def skeleton(self) -> bytes:
        """The graph with the sizes of the file."""
        return self._copy.first.skeleton()

    def close(self) -> None:
        """Close the sessions of all workers of this copy: they end together."""
        self._copy.close()

    def _session(self, inputs: Sequence[Any]) -> CardSession:
        return self._copy.find(self._number, [tuple(value.shape) for value in inputs])
