"""RemoteService: a model that a worker process runs for this program.

Answers are waited for by one thread, however many there are, and fetched by a few others, so that
one that takes long keeps no other from its caller. A second thread looks whether a worker that has
requests of ours still answers.
"""

from __future__ import annotations

import logging
import os
import select
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mindspore_lite.core import threads
from mindspore_lite.core.json_text import read_json
from mindspore_lite.core.tensor_info import for_target
from mindspore_lite.errors import ClosedError, LiteError, ResourceError, WorkerDiedError
from mindspore_lite.remote.devices.heartbeat import Heartbeat
from mindspore_lite.remote.devices.threads import Threads
from mindspore_lite.remote.wire.client import LATE_S, Model, Pending, WireSession, owned
from mindspore_lite.serving import feeds, update
from mindspore_lite.serving.call import Call
from mindspore_lite.serving.service import Ended, Inputs
from mindspore_lite.tensor import Tensor

_LOG = logging.getLogger(__name__)
_LOOK_S = 10.0  # between two looks whether a worker that has requests of ours still answers
SILENT_S = 60.0  # without an answer or a sign of work, after which a worker counts as dead
_IDLE_S = 10.0  # after which a thread without answers to wait for ends
_CANCEL_S = 5.0  # for a worker to take a cancellation


class RemoteService:
    """A model of a worker; see serving/service.py.

    Args:
        model: What was built there.
        connection: Over which it was.
        owner: Lives for as long as the service does.
        target: What the model was built for, where that is known.
    """

    def __init__(
        self, model: Model, connection: Connection, owner: object = None, target: str = ""
    ) -> None:
        self.model = model
        self.owner = owner
        self.inputs, self.outputs = for_target(target, model.inputs), model.outputs
        self._connection = connection

    def arrays(self, inputs: Inputs) -> list[np.ndarray]:
        """Inputs as they are sent; of any sizes that the model may have."""
        return feeds.arrays(self.inputs, inputs, any_size=True)

    def run(self, call: Call) -> list[np.ndarray]:
        """Send a call and wait for its answer."""
        pending = self.model.start(call)
        if call.known is not None:
            call.known(partial(self._call_off, pending.request))
        with self._connection.watch:
            return _fetched(pending)

    def submit(self, call: Call, ended: Ended) -> Callable[[], bool]:
        """Send a call; its answer is waited for on another thread."""
        pending = self.model.start(call)
        turn = threading.Lock()  # whoever gets it ends the call: the answer, or its cancellation

        def came() -> None:
            found: list[np.ndarray] | BaseException
            try:
                found = _fetched(pending)
            except BaseException as exc:  # noqa: BLE001 - whoever waits must learn of it
                found = exc
            if turn.acquire(blocking=False):
                ended(found)
            del found  # its frames hold this one

        def cancel() -> bool:
            if not turn.acquire(blocking=False):
                return False
            with suppress(LiteError):  # the caller need not wait; without a thread, it just runs on
                self._connection.threads.start(partial(self._call_off, pending.request))
            return True

        try:
            self._connection.answers.await_one(pending, came)
        except LiteError:
            pending.abandon()
            raise
        return cancel

    def _call_off(self, request: int) -> None:
        try:
            self.model.session.cancel(request, 0.0, _CANCEL_S)
        except LiteError as exc:  # the worker is gone, and the request with it
            _LOG.info("a request could not be called off: %s", exc)

    def update_weights(self, groups: list[list[Tensor]]) -> None:
        """Change weights, for all programs that share the model."""
        self.model.update_weights([[(t.name, update.data(t)) for t in group] for group in groups])
        for note in self.model.update_notes():
            warnings.warn(note, UserWarning, stacklevel=3)

    def probe(self, timeout_s: float) -> bool:
        """Whether the worker answers."""
        try:
            self.model.session.info("pid", timeout_s=timeout_s)
        except LiteError:
            return False
        return True

    def statistics(self) -> dict[str, Any]:
        """What was done so far, for all programs that share the model, as the worker counts."""
        found: dict[str, Any] = read_json(self.model.statistics())
        return found

    def close(self, drain_s: float | None) -> None:
        """Give the model up; a worker that is gone has done so already."""
        with suppress(WorkerDiedError, ClosedError):
            self.model.close(drain_s)


def _fetched(pending: Pending) -> list[np.ndarray]:
    """Wait for an answer; its arrays own their memory."""
    arrays = pending.outputs()
    try:
        return [owned(array) for array in arrays]
    finally:
        pending.release()


class Connection:
    """A session with a worker, and the threads that wait for its answers."""

    def __init__(self, session: WireSession) -> None:
        self.session = session
        self.threads = Threads()
        self.watch = Watch(session)
        self.answers = Answers(self.threads, self.watch)

    def close(self) -> None:
        """Leave; requests under way end with an error."""
        self.watch.close()
        self.session.close()


class _Awaited(NamedTuple):
    pending: Pending
    came: Callable[[], None]

    def overdue(self, now_s: float) -> bool:
        due_s = self.pending.due_s
        return due_s is not None and due_s + LATE_S <= now_s


class Answers:
    """Waits for any number of answers on one thread, which ends when it was idle for a while.

    `_lock` guards what is new and whether the thread runs; what it waits for is the thread's own.
    """

    def __init__(self, fetching: Threads, watch: Watch) -> None:
        self._threads = fetching
        self._watch = watch
        self._lock = threading.Lock()
        self._new: list[_Awaited] = []
        self._running = False
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        weakref.finalize(self, os.close, self._bell)

    def await_one(self, pending: Pending, came: Callable[[], None]) -> None:
        """Have `came`, which must not raise, called when the answer is there, or overdue.

        Raises:
            ResourceError: No thread can be started; it is not called then.
        """
        one = _Awaited(pending, came)
        with self._lock:
            self._new.append(one)
            begins, self._running = not self._running, True
        if begins:
            try:
                threads.start(self._wait)
            except RuntimeError as exc:
                with self._lock:
                    self._running = False
                    self._new.remove(one)
                raise ResourceError(f"no thread can be started to wait for answers: {exc}") from exc
        else:
            os.eventfd_write(self._bell, 1)
        self._watch.__enter__()

    def _wait(self) -> None:
        poll = select.poll()
        poll.register(self._bell, select.POLLIN)
        awaited: dict[int, _Awaited] = {}
        while True:
            with self._lock:
                new, self._new = self._new, []
            for one in new:
                awaited[one.pending.fileno()] = one
                poll.register(one.pending.fileno(), select.POLLIN)
            ready = {number for number, _ in poll.poll(_wait_ms(awaited))}
            if self._bell in ready:
                os.eventfd_read(self._bell)
            elif not awaited:
                with self._lock:
                    if not self._new:
                        self._running = False
                        return
            now_s = time.monotonic()
            for number, one in list(awaited.items()):
                if number in ready or one.overdue(now_s):
                    poll.unregister(number)
                    del awaited[number]
                    self._fetch(one.came)
            del new

    def _fetch(self, came: Callable[[], None]) -> None:
        self._watch.__exit__()
        try:
            self._threads.start(came)
        except ResourceError:
            came()  # here: others wait meanwhile, but none for ever


def _wait_ms(awaited: Mapping[int, _Awaited]) -> float | None:
    """How long to wait: until the first deadline, without end, or to be idle."""
    if not awaited:
        return _IDLE_S * 1000
    dues = [one.pending.due_s for one in awaited.values() if one.pending.due_s is not None]
    return max(0.0, min(dues) + LATE_S - time.monotonic()) * 1000 + 1 if dues else None


class Watch:
    """Notices that a worker with requests of ours has stopped answering.

    A thread looks while requests are under way, and ends when there are none for a while.
    """

    def __init__(self, session: WireSession) -> None:
        self.session, self.pid = session, session.pid
        self._lock = threading.Lock()  # guards all below
        self._waiting = 0
        self._closed = False
        self._running = False
        self._wake = threading.Event()

    def __enter__(self) -> None:
        with self._lock:
            self._waiting += 1
            begins = not self._running and not self._closed
            self._running = self._running or begins
        if begins:
            try:
                threads.start(self._look)
            except RuntimeError:  # this request goes on unwatched; the next one tries again
                with self._lock:
                    self._running = False

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._waiting -= 1

    def close(self) -> None:
        """Look no more."""
        with self._lock:
            self._closed = True
        self._wake.set()

    def _look(self) -> None:
        heartbeat = Heartbeat(self)
        while not self._wake.wait(_LOOK_S):
            with self._lock:
                if not self._waiting:
                    self._running = False
                    return
            try:
                silent_s = heartbeat.ask_for_work()
            except LiteError as exc:  # there is no lane to ask over: that says nothing about it
                _LOG.info("the worker cannot be asked: %s", exc)
                continue
            if silent_s >= SILENT_S:
                _LOG.error("the worker did not answer for %.1f s, nor did it compute", silent_s)
                self.session.close()
                return
