"""A request and its states; it ends exactly once.

                 admit                 claim                  finish
    new ───────────────▶ QUEUED ───────────────▶ RUNNING ───────────────▶ DONE, FAILED
     │                      │                       │
     │ queue full: REJECTED │ deadline: TIMED_OUT   │ deadline: TIMED_OUT
     ▼                      │ cancel: CANCELLED     │ cancel: CANCELLED
    QueueFullError          ▼ close: CLOSED         ▼ close: CLOSED

The Scheduler alone moves a request, under the pool's lock. The six states without an arrow out are
final. Members of a batch that failed are queued again, each to run alone. A running request that
was ended from outside leaves its slot busy until the engine lets go; what the engine then returns
is dropped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import Enum

import numpy as np

from mindspore_lite.core.deadline import Entry
from mindspore_lite.serving.call import Call


class State(Enum):
    """Where a request is in its life."""

    NEW = "new"
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    TIMED_OUT = "timed out"
    CANCELLED = "cancelled"
    CLOSED = "closed"
    REJECTED = "rejected"


class Request:
    """A call on its way through the pool, and what came of it.

    `answered` is what a waiting caller sleeps on, released after the end. `deliver` is foreign code
    that is called once, after the end and outside the lock. Both are None when the caller computes.
    """

    __slots__ = (
        "after", "answered", "arrived_ns", "call", "deliver", "error", "key", "level", "outputs",
        "rows", "state", "watched",
    )  # fmt: skip

    def __init__(
        self,
        call: Call,
        arrived_ns: int,
        deliver: Callable[[Request], None] | None = None,
        rows: int = 1,
        key: object = None,
    ) -> None:
        self.call = call
        self.level = call.priority  # the queue's; see queue.py
        self.arrived_ns = arrived_ns
        self.deliver = deliver
        self.answered: threading.Lock | None = None
        self.after: Request | None = None  # whose caller is woken by that of this one
        self.rows = rows  # along the batch axis
        self.key = key  # requests of equal keys may be computed together; None: always alone
        self.state = State.NEW
        self.outputs: list[np.ndarray] | None = None
        self.error: BaseException | None = None
        self.watched: Entry | None = None  # its deadline
