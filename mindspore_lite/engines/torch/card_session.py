"""Sessions on a card: each has its own stream and replays recorded runs on it.

Who owns what: the Program (graph, weights, compiled plans) belongs to all twins together; a session
owns its stream, the memory of its recorded runs, and a Replay for each combination of shapes that
it met lately. Its lock is held for a whole run, so that a thread never sees another's buffers. What
must be compiled or recorded for a run is made before the run enters the gate of the weights, where
an update waits for it.

A request of n rows runs in the smallest prepared number of rows that holds it, if that is exact
(rows.py), else in just its own shapes, which are prepared then.
"""

from __future__ import annotations

import threading
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import torch

from mindspore_lite.engines.base import Stop
from mindspore_lite.engines.torch import ipc, rows
from mindspore_lite.engines.torch.cards import Card
from mindspore_lite.engines.torch.program import Program, Shapes
from mindspore_lite.engines.torch.replay import Recording, Replay
from mindspore_lite.engines.torch.session import (
    Base,
    check_stop,
    readable,
    shapes_of,
    static,
    stoppable,
)
from mindspore_lite.errors import EngineError, LiteError, ResourceError

Request = Sequence[Any]  # arrays, or tensors of the card
T = TypeVar("T")


class CardSession(Base):
    """A model on one stream of a card; see engines/base.py for the contract."""

    def __init__(self, program: Program) -> None:
        """Record what the options ask for; all else is recorded when it is met."""
        super().__init__(program, mapped=False)
        assert program.card is not None
        self._card: Card = program.card
        self._lock = threading.Lock()
        self._replays: OrderedDict[Shapes, Replay] = OrderedDict()
        self._batches = self._usable_batches(program)
        with self._failures("to prepare the model"):
            self._lane = Recording(self._card)
            self._prepare(program)

    # --- the contract ---

    def run(self, inputs: Request, stop: Stop | None = None) -> list[Any]:
        """Compute the outputs; what the card was asked to do cannot be stopped."""
        given = self._given(inputs)
        return self._alone(stop, lambda program: self._taken(self._run(program, given, stop)))

    def run_joined(self, requests: Sequence[Request], stop: Stop | None = None) -> list[list[Any]]:
        """Several requests as one run, where their rows fit into a prepared number."""
        given = [self._given(request) for request in requests]
        counts = rows.counts(given) if self._batches else None
        if counts and sum(counts) <= max(self._batches):
            found = self._alone(stop, lambda program: self._run_joined(program, given, counts))
            if found is not None:
                return [self._taken(outputs) for outputs in found]
        return [self.run(request, stop) for request in requests]

    def twin(self) -> CardSession:
        """Another session of the model, with a stream of its own and the same weights."""
        return CardSession(self._open_program())

    def update(self, replaced: Mapping[str, np.ndarray]) -> None:
        """Change weights in all twins at once."""
        with self._failures("to hold the new weights beside the old ones"):
            super().update(replaced)

    def export(self) -> bytes:
        """What one other process needs to use the same weights."""
        return ipc.exported(self._open_program().store)

    def close(self) -> None:
        """Let go of memory once no run is under way."""
        super().close()
        self._drop_if_closed()

    # --- a run ---

    def _alone(self, stop: Stop | None, work: Callable[[Program], T]) -> T:
        """Do something that needs the session for itself."""
        self._card.check_whole()
        try:
            with self._lock, stoppable(stop):
                program = self._open_program()
                check_stop(stop)
                try:
                    return work(program)
                except LiteError:
                    raise
                except Exception as exc:  # torch raises anything
                    raise self._failure("for a run", exc) from exc
        finally:
            self._drop_if_closed()  # whoever closes meanwhile leaves it to the last run

    def _run(self, program: Program, given: Request, stop: Stop | None) -> list[Any]:
        shapes = shapes_of(given)
        count = rows.count(given) if self._batches else 0
        if not count or not self._cuts(program, shapes, count):
            return self._replayed(program, [given], shapes, ())[0]
        most = max(self._batches)
        if count <= most:
            return self._in_batch(program, [given], [count])[0]
        parts = []
        for start in range(0, count, most):
            check_stop(stop)
            piece = [one[start : start + most] for one in given]
            parts.append(self._in_batch(program, [piece], [len(piece[0])])[0])
        return [_joined(outputs) for outputs in zip(*parts, strict=True)]

    def _run_joined(
        self, program: Program, given: Sequence[Request], counts: Sequence[int]
    ) -> list[list[Any]] | None:
        """The outputs of all; None where their rows must not run together."""
        if not program.rows_are_independent(shapes_of(given[0])):
            return None
        return self._in_batch(program, given, counts)

    def _in_batch(
        self, program: Program, requests: Sequence[Request], counts: Sequence[int]
    ) -> list[list[Any]]:
        """Requests in the smallest prepared number of rows."""
        size = rows.fitting(self._batches, sum(counts))
        shapes = rows.with_rows(shapes_of(requests[0]), size)
        return self._replayed(program, requests, shapes, counts)

    def _replayed(
        self, program: Program, requests: Sequence[Request], shapes: Shapes, counts: Sequence[int]
    ) -> list[list[Any]]:
        """The outputs of requests in given shapes; without counts there is one, of these shapes."""
        replay = self._replay(program, shapes)
        with program.store.gate.running():
            return replay.run(requests, counts)

    def _replay(self, program: Program, shapes: Shapes) -> Replay:
        found = self._replays.get(shapes)
        if found is None:
            plan = program.plan(shapes)
            found = Replay(program, plan, self._lane)
            self._replays[shapes] = found
            if len(self._replays) > program.most_plans:
                self._replays.popitem(last=False)
        self._replays.move_to_end(shapes)
        return found

    # --- rows ---

    def _usable_batches(self, program: Program) -> tuple[int, ...]:
        """Numbers of rows to run in; none where the model has no open batch axis."""
        is_open = rows.is_open(program.inner_inputs) and rows.is_open(program.inner_outputs)
        return tuple(sorted(set(program.options.batches))) if is_open else ()

    def _prepare(self, program: Program) -> None:
        """Record what is asked for, the largest first: the others then fit into its memory."""
        tails = [info.shape[1:] for info in self._inner]
        if own := static(self._inner):
            self._replay(program, own)
        elif self._batches and all(dim >= 0 for dims in tails for dim in dims):
            for count in reversed(self._batches):
                self._replay(program, tuple((count, *dims) for dims in tails))
            program.rows_are_independent(tuple((1, *dims) for dims in tails))

    def _cuts(self, program: Program, shapes: Shapes, count: int) -> bool:
        """Whether rows run among others or in parts; if they may is tried when it is of use."""
        return count not in self._batches and program.rows_are_independent(shapes)

    # --- errors ---

    @contextmanager
    def _failures(self, doing: str) -> Iterator[None]:
        """Errors of the card as ours."""
        try:
            yield
        except LiteError:
            raise
        except Exception as exc:  # torch raises anything
            raise self._failure(doing, exc) from exc

    def _failure(self, doing: str, exc: Exception) -> LiteError:
        """What callers see of an error. After one for want of memory the session can go on."""
        self._card.note(exc)
        if self._card.broken:
            return EngineError(
                f"device {self.info.device!r} failed ({readable(exc)}), and cannot be used again "
                "by this process; restart it"
            )
        if not self._card.is_full(exc):
            return EngineError(f"torch could not run the model: {readable(exc)}")
        traceback.clear_frames(exc.__traceback__)  # they hold what was made so far
        self._card.empty_cache()
        return self._full(doing, exc)

    def _full(self, doing: str, exc: Exception) -> ResourceError:
        free, total = self._card.memory_bytes()
        return ResourceError(
            f"device {self.info.device!r} has no memory left {doing}: {readable(exc)[:200]}; "
            f"{free >> 20} of {total >> 20} MiB are free: use fewer workers, smaller batches or "
            "precision preferred_fp16"
        )

    def _drop_if_closed(self) -> None:
        """Let go of the memory of a closed session, unless a run does so when it ends."""
        if self._program is not None or not self._lock.acquire(blocking=False):
            return
        try:
            self._replays.clear()
            self._lane.clear()
            if not self._card.broken:
                self._card.empty_cache()
        finally:
            self._lock.release()


def _joined(parts: Sequence[Any]) -> Any:
    return torch.cat(parts) if isinstance(parts[0], torch.Tensor) else np.concatenate(parts)
