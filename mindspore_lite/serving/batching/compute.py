"""Runs what a slot claimed: one request, or several joined along the batch axis.

Runs on the thread that has the slot, without the pool's lock; nothing here raises.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from mindspore_lite.core.boundary import resource_error
from mindspore_lite.engines.base import Session, Stop
from mindspore_lite.engines.sessions.swap import held
from mindspore_lite.errors import EngineError, LiteError
from mindspore_lite.serving.batching import joining
from mindspore_lite.serving.call import Arrays
from mindspore_lite.serving.request import Request
from mindspore_lite.serving.scheduler import Slot

_LOG = logging.getLogger(__name__)


@runtime_checkable
class Joins(Protocol):
    """A session that puts the rows of several requests together by itself, and runs any number."""

    def run_joined(self, requests: Sequence[Arrays], stop: Stop) -> list[list[np.ndarray]]:
        """The outputs of each request."""


Result = tuple[list[np.ndarray] | None, BaseException | None]  # outputs or error


def batch(
    slot: Slot, most_rows: int, clock_ns: Callable[[], int]
) -> list[tuple[Request, Result]] | None:
    """What came of each request; None when a batch failed, since one member may be the cause."""
    claimed = slot.batch
    if len(claimed) == 1:
        return [(claimed[0], one(slot, claimed[0], most_rows))]
    session = slot.lane.session
    try:
        given = [request.call.inputs for request in claimed]
        if isinstance(session, Joins):
            parts = session.run_joined(given, slot.stop)
        else:
            inputs = joining.joined(given)
            slot.began_ns = clock_ns()
            outputs = checked_run(session, inputs, slot.stop)
            slot.ran_ns = clock_ns()
            parts = joining.parted(outputs, [request.rows for request in claimed])
        return [(r, (part, None)) for r, part in zip(claimed, parts, strict=True)]
    except BaseException as exc:  # noqa: BLE001 - whatever it is, the thread must go on
        _LOG.debug("a batch of %d failed and is run one by one: %s", len(claimed), exc)
    return None


def one(slot: Slot, request: Request, most_rows: int) -> Result:
    """What came of one request; with batching, one of more than most_rows is run in parts."""
    whole = not most_rows or request.key is None or request.rows <= most_rows
    if whole or isinstance(slot.lane.session, Joins):  # which sees to such sizes itself
        return _run(slot.lane.session, request.call.inputs, slot.stop)
    parts = []
    session = held(slot.lane.session)  # all parts see the same weights
    for part in joining.pieces(request.call.inputs, most_rows):
        outputs, error = _run(session, part, slot.stop)
        if outputs is None:
            return None, error
        parts.append(outputs)
    try:
        return joining.put_together(parts, request.rows), None
    except LiteError as exc:
        return None, exc


def _run(session: Session, inputs: Arrays, stop: Stop) -> Result:
    try:
        return checked_run(session, inputs, stop), None
    except LiteError as exc:
        return None, exc
    except Exception as exc:  # noqa: BLE001 - callers are promised a LiteError
        return None, engine_error(exc)
    except BaseException as exc:  # noqa: BLE001 - Ctrl-C on the caller's own thread
        return None, exc


def checked_run(session: Session, inputs: Arrays, stop: Stop) -> list[np.ndarray]:
    """The outputs of a run, as many as the model has."""
    outputs = session.run(inputs, stop)
    if len(outputs) != len(session.info.outputs):
        raise EngineError(
            f"the engine returned {len(outputs)} outputs, the model has {len(session.info.outputs)}"
        )
    return outputs


def engine_error(exc: Exception) -> LiteError:
    """What callers see of an error of a foreign class."""
    error = resource_error(exc) or EngineError(f"the engine failed: {type(exc).__name__}: {exc}")
    error.__cause__ = exc
    return error
