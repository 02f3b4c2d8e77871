"""ModelStreamInfer: many requests on one call, answered in their order.

Two threads per stream. The reader takes requests and queues them to the models, at most _AHEAD
before their answers; the call's own thread waits for each answer in turn and sends it. A request
that fails is answered so, and the stream goes on. A client that is gone cancels all it asked for.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from functools import partial
from typing import Any

import grpc
import numpy as np

from mindspore_lite.core.deadline import WATCHDOG
from mindspore_lite.errors import CancelledError, ClosedError
from mindspore_lite.server.core import Core
from mindspore_lite.server.errors import answer_to
from mindspore_lite.server.grpc.calls import deadline_s
from mindspore_lite.server.grpc.infer import prepared, taken_apart
from mindspore_lite.server.grpc.messages import write_stream_answer, write_stream_error
from mindspore_lite.server.grpc.watch import Watch
from mindspore_lite.server.meter import RequestTimes
from mindspore_lite.server.request import Job, moved

_AHEAD = 16  # requests of a stream that run or wait at the same time; guess
_EMPTY_FINAL = "triton_enable_empty_final_response"  # changes nothing here: answers are final


class _Pending:
    """A request of a stream until its answer is sent."""

    def __init__(self) -> None:
        self.times = RequestTimes()
        self.status = 200
        self.size = 0  # bytes in flight that are counted for it
        self.id = ""
        self.job: Job | None = None
        self.ended: Future[list[np.ndarray]] = Future()
        self._cancel: Callable[[], bool] | None = None

    def run(self, core: Core) -> None:
        """Queue it to its model."""
        assert self.job is not None
        self.times.decoded(self.job.call)
        try:
            self._cancel = self.job.model.service.submit_or_run(
                self.job.call, partial(self._ended, core)
            )
        except ClosedError as exc:
            self._move(core, exc)

    def cancel(self) -> None:
        """Nobody wants it any more."""
        if self._cancel is not None and self._cancel():
            self._done(CancelledError("the request was cancelled"))

    def answer(self) -> bytes:
        """What to send; waits for it."""
        try:
            outputs = self.ended.result()
            assert self.job is not None
            return write_stream_answer(self.job.response(outputs))
        except Exception as exc:  # noqa: BLE001 - the client is told
            self.times.failed(exc)
            told = answer_to(exc)
            self.status = told.kind.status
            answer = write_stream_error(told, self.id)
            exc.__traceback__ = None  # its frames hold the message, and would form a cycle
            return answer

    def fail(self, exc: BaseException) -> None:
        """It cannot be run."""
        self._done(exc)

    def _ended(self, core: Core, found: list[np.ndarray] | BaseException) -> None:
        if not isinstance(found, ClosedError):
            self._done(found)
            return
        try:
            self._move(core, found)
        except Exception as exc:  # noqa: BLE001 - the client is told
            self._done(exc)

    def _move(self, core: Core, closed: ClosedError) -> None:
        """Run it on the service that took the place of its own."""
        assert self.job is not None
        self.job = moved(core, self.job, closed, self.times)
        self.run(core)

    def _done(self, found: list[np.ndarray] | BaseException) -> None:
        with suppress(InvalidStateError):  # a cancel that came at the same time
            if isinstance(found, BaseException):
                self.ended.set_exception(found)
            else:
                self.ended.set_result(found)


class Stream:
    """One call of ModelStreamInfer.

    `_lock` guards `_pending`, `_is_over`, `_is_ending` and the count of each request. The queue
    ends with None, which the reader puts in whatever happens.
    """

    def __init__(self, core: Core, requests: Any, context: Any, watch: Watch) -> None:
        self._core = core
        self._watch = watch
        self._requests = requests
        self._context = context
        self._due_s = deadline_s(context)
        self._room = threading.Semaphore(_AHEAD)
        self._queue: queue.SimpleQueue[_Pending | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._pending: set[_Pending] = set()
        self._is_over = self._is_ending = False

    def answers(self) -> Iterator[bytes]:
        """The answers to send."""
        reader = threading.Thread(target=self._read, name="mslite-grpc-reader", daemon=True)
        reader.start()
        try:
            if not self._context.add_callback(self._gone):
                self._gone()
            while (pending := self._queue.get()) is not None:
                answer = pending.answer()
                with self._lock:  # _gone may count it at the same time
                    self._core.observer.answered(pending.times)
                limit_s = time.monotonic() + self._core.limits.send_s
                entry = WATCHDOG.watch(limit_s, self._context.cancel)
                try:
                    yield answer  # comes back when it is on its way
                finally:
                    WATCHDOG.cancel(entry)
                self._watch.sent(self._context, pending.times, pending.status, pending.size, answer)
                if self._answered(pending):
                    return
        finally:
            self._gone()

    def end_when_idle(self) -> None:
        """The server is ending: answer what was asked, take nothing more."""
        with self._lock:
            self._is_ending = True
            is_idle = not self._pending
        if is_idle:
            self._context.cancel()

    def _read(self) -> None:
        try:
            while True:
                self._room.acquire()
                message = next(self._requests, None)
                if message is None or not self._take(bytes(message)):
                    return
        except grpc.RpcError:
            return  # the client is gone
        finally:
            self._queue.put(None)

    def _take(self, message: bytes) -> bool:
        """Queue a request to its model; whether the stream goes on."""
        pending = _Pending()
        with self._lock:
            if self._is_over:
                return False
            self._pending.add(pending)
        self._queue.put(pending)
        try:
            self._count(pending, len(message))
            parts, raws = taken_apart(self._core, message)
            pending.id = parts.id if len(parts.id) <= self._core.limits.id_bytes else ""
            if _EMPTY_FINAL in parts.parameters:
                del parts.parameters[_EMPTY_FINAL]
            pending.job = prepared(self._core, parts, raws, self._due_s, pending.times)
            pending.run(self._core)
        except Exception as exc:  # noqa: BLE001 - the client is told
            pending.fail(exc)
        if self._is_over:  # it ended meanwhile, and did not know how to cancel this one
            pending.cancel()
        return True

    def _count(self, pending: _Pending, size: int) -> None:
        """Count the bytes of a request until it is answered, or the call has ended."""
        self._core.flight.take(size)
        with self._lock:
            if pending in self._pending:
                pending.size = size
                return
        self._core.flight.give(size)

    def _answered(self, pending: _Pending) -> bool:
        """A request is done; whether the stream shall end with it."""
        self._room.release()
        with self._lock:
            if pending not in self._pending:  # _gone has settled it
                return True
            self._pending.remove(pending)
            self._is_over = self._is_ending and not self._pending
        self._core.flight.give(pending.size)
        return self._is_over

    def _gone(self) -> None:
        """The call has ended: so do its requests. Harmless when repeated."""
        with self._lock:
            self._is_over = True
            left, self._pending = self._pending, set()
            for pending in left:
                self._core.observer.answered(pending.times, "cancelled")
        for pending in left:
            pending.cancel()
            self._core.flight.give(pending.size)
        self._room.release()  # for a reader that waits
