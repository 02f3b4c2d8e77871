"""A session that carries what a network keeps from one run to the next (graph/state.py).

Who owns what: `_lock` guards the state, and a run holds it from beginning to end, because the next
one needs what this one leaves. So runs of several threads come one after the other, in the order in
which they get the lock. The state is replaced as a whole, after a run that succeeded and was not
stopped: no other run leaves anything. It goes with `reset`, `close` and the session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from mindspore_lite.core.fork import ForkLock
from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.engines.base import Session, Stop
from mindspore_lite.errors import EngineError, StoppedError
from mindspore_lite.graph.state import Kept, kept_in

LOOK_S = 0.05  # how often a run that waits for its turn looks whether it was stopped


def carrying(session: Session) -> Session:
    """The session itself, or one that carries the state that its model speaks of."""
    kept = kept_in(session.info.metadata)
    return StatefulSession(session, kept) if kept else session


class StatefulSession:
    """Looks like a session without state; see engines/base.py for the contract."""

    def __init__(self, inner: Session, kept: Sequence[Kept]) -> None:
        self._inner = inner
        self._kept = tuple(kept)
        self._lock = ForkLock()
        self._values: dict[str, Any] = {}  # by Kept.name; one that is missing is that of the file
        self._closed = False
        inputs, outputs = inner.info.inputs, inner.info.outputs
        hidden = {end for one in kept for end in (one.first, one.before, one.after)}
        if not hidden <= {info.name for info in (*inputs, *outputs)}:
            raise EngineError(f"the model's state {sorted(hidden)} is not among its ends")
        self.info = replace(
            inner.info,
            inputs=tuple(info for info in inputs if info.name not in hidden),
            outputs=tuple(info for info in outputs if info.name not in hidden),
        )
        self._infos = {info.name: info for info in (*inputs, *outputs)}

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters that are carried."""
        return tuple(one.name for one in self._kept)

    def run(self, inputs: Sequence[Any], stop: Stop | None = None) -> list[Any]:
        """Compute the outputs, beginning with what the last run that succeeded left."""
        with self._turn(stop):
            given = dict(zip((info.name for info in self.info.inputs), inputs, strict=True))
            for one in self._kept:
                value = self._values.get(one.name)
                given[one.first] = np.asarray(value is None)
                given[one.before] = _nothing(self._infos[one.before]) if value is None else value
            if _is_on_card(inputs):
                given = {name: _on_card(value, inputs[0]) for name, value in given.items()}
            names = [info.name for info in self._inner.info.inputs]
            outputs = self._inner.run([given[name] for name in names], stop)
            found = dict(zip((i.name for i in self._inner.info.outputs), outputs, strict=True))
            values = {one.name: self._checked(one, found[one.after]) for one in self._kept}
            if stop is not None and stop.fired:  # the caller will not see these outputs
                raise StoppedError("the run was stopped")
            if not self._closed:
                self._values = values
            return [found[info.name] for info in self.info.outputs]

    @contextmanager
    def _turn(self, stop: Stop | None) -> Iterator[None]:
        """Hold the lock; a run that is stopped meanwhile does not wait for it."""
        while not self._lock.acquire(LOOK_S):
            if stop is not None and stop.fired:
                raise StoppedError("the run was stopped while another one was under way")
        try:
            yield
        finally:
            self._lock.release()

    def _checked(self, one: Kept, value: Any) -> Any:
        before = self._infos[one.before]
        if tuple(value.shape) != before.shape:
            raise EngineError(
                f"the network leaves {list(value.shape)} in its parameter {one.name!r}, which is "
                f"{list(before.shape)}; a parameter cannot change its size between runs"
            )
        return value

    def reset(self) -> None:
        """Forget the state: the next run begins with the parameters of the file."""
        with self._lock:
            self._values = {}

    def change(
        self, changed: Callable[[Session], Session], replaced: Mapping[str, np.ndarray] | None
    ) -> None:
        """Change weights once no run is under way; parameters that get a value lose their state.

        Args:
            changed: Makes the session with the other weights; if it fails, nothing has changed.
            replaced: The weights that were given, None for all that may change.
        """
        with self._lock:
            self._inner = changed(self._inner)
            variables = {variable.name for variable in self.info.variables}
            gone = variables if replaced is None else replaced.keys()
            self._values = {n: value for n, value in self._values.items() if n not in gone}

    def skeleton(self) -> bytes:
        """The graph, whose last inputs and outputs are the state."""
        return self._inner.skeleton()

    def close(self) -> None:
        """Forget the state, and close the session; harmless when repeated."""
        self._closed, self._values = True, {}
        self._inner.close()


def _nothing(info: TensorInfo) -> np.ndarray:
    """Stands for a value where there is none: the graph does not look at it."""
    return np.zeros(info.shape, info.dtype)


def _is_on_card(inputs: Sequence[Any]) -> bool:
    return bool(inputs) and not any(isinstance(value, np.ndarray) for value in inputs)


def _on_card(value: Any, other: Any) -> Any:
    """A value where another one is: outputs stay on a card only if all inputs are there."""
    if not isinstance(value, np.ndarray):
        return value
    import torch

    return torch.from_numpy(value).to(other.device)
