"""Counts what became of requests: one Meter for each version of a model that is served.

    times = RequestTimes()                  one for each request, filled in on its way
    times.model = model                     as soon as that is known
    times.decoded(call)                     it is about to be queued
    model.meter.count(times)                before the answer is sent: the counters are right when
                                            a client that has its answer asks for them
    model.meter.count_sent(ns)              after

The phases of a request follow one another without a gap, so that they add up to its whole time:

    receive   from its first byte to its last
    decode    until it is queued: reading JSON or protobuf, checking it, making arrays
    queue     until a worker takes it
    batch     joining the inputs of several requests, and splitting their outputs
    run       the engine
    encode    from there until the answer is there in bytes, with the way back to the port's thread
    send      until the answer was handed to the system

Everything only grows while the version is served. What belongs together changes together, under one
lock: whatever moment a reader picks, the counts add up (see Counts). Requests only note their end,
and are added when somebody reads, or when there are many.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from mindspore_lite import errors
from mindspore_lite.server.errors import Kind, NoRoomError, RequestError, kind_of
from mindspore_lite.server.traceparent import TraceParent
from mindspore_lite.serving.call import Call
from mindspore_lite.serving.timing import Run, Timing

if TYPE_CHECKING:
    from mindspore_lite.server.models import ServedModel

_MANY = 64  # requests that are added at once; guess
PHASES = ("receive", "decode", "queue", "batch", "run", "encode", "send")
FAILED = ("deadline", "cancelled", "error", "crash")
REJECTED = ("queue_full", "timeout", "memory", "not_ready")
# ms: 1, 2, 5 and a step between
BOUNDS_MS = (
    0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0, 15.0, 20.0, 30.0, 50.0, 70.0,
    100.0, 150.0, 200.0, 300.0, 500.0, 700.0, 1000.0, 2000.0, 5000.0, 10_000.0, 30_000.0,
)  # fmt: skip
QUEUE_BOUNDS_MS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 50.0, 100.0, 500.0, 1000.0, 5000.0)
_QUEUE_BOUNDS_NS = tuple(round(bound * 1e6) for bound in QUEUE_BOUNDS_MS)
_BOUNDS_NS = tuple(round(bound * 1e6) for bound in BOUNDS_MS)


class RequestTimes:
    """When a request passed which point, by time.monotonic_ns(); 0: it did not, or not yet.

    One thread at a time works on it, in the order of the phases.

    Attributes:
        began_ns: Its first byte was there.
        received_ns: Its last byte was there.
        decoded_ns: It was about to be queued.
        timing: What the pool says of it.
        encoded_ns: Its answer was there, or its error.
        sent_ns: The answer was handed to the system.
        rows: Along the batch axis; 0 if the model has none.
        reason: Why it failed, one of FAILED or REJECTED; "" if it did not. INVALID if it is the
            client's fault.
        id: By which the client knows it.
        parent: The caller's span; None if it names none.
        model: That it is for; None if it is not known, and nothing is counted.
    """

    __slots__ = (
        "began_ns", "decoded_ns", "encoded_ns", "id", "model", "parent", "reason", "received_ns",
        "rows", "sent_ns", "timing",
    )  # fmt: skip

    def __init__(self, began_ns: int = 0, received_ns: int = 0) -> None:
        now_ns = received_ns or time.monotonic_ns()
        self.began_ns = began_ns or now_ns
        self.received_ns = now_ns
        self.decoded_ns = self.encoded_ns = self.sent_ns = 0
        self.rows = 0
        self.timing: Timing | None = None
        self.model: ServedModel | None = None
        self.parent: TraceParent | None = None
        self.reason = self.id = ""

    def decoded(self, call: Call) -> None:
        """It is about to be queued."""
        self.timing = call.timing = Timing()
        if self.model is not None and self.model.max_batch_size:
            self.rows = call.inputs[0].shape[0]
        self.decoded_ns = time.monotonic_ns()

    def failed(self, exc: BaseException) -> None:
        """Its answer is an error."""
        self.reason = reason_of(exc)

    @property
    def run(self) -> Run | None:
        """The run that computed it."""
        return None if self.timing is None else self.timing.run

    @property
    def hit_ns(self) -> int:
        """What the response cache took to answer; 0 if it did not."""
        return 0 if self.timing is None else self.timing.hit_ns

    def total_ns(self) -> int:
        """All of its time, so far as is known."""
        return (self.sent_ns or self.encoded_ns or time.monotonic_ns()) - self.began_ns

    def parts_ns(self) -> tuple[int, int, int, int, int, int, int, int]:
        """receive, decode, queue, joining, run, splitting, encode, send; their sum is all."""
        end_ns = self.encoded_ns or time.monotonic_ns()
        receive = self.received_ns - self.began_ns
        send = self.sent_ns - end_ns if self.sent_ns else 0
        if not self.decoded_ns:
            return receive, end_ns - self.received_ns, 0, 0, 0, 0, 0, send
        decode, run = self.decoded_ns - self.received_ns, self.run
        if self.hit_ns:
            return receive, decode, 0, 0, 0, 0, end_ns - self.decoded_ns, send
        if run is None:
            return receive, decode, end_ns - self.decoded_ns, 0, 0, 0, 0, send
        return (
            receive,
            decode,
            run.claimed_ns - self.decoded_ns,
            run.began_ns - run.claimed_ns,
            run.ran_ns - run.began_ns,
            run.ended_ns - run.ran_ns,
            end_ns - run.ended_ns,
            send,
        )

    def phases_ns(self) -> dict[str, int]:
        """How long each phase took."""
        receive, decode, queue, joining, run, splitting, encode, send = self.parts_ns()
        found = (receive, decode, queue, joining + splitting, run, encode, send)
        return dict(zip(PHASES, found, strict=True))


class BatchCount(NamedTuple):
    """Runs of one size, each counted once: how many, and how long they took, in ns."""

    runs: int
    input_ns: int
    infer_ns: int
    output_ns: int


class Counts(NamedTuple):
    """A Meter at one moment. Always, with sums over `batches`:

    executions = sum(runs), rows = sum(size * runs);
    success_ns >= queue_ns + input_ns + infer_ns + output_ns;
    sum(latency) = sum(queue_wait) = success.

    Every request is charged for all of the run that it shared; `batches` counts a run once.
    """

    success: int
    success_ns: int
    fail: int  # with those that were too late in the queue, without the other rejections
    fail_ns: int
    rows: int
    executions: int
    last_s: float  # of the last run, in seconds since 1970; 0.0 if there was none
    queue_ns: int
    input_ns: int
    infer_ns: int
    output_ns: int
    hits: int
    hit_ns: int
    misses: int
    miss_ns: int
    failed: tuple[int, ...]  # as FAILED
    rejected: tuple[int, ...]  # as REJECTED
    phases_ns: tuple[int, ...]  # as PHASES, of successful requests
    queue_wait: tuple[int, ...]  # successful requests between QUEUE_BOUNDS_MS, one more than these
    latency: tuple[int, ...]  # successful requests between BOUNDS_MS, one more than these
    batches: Mapping[int, BatchCount]  # by rows


# What counts of a request: began, received, decoded and ended, its run, its rows, hit and miss of
# the cache, and the reason of a failure. A plain tuple: making one is on the path of every request.
# Not its RequestTimes, which know the model, and so the meter.
_Note = tuple[int, int, int, int, Run | None, int, int, int, str]


class Meter:
    """Counts the requests of one version of a model. Safe from many threads."""

    __slots__ = (
        "_batches", "_decode", "_encode", "_ended", "_executions", "_fail", "_fail_ns", "_hit_ns",
        "_hits", "_infer", "_input", "_last_s", "_latency", "_lock", "_miss_ns", "_misses",
        "_output", "_queue", "_queue_wait", "_reasons", "_receive", "_rows", "_send", "_sends",
        "_success", "_success_ns",
    )  # fmt: skip

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ended: deque[_Note] = deque()  # requests that are not added yet
        self._sends: deque[int] = deque()
        self._success = self._success_ns = self._fail = self._fail_ns = 0
        self._rows = self._executions = 0
        self._last_s = 0.0
        self._queue = self._input = self._infer = self._output = 0
        self._receive = self._decode = self._encode = self._send = 0
        self._hits = self._hit_ns = self._misses = self._miss_ns = 0
        self._reasons = dict.fromkeys((*FAILED, *REJECTED), 0)
        self._queue_wait = [0] * (len(QUEUE_BOUNDS_MS) + 1)
        self._latency = [0] * (len(BOUNDS_MS) + 1)
        self._batches: dict[int, list[int]] = {}  # by rows: count, input, infer, output

    def count(self, times: RequestTimes, reason: str = "") -> bool:
        """Count a request that has its answer now; False if it was counted before.

        A reason says that the answer is not wanted any more. For one thread at a time, of each
        request. It is only noted here, which is atomic; who reads the counts adds all up, which
        takes half of the time if many come at once.
        """
        if times.encoded_ns:
            return False
        times.encoded_ns = end_ns = time.monotonic_ns()
        if reason:
            times.reason = reason
        timing = times.timing
        run, hit_ns, miss_ns = None, 0, 0
        if timing is not None:
            run, hit_ns, miss_ns = timing.run, timing.hit_ns, timing.miss_ns
        note = (
            times.began_ns, times.received_ns, times.decoded_ns, end_ns, run, times.rows, hit_ns,
            miss_ns, times.reason,
        )  # fmt: skip
        self._ended.append(note)
        if len(self._ended) >= _MANY:
            with self._lock:
                self._add_up()
        return True

    def count_sent(self, send_ns: int) -> None:
        """Count what sending an answer took."""
        self._sends.append(send_ns)

    def reject(self, reason: str) -> None:
        """Count a request that was refused before it was looked at; one of REJECTED."""
        with self._lock:
            self._reasons[reason] += 1

    def counts(self) -> Counts:
        """Everything at this moment."""
        with self._lock:
            self._add_up()
            reasons = self._reasons
            batching = self._input + self._output
            return Counts(
                self._success, self._success_ns, self._fail, self._fail_ns, self._rows,
                self._executions, self._last_s, self._queue, self._input, self._infer,
                self._output, self._hits, self._hit_ns, self._misses, self._miss_ns,
                tuple([reasons[name] for name in FAILED]),
                tuple([reasons[name] for name in REJECTED]),
                (self._receive, self._decode, self._queue, batching, self._infer, self._encode,
                 self._send),
                tuple(self._queue_wait), tuple(self._latency),
                {rows: BatchCount(*one) for rows, one in sorted(self._batches.items())},
            )  # fmt: skip

    def _add_up(self) -> None:
        """Add what was noted to the counts, under the lock."""
        ended, sends = self._ended, self._sends
        now_s, now_ns = time.time(), time.monotonic_ns()
        while ended:
            note = ended.popleft()
            _, received_ns, _, end_ns, _, _, hit_ns, _, reason = note
            if reason:
                self._add_failed(reason, end_ns - received_ns)
                continue
            self._add(note)
            if not hit_ns:
                self._last_s = max(self._last_s, now_s - (now_ns - end_ns) / 1e9)
        while sends:
            self._send += sends.popleft()

    def _add(self, note: _Note) -> None:
        began_ns, received_ns, decoded_ns, end_ns, run, rows, hit_ns, miss_ns, _ = note
        inside = end_ns - received_ns
        self._success += 1
        self._success_ns += inside
        self._latency[bisect_left(_BOUNDS_NS, inside)] += 1
        self._receive += received_ns - began_ns
        self._decode += decoded_ns - received_ns
        if hit_ns:  # by the cache
            self._queue_wait[0] += 1
            self._encode += end_ns - decoded_ns
            self._hits += 1
            self._hit_ns += hit_ns
            return
        if run is None:  # a service that does not say
            run = Run(decoded_ns, end_ns)
        queue, joining = run.claimed_ns - decoded_ns, run.began_ns - run.claimed_ns
        ran, splitting = run.ran_ns - run.began_ns, run.ended_ns - run.ran_ns
        self._queue_wait[bisect_left(_QUEUE_BOUNDS_NS, queue)] += 1
        self._queue += queue
        self._input += joining
        self._infer += ran
        self._output += splitting
        self._encode += end_ns - run.ended_ns
        if miss_ns:
            self._misses += 1
            self._miss_ns += miss_ns
        if run.is_counted:
            return
        run.is_counted = True
        rows = max(rows or 1, run.rows)
        while 0 < run.most < rows:  # it was computed in parts
            self._add_run(run.most, 0, 0, 0)
            rows -= run.most
        self._add_run(rows, joining, ran, splitting)

    def _add_run(self, rows: int, joining: int, ran: int, splitting: int) -> None:
        self._rows += rows
        self._executions += 1
        batch = self._batches.get(rows)
        if batch is None:
            batch = self._batches[rows] = [0, 0, 0, 0]
        batch[0] += 1
        batch[1] += joining
        batch[2] += ran
        batch[3] += splitting

    def _add_failed(self, reason: str, inside_ns: int) -> None:
        if reason not in self._reasons:  # a fault of the client
            return
        self._reasons[reason] += 1
        if reason in FAILED or reason == "timeout":
            self._fail += 1
            self._fail_ns += inside_ns


INVALID = "invalid"


def reason_of(exc: BaseException) -> str:
    """Why a request failed: one of FAILED or REJECTED, or INVALID."""
    if isinstance(exc, errors.QueueFullError):
        return "queue_full"
    if isinstance(exc, errors.RequestTimeoutError):
        return "timeout" if exc.was_waiting else "deadline"
    if isinstance(exc, errors.WorkerDiedError):
        return "crash"
    if isinstance(exc, errors.ResourceError | MemoryError | NoRoomError):
        return "memory"
    kind = kind_of(exc)
    if isinstance(exc, RequestError) and kind is Kind.DEADLINE:
        return "timeout"  # before it was queued
    return {
        Kind.CANCELLED: "cancelled",
        Kind.UNAVAILABLE: "not_ready",
        Kind.DEADLINE: "deadline",
        Kind.FAILED: "error",
    }.get(kind, INVALID)
