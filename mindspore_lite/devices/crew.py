"""All devices of a runner: parts of requests go in, each is computed by the worker of a device.

Who owns what. Posts keep the worker processes alive, each on its own thread. A request is computed
on its caller's thread: it sends the parts, waits for whichever answer comes first, and sends the
next, so no thread is woken that does not compute. What all share (states, loads, counts) is read
and changed under `_changed`, which is never held while something is sent or awaited.
"""

from __future__ import annotations

import select
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from mindspore_lite.devices.post import Place, Post, State
from mindspore_lite.devices.process import WorkerProcess
from mindspore_lite.errors import (
    CancelledError,
    ClosedError,
    LiteError,
    RequestTimeoutError,
    WorkerDiedError,
)
from mindspore_lite.wire.client import LATE_S, Call, Model, owned

T = TypeVar("T")
Arrays = Sequence[np.ndarray]
Result = list[np.ndarray] | Exception

_MOST_LANES = 8  # that one request may use at once on a device; guess
_REAP_S = 5.0  # for a process whose connection broke to be seen dead


class _Flight(NamedTuple):
    """A part under way."""

    part: int
    post: Post
    model: Model
    process: WorkerProcess
    call: Call


class Request:
    """One caller's parts. cancel() may be called from another thread."""

    def __init__(self, parts: Sequence[Arrays], timeout_s: float | None, retries: int) -> None:
        self.parts = parts
        self.timeout_s = timeout_s
        self.due_s = None if timeout_s is None else time.monotonic() + timeout_s
        self.waiting = deque(range(len(parts)))
        self.flying: dict[int, _Flight] = {}
        self.results: list[Result | None] = [None] * len(parts)
        self.landed: list[Call] = []  # whose outputs lie in shared memory still
        self.avoid: dict[int, set[int]] = {}  # posts that lost a part
        self.retries = retries  # of each part
        self.cancelled = False
        self._lock = threading.Lock()

    def left_s(self) -> float | None:
        """Until the deadline; None for ever."""
        return None if self.due_s is None else max(0.0, self.due_s - time.monotonic())

    def took_off(self, flight: _Flight) -> None:
        """A part was sent."""
        with self._lock:
            self.flying[flight.call.fileno()] = flight
            if self.cancelled:
                flight.call.interrupt()

    def landing(self, descriptor: int) -> _Flight:
        """The answer to a part is there."""
        with self._lock:
            return self.flying.pop(descriptor)

    def cancel(self) -> None:
        """End it: who computes it gets CancelledError."""
        with self._lock:
            self.cancelled = True
            for flight in self.flying.values():
                flight.call.interrupt()


class Crew:
    """The devices, and who computes what."""

    def __init__(self, places: Sequence[Place], *, retries: int = 0) -> None:
        """Start all workers and build the model in each, all at once.

        Raises:
            LiteError: The first thing that went wrong with one of them.
        """
        self._changed = threading.Condition()
        self._retries = retries
        self._loads: Counter[int] = Counter()
        self._inside = 0
        self._closed = False
        self.counts: Counter[str] = Counter()
        self.part_counts: dict[int, Counter[str]] = {i: Counter() for i in range(len(places))}
        self.posts = [Post(i, place, self._changed) for i, place in enumerate(places)]
        try:
            self._wait_for_all()
        except BaseException:
            self.close(0.0)
            raise

    def _wait_for_all(self) -> None:
        with self._changed:
            while True:
                errors = [p.error for p in self.posts if p.error is not None]
                if errors:
                    raise errors[0]
                if all(p.state is State.READY for p in self.posts):
                    return
                self._changed.wait()

    @property
    def model(self) -> Model:
        """A model that is there, to ask what it is like."""
        with self._changed:
            found = next((p.model for p in self.posts if p.model is not None), None)
        if found is None:
            raise self._nobody()
        return found

    def usable(self) -> int:
        """How many devices there are to compute on, now or soon."""
        with self._changed:
            ready = sum(p.state is State.READY for p in self.posts)
            return ready or sum(p.state in (State.DOWN, State.STARTING) for p in self.posts)

    def request(self, parts: Sequence[Arrays], timeout_s: float | None) -> Request:
        """A request that was not begun yet."""
        return Request(parts, timeout_s, self._retries)

    def run(self, request: Request, use: Callable[[list[list[np.ndarray]]], T]) -> T:
        """Compute all parts, and return what `use` makes of their outputs.

        The outputs are valid only while `use` runs.

        Raises:
            Exception: What the first part that failed raised; the others are called off then.
        """
        return self._entered(request, use, keeps_going=False)

    def each(self, request: Request) -> list[Result]:
        """The outputs of all parts in memory of their own, or of a part its error."""
        return self._entered(request, lambda results: list(results), keeps_going=True)

    def _entered(self, request: Request, use: Callable[[list[Any]], T], *, keeps_going: bool) -> T:
        with self._changed:
            if self._closed:
                raise ClosedError("the runner is closed; build it again to use it")
            self.counts["sent"] += 1
            self._inside += 1
        end = "failed"
        try:
            self._fly(request, keeps_going)
            result = use(request.results)
            end = "done"
            return result
        except RequestTimeoutError:
            end = "timed_out"
            raise
        except CancelledError:
            end = "cancelled"
            raise
        finally:
            self._tidy(request)
            with self._changed:
                self.counts[end] += 1
                self._inside -= 1
                if self._closed:
                    self._changed.notify_all()

    def cancel(self, request: Request) -> None:
        """End a request from another thread."""
        request.cancel()
        with self._changed:
            self._changed.notify_all()

    def close(self, timeout_s: float | None) -> None:
        """Take no more requests, wait for those under way, end the workers."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._inside, timeout_s)
        for post in self.posts:
            post.stop()
        for post in self.posts:
            post.join(2 * _REAP_S)

    def abandon(self) -> None:
        """Close without waiting: the owner is gone."""
        self._closed = True
        for post in self.posts:
            post.stop()

    # --- flying ---

    def _fly(self, request: Request, keeps_going: bool) -> None:
        copies = len(request.parts) > len(self.posts)  # lanes are used again
        while request.waiting or request.flying:
            while request.waiting and self._send_one(request, keeps_going):
                pass
            if not request.flying:
                continue
            # who waits for one answer only need not ask which one is there
            is_last = len(request.flying) == 1 and not request.waiting
            for descriptor in list(request.flying) if is_last else self._ready(request):
                flight = request.flying[descriptor]
                try:
                    outputs = flight.call.outputs()
                except Exception as exc:  # noqa: BLE001 - it is this part's result
                    self._landed(request, descriptor, "failed")
                    self._failed(request, flight, exc, keeps_going)
                else:
                    self._landed(request, descriptor, "done")
                    if copies or keeps_going:
                        request.results[flight.part] = [owned(array) for array in outputs]
                        flight.call.release()
                    else:
                        request.results[flight.part] = outputs
                        request.landed.append(flight.call)

    def _send_one(self, request: Request, keeps_going: bool) -> bool:
        """Send the next part, if a device has room for it."""
        part = request.waiting[0]
        found = self._free_post(request, part)
        if found is None:
            return False
        post, model, process = found
        request.waiting.popleft()
        try:
            call = model.start(request.parts[part], request.left_s())
        except WorkerDiedError:  # before it got the part, so nothing was lost
            self._freed(post)
            process.buried(_REAP_S)
            with self._changed:
                self._changed.wait_for(lambda: post.model is not model, request.left_s())
            request.waiting.appendleft(part)
            return True
        except LiteError as exc:
            self._freed(post, "failed")
            self._settle(request, part, post, exc, keeps_going)
            return True
        request.took_off(_Flight(part, post, model, process, call))
        return True

    def _free_post(self, request: Request, part: int) -> tuple[Post, Model, WorkerProcess] | None:
        """The device for a part: the least busy one; None when this request fills them all.

        Waits while every device is being started again.
        """
        flying = [flight.post.index for flight in request.flying.values()]
        avoid = request.avoid.get(part, ())
        with self._changed:
            while True:
                if request.cancelled:
                    raise CancelledError("the request was cancelled")
                ready = [
                    post
                    for post in self.posts
                    if post.state is State.READY and post.index not in avoid
                ]
                room = [post for post in ready if flying.count(post.index) < _room(post)]
                if room:
                    post = min(room, key=lambda post: self._preference(post, part))
                    assert post.model is not None and post.process is not None
                    self._loads[post.index] += 1
                    return post, post.model, post.process
                if ready or request.flying:
                    return None
                if not any(
                    post.state in (State.STARTING, State.DOWN) and post.index not in avoid
                    for post in self.posts
                ):
                    raise self._nobody()
                if not self._changed.wait(request.left_s()):
                    raise RequestTimeoutError(
                        f"no answer within timeout_s={request.timeout_s:g}: all devices are being "
                        "started again"
                    )

    def _preference(self, post: Post, part: int) -> tuple[int, int]:
        """The least busy device; part i goes to device i where all are alike."""
        return self._loads[post.index], (post.index - part) % len(self.posts)

    def _ready(self, request: Request) -> list[int]:
        """Descriptors of answers that are there; waits for one."""
        poll = select.poll()
        for descriptor in list(request.flying):
            poll.register(descriptor, select.POLLIN)
        left_s = request.left_s()
        found = poll.poll(None if left_s is None else (left_s + LATE_S) * 1000)
        if request.cancelled:
            raise CancelledError("the request was cancelled")
        if not found:
            silent = sorted(flight.post.place.device for flight in request.flying.values())
            raise RequestTimeoutError(
                f"no answer within timeout_s={request.timeout_s:g}: devices {silent} are silent"
            )
        return [descriptor for descriptor, _ in found]

    def _failed(self, request: Request, flight: _Flight, exc: Exception, keeps_going: bool) -> None:
        if request.cancelled:
            raise CancelledError("the request was cancelled") from exc
        reason = self._reason(exc, flight.process)
        if isinstance(exc, RequestTimeoutError):
            if flight.call.answered:
                flight.post.doubt(flight.model)
                doing = "was still computing, and was told to stop"
            else:
                flight.post.suspect(flight.model, flight.call.request)
                doing = "is silent"
            if request.timeout_s is not None:
                # the worker knows only what was left of the time when it got the part
                reason = RequestTimeoutError(
                    f"no answer within timeout_s={request.timeout_s:g}: device "
                    f"{flight.post.place.device} {doing}"
                )
        self._settle(request, flight.part, flight.post, reason, keeps_going)

    def _settle(
        self, request: Request, part: int, post: Post, error: Exception, keeps_going: bool
    ) -> None:
        """A part came to nothing: try it elsewhere, keep the error, or raise it."""
        lost = request.avoid.setdefault(part, set())
        if isinstance(error, WorkerDiedError) and len(lost) < request.retries:
            lost.add(post.index)
            if len(lost) < len(self.posts):
                with self._changed:
                    self.counts["retried"] += 1
                request.waiting.appendleft(part)
                return
        if not keeps_going:
            raise error
        request.results[part] = error

    def _reason(self, exc: Exception, process: WorkerProcess) -> Exception:
        """What the caller shall see: of a dead worker, how it died."""
        if not isinstance(exc, WorkerDiedError):
            return exc
        if self._closed:
            return ClosedError("the runner was closed, and the request did not end in time")
        return process.buried(_REAP_S)

    def _tidy(self, request: Request) -> None:
        """Give lanes back, and call off what is still under way: nobody wants it any more."""
        for call in request.landed:
            call.release()
        for descriptor in list(request.flying):
            flight = request.flying[descriptor]
            self._landed(request, descriptor, "failed")
            flight.call.abandon()
            flight.post.suspect(flight.model, flight.call.request)

    # --- books ---

    def _landed(self, request: Request, descriptor: int, how: str) -> None:
        """A part is over."""
        self._freed(request.landing(descriptor).post, how)

    def _freed(self, post: Post, how: str = "") -> None:
        with self._changed:
            self._loads[post.index] -= 1
            if how:
                self.part_counts[post.index][how] += 1

    def _nobody(self) -> LiteError:
        if self._closed:
            return ClosedError("the runner is closed; build it again to use it")
        reasons = [f"device {p.place.device}: {p.error}" for p in self.posts if p.error is not None]
        return WorkerDiedError(f"no device is left: {'; '.join(reasons) or 'all are closed'}")


def _room(post: Post) -> int:
    return max(1, min(_MOST_LANES, len(post.place.cores)))
