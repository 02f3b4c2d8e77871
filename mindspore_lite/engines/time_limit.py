"""Runs calls under a deadline; one that does not return costs a thread and raises an error.

A native call cannot be ended from outside. So it is made on a thread of its own, and the caller
stops waiting when the time is over. The thread is a daemon: it ends with the call or with the
process, and what the call would have returned is dropped.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import numpy as np

from mindspore_lite.core import threads
from mindspore_lite.core.budget import SECTION
from mindspore_lite.engines.base import Session, Stop
from mindspore_lite.errors import RequestTimeoutError, ResourceError

T = TypeVar("T")

GRACE_S = 5.0  # after a stop was fired; guess: an operator takes less, but for hostile ones
_MOST_S = threading.TIMEOUT_MAX


class _Call(Generic[T]):
    """One call and what became of it; `ended` is set after the other two."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call: Callable[[], T] | None = call
        self.result: list[T] = []
        self.error: BaseException | None = None
        self.ended = threading.Event()

    def run(self) -> None:
        assert self._call is not None
        try:
            self.result.append(self._call())
        except BaseException as exc:  # noqa: BLE001 - whoever waits raises it
            self.error = exc
            if exc.__traceback__ is not None:  # its first frame is this one, which holds the error
                exc.__traceback__ = exc.__traceback__.tb_next
        finally:
            self._call = None  # which may hold a model
            self.ended.set()


def all_within(
    limit_s: float, what: str, calls: Sequence[Callable[[], T]], stop: Stop | None = None
) -> list[T]:
    """Make all calls at once, each on a thread of its own; their results in order.

    Args:
        limit_s: Seconds that all of them may take together.
        what: What does not end, for the error.
        calls: What to do.
        stop: Fired when the time is over, or the wait is interrupted; the calls should end by it.

    Raises:
        RequestTimeoutError: They did not end in time.
        ResourceError: No thread could be started.
    """
    made = [_Call(call) for call in calls]
    deadline_s = time.monotonic() + min(limit_s, _MOST_S)
    try:
        for one in made:
            threads.start(one.run)
        for one in made:
            if not one.ended.wait(max(0.0, deadline_s - time.monotonic())):
                raise overdue(what, limit_s)
    except RuntimeError as exc:
        if stop is not None:
            stop.fire()
        if isinstance(exc, RequestTimeoutError):
            _wait_a_little(made)
            raise
        raise ResourceError(f"{what}: no thread could be started ({exc})") from exc
    except BaseException:  # Ctrl-C
        if stop is not None:
            stop.fire()
        raise
    error = next((one.error for one in made if one.error is not None), None)
    if error is None:
        return [one.result[0] for one in made]
    for one in made:
        one.error = None
    try:
        raise error
    finally:
        del error  # this frame is in its traceback: without a circle, all goes with it


def within(limit_s: float, what: str, call: Callable[[], T], stop: Stop | None = None) -> T:
    """all_within() for one call."""
    return all_within(limit_s, what, [call], stop)[0]


def run_within(
    limit_s: float, what: str, session: Session, inputs: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Run a session once; it is stopped when the time is over."""
    stop = Stop()
    return within(limit_s, what, lambda: session.run(inputs, stop), stop)


def overdue(what: str, limit_s: float) -> RequestTimeoutError:
    """The error of what did not end."""
    return RequestTimeoutError(
        f"{what} did not end within {limit_s:g} s; if it only needs longer, allow it by "
        f"[{SECTION}] max_seconds and max_run_seconds"
    )


def _wait_a_little(made: Sequence[_Call[T]]) -> None:
    """Let calls that heed their stop end, so that they hold nothing any more."""
    until_s = time.monotonic() + GRACE_S
    for one in made:
        one.ended.wait(max(0.0, until_s - time.monotonic()))
