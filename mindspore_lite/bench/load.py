"""Puts load on a side, as a closed or an open loop, and records the time of each request.

Closed loop: clients, each a thread that sends its next request when the last one is answered.
Requests of the warm-up are dropped; the window opens with an answer and closes with one, so that no
part of a request is counted. It stays open until there are two answers for every client.

Open loop: requests come at times of a Poisson process, drawn in advance. The thread that sends them
never waits for an answer, and the latency of a request counts from the time at which it should have
been sent: neither a busy side nor a late sender can hide it. Those beyond OUTSTANDING unanswered
ones are not sent, and count as errors, as do those that have no answer GRACE_S after the end.

Ctrl-C ends a burst early; it then holds what was measured so far, and says that it was interrupted.
"""

from __future__ import annotations

import math
import threading
import time
from array import array
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from mindspore_lite.bench.burst import Burst, columns
from mindspore_lite.bench.clock import Clock, RealClock
from mindspore_lite.errors import QueueFullError, RequestTimeoutError

OUTSTANDING = 1000  # as many as the queue of a runner takes
GRACE_S = 10.0  # guess: what is not answered by then is lost
_STUCK_S = 60.0  # guess: no request takes longer than that after the end of a burst
_LEAD_S = 0.01  # until the first request of an open loop may come
_POLL_S = 0.1  # between two looks at a burst
_PAUSE_S = 1e-3  # of a client whose request failed, so that errors do not burn a core

NOTHING = Burst(np.empty(0), np.empty(0), 0, 0.0, 0.0, interrupted=True)  # Ctrl-C in the warm-up

Call = Callable[[], object]
Done = Callable[[BaseException | None], None]  # called at the end of a request, by any thread
Submit = Callable[[Done], None]  # returns at once
Drop = Callable[[], None]  # gives up what was submitted and has no answer, for the next to begin
Tick = Callable[[int], None]  # called now and then with how many were answered


class _Failure(NamedTuple):
    """A request that failed: when, and whether there was no room for it."""

    at: float
    refused: bool


def closed_loop(
    call: Call,
    clients: int,
    warm_s: float,
    window_s: float,
    clock: Clock | None = None,
    tick: Tick = lambda answered: None,
) -> Burst:
    """Let so many clients call at the same time.

    Raises:
        RequestTimeoutError: A call does not come back.
    """
    loop = _Closed(call, clients, warm_s, window_s, clock or RealClock())
    threads = [
        threading.Thread(target=loop.client, name=f"client-{number}", daemon=True)
        for number in range(clients)
    ]
    for thread in threads:
        thread.start()
    interrupted = False
    try:
        while not loop.over.wait(_POLL_S):
            tick(len(loop.times) // 2)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        loop.close()
    limit = time.monotonic() + _STUCK_S
    for thread in threads:
        thread.join(max(0.0, limit - time.monotonic()))
        if thread.is_alive():
            raise RequestTimeoutError(
                f"a request is still under way {_STUCK_S:g} s after the end of the measurement"
            )
    return loop.burst(interrupted)


class _Closed:
    """The clients of a closed loop, which open and close its window between them."""

    def __init__(
        self, call: Call, clients: int, warm_s: float, window_s: float, clock: Clock
    ) -> None:
        self._call, self._clients, self._clock = call, clients, clock
        self._open_at, self._window_s = clock.now() + warm_s, window_s
        self._lock = threading.Lock()
        self._seen = 0  # ends of requests, since the beginning or since the window is open
        self._opened, self._closed = math.inf, math.inf
        self._cpu_s = 0.0
        self._failures: list[_Failure] = []
        self._first_error = ""
        self.times = array("d")  # start and end of each; 16 bytes, for there may be many
        self.over = threading.Event()

    def client(self) -> None:
        """Send requests until the window is closed."""
        while not self.over.is_set():
            start = self._clock.now()
            try:
                self._call()
            except Exception as exc:  # noqa: BLE001 - counted, and the first one is shown
                self._ended(start, exc)
                self.over.wait(_PAUSE_S)
            else:
                self._ended(start, None)

    def _ended(self, start: float, error: Exception | None) -> None:
        now = self._clock.now()
        with self._lock:
            if error is not None:
                self._failures.append(_Failure(now, isinstance(error, QueueFullError)))
                self._first_error = self._first_error or str(error) or type(error).__name__
            else:
                self.times.extend((start, now))
            self._seen += 1
            if self._opened == math.inf:
                if now >= self._open_at and self._seen >= self._clients:
                    self._opened, self._cpu_s, self._seen = now, -self._clock.cpu(), 0
            elif now >= self._opened + self._window_s and self._seen >= 2 * self._clients:
                self._close(now)

    def close(self) -> None:
        """End it now, if it has not ended."""
        with self._lock:
            self._close(self._clock.now())

    def _close(self, now: float) -> None:
        if not self.over.is_set():
            self._closed = now
            self._cpu_s += self._clock.cpu()
            self.over.set()

    def burst(self, interrupted: bool) -> Burst:
        """What was measured; nothing, if the window was never open."""
        if self._opened == math.inf:
            return NOTHING
        window_s = self._closed - self._opened
        starts, ends = columns(self.times, self._opened)
        inside = (ends > 0) & (ends <= window_s)
        failed = [one for one in self._failures if self._opened < one.at <= self._closed]
        return Burst(
            starts[inside],
            ends[inside],
            answered=int(inside.sum()),
            window_s=window_s,
            cpu_s=self._cpu_s,
            errors=len(failed),
            first_error=self._first_error,
            interrupted=interrupted,
            refused=sum(one.refused for one in failed),
        )


def drawn(rate: float, warm_s: float, window_s: float, seed: int) -> np.ndarray:
    """When the requests of an open loop come, in seconds from its beginning.

    Given how many they are, the times of a Poisson process are any; there are as many in both parts
    as the rate says, so that a short measurement is not one of a higher or lower rate.
    """
    rng = np.random.default_rng(seed)
    warm = rng.uniform(0, warm_s, round(rate * warm_s))
    window = rng.uniform(warm_s, warm_s + window_s, max(1, round(rate * window_s)))
    return np.sort(np.concatenate([warm, window]))


def open_loop(
    submit: Submit,
    rate: float,
    warm_s: float,
    window_s: float,
    seed: int = 0,
    clock: Clock | None = None,
    tick: Tick = lambda answered: None,
    drop: Drop = lambda: None,
) -> Burst:
    """Send requests at random times, so many a second, whether or not any is answered."""
    clock = clock or RealClock()
    moments = drawn(rate, warm_s, window_s, seed)
    loop = _Open(submit, clock, opened=clock.now() + _LEAD_S + warm_s)
    closed, cpu_s, ticked = loop.opened + window_s, 0.0, -math.inf
    interrupted = False
    try:
        for moment in loop.opened - warm_s + moments:
            clock.wait_until(moment)
            if not cpu_s and moment >= loop.opened:
                cpu_s = -clock.cpu()
            loop.send(moment)
            if moment > ticked + _POLL_S:
                tick(len(loop.times) // 2)
                ticked = moment
        clock.wait_until(closed)
        cpu_s += clock.cpu()
        while loop.waiting and clock.now() < closed + GRACE_S:
            clock.wait_until(clock.now() + _POLL_S)
            tick(len(loop.times) // 2)
    except KeyboardInterrupt:
        interrupted = True
        cpu_s += clock.cpu() if cpu_s < 0 else 0.0
        closed = min(closed, clock.now())
    burst = loop.burst(closed, cpu_s, interrupted)
    if loop.waiting:
        drop()
    return burst


class _Open:
    """The requests of an open loop, by the time at which each was meant to be sent."""

    def __init__(self, submit: Submit, clock: Clock, opened: float) -> None:
        self.opened = opened
        self.times = array("d")  # start and end of each; 16 bytes, for there may be many
        self.waiting = 0
        self._submit, self._clock = submit, clock
        self._lock = threading.Lock()
        self._sent = array("d")  # of each, when it was meant to be, and when it was
        self._failures: list[_Failure] = []
        self._first_error = ""

    def send(self, moment: float) -> None:
        """Send one, unless too many are waiting; returns at once."""
        self._sent.extend((moment, self._clock.now()))
        with self._lock:
            self.waiting += 1
            full = self.waiting > OUTSTANDING
        ended = partial(self._ended, moment)
        if full:
            ended(RequestTimeoutError(f"not sent: {OUTSTANDING} requests had no answer yet"))
            return
        try:
            self._submit(ended)
        except Exception as exc:  # noqa: BLE001 - as a request that fails later
            ended(exc)

    def _ended(self, moment: float, error: BaseException | None) -> None:
        now = self._clock.now()
        with self._lock:
            self.waiting -= 1
            if error is None:
                self.times.extend((moment, now))
            else:
                self._failures.append(_Failure(moment, isinstance(error, QueueFullError)))
                self._first_error = self._first_error or str(error) or type(error).__name__

    def burst(self, closed: float, cpu_s: float, interrupted: bool) -> Burst:
        """What was measured; those without an answer count as errors, but not after Ctrl-C."""
        if closed <= self.opened:
            return NOTHING
        window_s = closed - self.opened
        with self._lock:  # answers may still come
            starts, ends = columns(self.times, self.opened)
            failures, first_error = [*self._failures], self._first_error
        counts = starts >= 0
        meant, sent = columns(self._sent, self.opened)
        late_s = (sent - meant)[meant >= 0]
        failed = [one for one in failures if one.at >= self.opened]
        lost = 0 if interrupted else len(late_s) - int(counts.sum()) - len(failed)
        if lost:
            first_error = first_error or f"no answer {GRACE_S:g} s after the end"
        return Burst(
            starts[counts],
            ends[counts],
            answered=int(((ends > 0) & (ends <= window_s)).sum()),
            window_s=window_s,
            cpu_s=cpu_s,
            errors=len(failed) + lost,
            first_error=first_error,
            late_ms=float(np.percentile(late_s, 99)) * 1e3 if late_s.size else 0.0,
            interrupted=interrupted,
            refused=sum(one.refused for one in failed),
        )
