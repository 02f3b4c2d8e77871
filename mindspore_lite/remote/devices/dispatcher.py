"""Sends the parts of requests to the devices of a runner, and collects their outputs.

Who owns what. Supervisors keep the worker processes alive, each on its own thread. A request runs
on its caller's thread: it sends the parts, waits for whichever answer comes first, and sends the
next, so no thread is woken that does not compute. What all share (states, loads, counts) is read
and changed under `_changed`, which is never held while something is sent or received. The one lock
that is taken before it is WeightRollout's `_updating`. A forked child has none of it: it gets an
error.

remote/devices/weight_rollout.py handles weights: a request says when it begins and ends, and its
parts go to the models that have the weights it began with.
"""

from __future__ import annotations

import select
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TypeVar, cast

import numpy as np

from mindspore_lite.core.fork import after_fork_in_child
from mindspore_lite.errors import (
    CancelledError,
    ClosedError,
    EngineError,
    LiteError,
    RequestTimeoutError,
    ResourceError,
    WorkerDiedError,
)
from mindspore_lite.remote.devices import report
from mindspore_lite.remote.devices.process import WorkerProcess
from mindspore_lite.remote.devices.report import MultiDeviceStatistics
from mindspore_lite.remote.devices.request import Flight, Result, SplitRequest
from mindspore_lite.remote.devices.supervisor import (
    ANSWER_S,
    REAP_S,
    DevicePlace,
    Life,
    Start,
    State,
    Supervisor,
)
from mindspore_lite.remote.devices.weight_rollout import LEAVING, Look, WeightRollout
from mindspore_lite.remote.devices.weights import Group
from mindspore_lite.remote.wire.client import LATE_S, owned
from mindspore_lite.serving.call import Arrays, Call

T = TypeVar("T")

_MOST_LANES = 8  # that one request may use at once on a device; guess
_END_S = 20.0  # for a supervisor to end, which has its own limits: this one is only a safety net


class Dispatcher:
    """The devices, and which of them computes what."""

    def __init__(
        self,
        places: Sequence[DevicePlace],
        *,
        retries: int = 0,
        stays: bool = False,
        start: Start = WorkerProcess,
    ) -> None:
        """Start all workers and build the model in each, all at once.

        A part that was lost with its worker is tried again so often: on another device, or, if it
        `stays`, on any, once that is started again.

        Raises:
            Exception: The first thing that went wrong with one of them.
        """
        self._changed = threading.Condition()
        self._retries = retries
        self._stays = stays
        self._counts: Counter[str] = Counter()
        self._inside = 0
        self._closed = False  # it takes no more requests
        self._ending = False  # it computes no more
        self._forked = False
        self.supervisors = [
            Supervisor(i, place, self._changed, start) for i, place in enumerate(places)
        ]
        self.weights = WeightRollout(self.supervisors, self._changed, self._lives)
        try:
            self._start_all()
            self.lives = self._wait_for_all()
        except BaseException:
            self.close(0.0)
            raise
        _DISPATCHERS.add(self)

    def _start_all(self) -> None:
        try:
            for supervisor in self.supervisors:
                supervisor.start()
        except RuntimeError as exc:
            raise ResourceError(f"no thread can be started to watch a device: {exc}") from exc

    def _wait_for_all(self) -> list[Life]:
        with self._changed:
            while True:
                for supervisor in self.supervisors:
                    if supervisor.error is not None:
                        raise supervisor.error
                lives = [
                    supervisor.life
                    for supervisor in self.supervisors
                    if supervisor.life is not None
                ]
                if len(lives) == len(self.supervisors):
                    return lives
                self._changed.wait()

    def usable(self) -> int:
        """How many devices there are to compute on, now or soon."""
        with self._changed:
            ready = sum(supervisor.state is State.READY for supervisor in self.supervisors)
            return ready or sum(_is_coming(supervisor) for supervisor in self.supervisors)

    @property
    def inside(self) -> int:
        """How many requests were taken, and have not ended."""
        return self._inside

    def pids(self) -> list[int]:
        """Of the processes that are there."""
        with self._changed:
            lives = [supervisor.life for supervisor in self.supervisors]
        return [life.process.pid for life in lives if life is not None and life.process.alive]

    @property
    def is_up(self) -> bool:
        """Whether every process is there, as far as is known without asking it."""
        with self._changed:
            lives = [supervisor.life for supervisor in self.supervisors]
        return all(life is not None and life.process.alive for life in lives)

    def request(
        self, parts: Sequence[Arrays], call: Call, *, keeps_going: bool = False
    ) -> SplitRequest:
        """A request that was not taken yet."""
        return SplitRequest(parts, call, retries=self._retries, keeps_going=keeps_going)

    def take(self) -> None:
        """Promise that a request will be computed; run() or each() must follow."""
        self._check_forked()
        with self._changed:
            if self._closed:
                raise _closed()
            self._counts["sent"] += 1
            self._inside += 1

    @contextmanager
    def any_life(self, request: SplitRequest) -> Iterator[Life]:
        """A device to ask something before a request is taken; waits while all are started again.

        Raises:
            LiteError: There is none.
        """
        self._check_forked()
        with self._changed:
            # one that died just now is soon seen to have
            while not (alive := [life for _, life in self._lives() if life.process.alive]):
                self._wait(request)
            life = alive[0]
            life.weights.users += 1
        try:
            yield life
        finally:
            with self._changed:
                self.weights.let_go(life.weights)

    def update(self, groups: Sequence[Group], look: Look = lambda life: None) -> None:
        """Change weights on all devices, or on none; no groups restore those of the file.

        Requests that begin afterwards use the new ones. Nobody may change the arrays any more.

        Args:
            groups: What is applied, one after the other.
            look: Called with a device that has the new weights, before any request has them; what
                it raises because of that device is ignored.

        Raises:
            LiteError: A device refuses them, or there is none.
        """
        self._check_forked()
        self.weights.update(groups, look)

    def run(self, request: SplitRequest, use: Callable[[list[list[np.ndarray]]], T]) -> T:
        """Compute all parts of a taken request, and return what `use` makes of their outputs.

        The outputs are valid only while `use` runs.

        Raises:
            Exception: What the first part that failed raised; the others are called off then.
        """
        end = "failed"
        try:
            try:
                self._fly(request)
                result = use(cast(list[list[np.ndarray]], request.results))
            finally:
                request.finish()
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
            self.ended(end, request)

    def each(self, request: SplitRequest) -> list[Result]:
        """The outputs of all parts of a taken request in their own memory, or of a part its error.

        What ends the whole request, as its deadline does, is the error of all that have no result.
        """
        end = "failed"
        try:
            try:
                self._fly(request)
            except LiteError as exc:
                error = exc.with_traceback(None)
                request.results = [error if found is None else found for found in request.results]
            results = [found for found in request.results if found is not None]
            errors = [found for found in results if isinstance(found, Exception)]
            if any(isinstance(error, RequestTimeoutError) for error in errors):
                end = "timed_out"
            elif not errors:
                end = "done"
            return results
        finally:
            self._tidy(request)
            self.ended(end, request)

    def ended(self, how: str, request: SplitRequest | None = None) -> None:
        """A request that was taken came to its end; None: before any part of it was sent."""
        with self._changed:
            self._counts[how] += 1
            self._inside -= 1
            if request is not None and request.weights is not None:
                self.weights.let_go(request.weights)
                request.weights = None  # a Future refers to the request for as long as it is kept
            if self._closed:
                self._changed.notify_all()

    def cancel(self, request: SplitRequest) -> bool:
        """End a request from another thread; whether it was this call that did."""
        if self._forked or not request.cancel():
            return False
        with self._changed:
            self._changed.notify_all()
        return True

    def is_ready(self, timeout_s: float) -> bool:
        """Whether every process answers."""
        with self._changed:
            lives = [supervisor.life for supervisor in self.supervisors]
        if self._forked or self._closed:
            return False
        for life in lives:
            if life is None:
                return False
            try:
                life.model.session.info("pid", timeout_s=timeout_s)
            except LiteError:
                return False
        with self._changed:
            return all(map(Supervisor.has, self.supervisors, lives))

    def statistics(self) -> MultiDeviceStatistics:
        """What was done so far, and how the devices are; of each that answers also its runner's."""
        with self._changed:
            lives = [supervisor.life for supervisor in self.supervisors]
        due_s = monotonic() + ANSWER_S  # for all together: several may hang
        runners = [
            {} if life is None else report.of_runner(life, max(LATE_S, due_s - monotonic()))
            for life in lives
        ]
        with self._changed:
            return report.taken(self._counts, self.supervisors, runners)

    def close(self, timeout_s: float | None) -> None:
        """Take no more requests, wait for those under way, end the workers."""
        if self._forked:
            return
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._inside, timeout_s)
            self._ending = True
        for supervisor in self.supervisors:
            supervisor.stop()
        for supervisor in self.supervisors:
            supervisor.join(_END_S)

    def abandon(self) -> None:
        """Close without waiting: the owner is gone. Takes no lock: a garbage collection may call
        it anywhere."""
        if not self._forked:
            self._closed = self._ending = True
            for supervisor in self.supervisors:
                supervisor.stop()

    def _lives(self) -> list[tuple[Supervisor, Life]]:
        """The devices that are ready, with the lock held; none, if some will be soon."""
        if self._closed:
            raise _closed()
        lives = [
            (supervisor, supervisor.life)
            for supervisor in self.supervisors
            if supervisor.life is not None
        ]
        if not lives:
            self._check_hope(self.supervisors)
        return lives

    # --- flying ---

    def _fly(self, request: SplitRequest) -> None:
        while request.waiting or request.flying:
            while request.waiting and self._send_one(request):
                pass
            # with one answer to wait for, there is no need to ask which one is there
            is_last = len(request.flying) == 1 and not request.waiting
            for part in list(request.flying) if is_last else self._answered(request):
                self._land(request, part)

    def _send_one(self, request: SplitRequest) -> bool:
        """Send the next part; False when this request fills all devices, and must wait."""
        part = request.waiting[0]
        if request.left_s() == 0:
            request.waiting.popleft()
            self._give_up(request, part, request.late("it was not sent yet"))
            return True
        found = self._free_device(request, part)
        if found is None:
            return False
        supervisor, life = found
        request.waiting.popleft()
        try:
            call = life.model.start(request.call(part))
        except LEAVING:  # before it got the part, so nothing was lost
            self._freed(supervisor)
            self._await_end(request, supervisor, life)
            request.waiting.appendleft(part)
        except RequestTimeoutError:
            self._freed(supervisor, failed=1)
            supervisor.suspect(life, 0)
            self._give_up(request, part, request.silent([supervisor]))
        except Exception as exc:  # noqa: BLE001 - it is this part's result
            self._freed(supervisor, failed=1)
            self._settle(request, part, supervisor, exc)
        except BaseException:
            self._freed(supervisor, failed=1)
            raise
        else:
            request.took_off(part, Flight(supervisor, life, call))
        return True

    def _await_end(self, request: SplitRequest, supervisor: Supervisor, life: Life) -> None:
        """Wait until a worker that is gone is seen to be gone."""
        life.process.died(request.patience_s(REAP_S))
        if not supervisor.await_end(life, request.left_s()):
            raise request.silent([supervisor])

    def _free_device(self, request: SplitRequest, part: int) -> tuple[Supervisor, Life] | None:
        """The device for a part: the least busy one; None when this request fills them all.

        Waits while every device is being started again. None also when no device is left with the
        weights that the request began with: it begins anew, with those of now.
        """
        flying = [flight.supervisor.index for flight in request.flying.values()]
        supervisors = self._allowed(request.lost_at.get(part, []))
        with self._changed:
            while True:
                request.check()
                weights = self.weights.of(request)
                found = [(supervisor, supervisor.life_with(weights)) for supervisor in supervisors]
                ready = [(supervisor, life) for supervisor, life in found if life is not None]
                room = [one for one in ready if flying.count(one[0].index) < _room(one[0])]
                if room:
                    supervisor, life = min(room, key=lambda one: self._preference(one[0], part))
                    supervisor.load += 1
                    return supervisor, life
                if ready or request.flying:
                    return None
                if weights is not self.weights.now:
                    self.weights.let_go(weights)
                    request.begin_anew()
                    return None
                self._check_hope(supervisors)
                self._wait(request)

    def _allowed(self, lost_at: Sequence[int]) -> list[Supervisor]:
        """The devices for a part that these have lost."""
        return [one for one in self.supervisors if self._stays or one.index not in lost_at]

    def _wait(self, request: SplitRequest) -> None:
        """Wait for a change of the devices, with the lock held."""
        if not self._changed.wait(request.left_s()):
            raise request.late("all devices are being started again")

    def _check_hope(self, supervisors: Sequence[Supervisor]) -> None:
        """Raise when no device will be ready soon."""
        if self._ending:
            raise _closed()
        coming = [supervisor for supervisor in supervisors if _is_coming(supervisor)]
        if not coming:
            raise WorkerDiedError(f"no device is left: {_reasons(self.supervisors)}")
        if all(isinstance(supervisor.error, ResourceError) for supervisor in coming):
            raise ResourceError(f"no device can be started now: {_reasons(self.supervisors)}")

    def _preference(self, supervisor: Supervisor, part: int) -> tuple[int, int]:
        """The least busy device; part i goes to device i where all are alike."""
        return supervisor.load, (supervisor.index - part) % len(self.supervisors)

    def _answered(self, request: SplitRequest) -> list[int]:
        """Parts whose answers are there; waits for one if any is under way."""
        if not request.flying:
            return []
        parts = {flight.call.fileno(): part for part, flight in request.flying.items()}
        poll = select.poll()
        for descriptor in parts:
            poll.register(descriptor, select.POLLIN)
        left_s = request.left_s()
        found = poll.poll(None if left_s is None else (left_s + LATE_S) * 1000)
        request.check()
        if not found:
            raise request.silent([flight.supervisor for flight in request.flying.values()])
        return [parts[descriptor] for descriptor, _ in found]

    def _land(self, request: SplitRequest, part: int) -> None:
        """Take a part's answer; waits for it."""
        supervisor, life, call = request.flying[part]
        try:
            outputs = call.fetched()
        except Exception as exc:  # noqa: BLE001 - it is this part's result
            request.landed(part)
            was_answered = call.answered
            call.release()
            self._freed(supervisor, failed=1)
            if not isinstance(exc, RequestTimeoutError):
                self._settle(request, part, supervisor, self._reason(request, life, exc))
            elif was_answered:
                supervisor.doubt(life)
                why = str(exc).partition(": ")[2]  # its deadline was shorter than the caller's
                self._give_up(
                    request, part, request.late(f"device {supervisor.place.device}: {why}")
                )
            else:
                supervisor.suspect(life, call.request)
                self._give_up(request, part, request.silent([supervisor]))
            return
        request.landed(part)
        self._freed(supervisor, done=1)
        if request.keeps_going or len(request.parts) > len(
            self.supervisors
        ):  # lanes are used again
            request.results[part] = [owned(array) for array in outputs]
            call.release()
        else:
            request.results[part] = outputs
            request.held.append(call)

    def _settle(
        self, request: SplitRequest, part: int, supervisor: Supervisor, error: Exception
    ) -> None:
        """A part came to nothing: try it elsewhere, or give it up."""
        lost_at = request.lost_at.setdefault(part, [])
        if isinstance(error, WorkerDiedError) and len(lost_at) < request.retries:
            lost_at.append(supervisor.index)
            with self._changed:
                allowed = self._allowed(lost_at)
                if any(one.life is not None or _is_coming(one) for one in allowed):
                    self._counts["retried"] += 1
                    request.waiting.appendleft(part)
                    return
        self._give_up(request, part, error)

    def _give_up(self, request: SplitRequest, part: int, error: Exception) -> None:
        """Keep the error of a part, or raise it."""
        if request.keeps_going:  # without its frames, which hold the request
            request.results[part] = error.with_traceback(None)
            return
        try:
            raise error
        finally:
            del error  # it holds this frame: without a circle, the inputs go when it goes

    def _reason(self, request: SplitRequest, life: Life, error: Exception) -> Exception:
        """What the caller should see: of a worker that died, or ends, how it did."""
        if not isinstance(error, LEAVING):
            return error
        if self._ending:
            return ClosedError("the runner was closed, and the request did not end in time")
        return life.process.died(request.patience_s(REAP_S))

    def _tidy(self, request: SplitRequest) -> None:
        """Give lanes back, and cancel what is still under way: its answer is not wanted."""
        for call in request.held:
            call.release()
        for supervisor, life, call in request.abandoned():
            self._freed(supervisor, failed=1)
            call.abandon()
            supervisor.suspect(life, call.request)
        request.forget()

    def _freed(self, supervisor: Supervisor, *, done: int = 0, failed: int = 0) -> None:
        with self._changed:
            supervisor.load -= 1
            supervisor.done += done
            supervisor.failed += failed

    def _check_forked(self) -> None:
        if self._forked:
            raise EngineError(
                "the runner was built before this process was forked, and its workers stayed with "
                "the parent; build it in the child, or use the spawn start method"
            )

    def _leave_to_parent(self) -> None:
        self._forked = True
        self._changed = threading.Condition()  # the old one may be held for ever


def _room(supervisor: Supervisor) -> int:
    return max(1, min(_MOST_LANES, len(supervisor.place.cores)))


def _is_coming(supervisor: Supervisor) -> bool:
    return supervisor.state in (State.DOWN, State.STARTING)


def _reasons(supervisors: Sequence[Supervisor]) -> str:
    return "; ".join(
        str(supervisor.error) for supervisor in supervisors if supervisor.error is not None
    )


def _closed() -> ClosedError:
    return ClosedError("the runner is closed; build it again to use it")


def _after_fork() -> None:
    for dispatcher in list(_DISPATCHERS):
        dispatcher._leave_to_parent()


_DISPATCHERS: weakref.WeakSet[Dispatcher] = weakref.WeakSet()
after_fork_in_child(_after_fork)
