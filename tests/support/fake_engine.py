"""A session that does what the test says, a clock that stands still, and a pool made of them.

Nothing here sleeps: runs wait at gates that the test opens, and deadlines pass when the test moves
the clock and fires them. Every wait has a limit, so that a fault shows as a failure, not a hang.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from mindspore_lite.core.deadline import Watchdog
from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.engines.base import Session, SessionInfo, Stop
from mindspore_lite.errors import StoppedError
from mindspore_lite.serving.call import Call
from mindspore_lite.serving.layout import Layout
from mindspore_lite.serving.pool import Pool
from mindspore_lite.serving.scheduler import Batching, WorkerPlace
from mindspore_lite.serving.thread_widths import WidthOption

LIMIT_S = 120.0  # for waits that end at once when all is well, on a busy machine

Compute = Callable[[list[np.ndarray], Stop], list[np.ndarray]]


class FakeClock:
    """Time that the test moves."""

    def __init__(self) -> None:
        self.now_ns = 1_000_000_000

    def ns(self) -> int:
        return self.now_ns

    def s(self) -> float:
        return self.now_ns / 1e9

    def advance(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9)


class Unattended(Watchdog):
    """Without a watching thread: the test alone calls fire_due."""

    def _watch(self) -> None:
        pass


def double(inputs: list[np.ndarray], stop: Stop) -> list[np.ndarray]:
    return [inputs[0] * 2]


class FakeSession:
    """Computes 2 x, or what the test says; remembers who ran it."""

    def __init__(self, compute: Compute = double) -> None:
        self.info = SessionInfo(
            inputs=(TensorInfo("x", np.dtype(np.float32), (-1, 2)),),
            outputs=(TensorInfo("y", np.dtype(np.float32), (-1, 2)),),
            mapped=True,
        )
        self.compute = compute
        self.threads: list[int] = []
        self.rows: list[int] = []
        self.cores: list[set[int]] = []
        self.late: list[bool] = []  # whether the Stop had been fired before the run began
        self.closed = 0

    def run(self, inputs: Sequence[np.ndarray], stop: Stop | None = None) -> list[np.ndarray]:
        assert stop is not None, "the pool must be able to end every run"
        self.threads.append(threading.get_ident())
        self.rows.append(len(inputs[0]) if len(inputs) else 0)
        self.cores.append(os.sched_getaffinity(0))
        self.late.append(stop.fired)
        return self.compute(list(inputs), stop)

    def skeleton(self) -> bytes:
        return b""

    def close(self) -> None:
        self.closed += 1


class Gate:
    """A place inside of the engine where runs wait until they are let through.

    A gate that `obeys` also lets a run go, with StoppedError, when its Stop is fired, as ONNX
    Runtime does; one that does not is an engine that hangs.
    """

    def __init__(self, obeys: bool = True) -> None:
        self.obeys = obeys
        self._inside = threading.Semaphore(0)
        self._passes = threading.Semaphore(0)
        self._open = False

    def __call__(self, inputs: list[np.ndarray], stop: Stop) -> list[np.ndarray]:
        self.wait(stop)
        return double(inputs, stop)

    def wait(self, stop: Stop) -> None:
        if self.obeys:
            stop.handle(lambda: self, lambda gate: gate.let(1))
        self._inside.release()
        if not self._open:
            assert self._passes.acquire(timeout=LIMIT_S), "nobody opened the gate"
        if self.obeys and stop.fired:
            raise StoppedError("told to stop")

    def entered(self, count: int = 1) -> None:
        """Return when so many more runs are inside."""
        for _ in range(count):
            assert self._inside.acquire(timeout=LIMIT_S), "no run came"

    def nobody_entered(self) -> bool:
        return not self._inside.acquire(blocking=False)

    def let(self, count: int) -> None:
        self._passes.release(count)

    def open(self) -> None:
        """Let all pass that are inside and all that come."""
        self._open = True
        self._passes.release(100_000)


class Client(threading.Thread):
    """Calls something on a thread of its own, and keeps what came of it."""

    def __init__(self, call: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self._call = call
        self.result: Any = None
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.result = self._call()
        except BaseException as exc:  # noqa: BLE001 - the test looks at it
            self.error = exc

    def ended(self) -> Client:
        self.join(LIMIT_S)
        assert not self.is_alive(), "the call does not return"
        return self


class Answer:
    """Where a pool delivers a request."""

    def __init__(self) -> None:
        self.times = 0
        self.thread = 0
        self._there = threading.Event()

    def __call__(self, request: Any) -> None:
        self.request = request
        self.times += 1
        self.thread = threading.get_ident()
        self._there.set()

    def wait(self) -> Any:
        """The outputs; an error is raised."""
        assert self._there.wait(LIMIT_S), "the request was not answered"
        if self.request.error is not None:
            raise self.request.error
        return self.request.outputs

    @property
    def there(self) -> bool:
        return self._there.is_set()


def wait_for(condition: Callable[[], bool]) -> None:
    """Return when something holds that nobody tells of."""
    tick = threading.Event()
    for _ in range(round(LIMIT_S * 1000)):
        if condition():
            return
        tick.wait(0.001)
    raise AssertionError("it does not come true")


def growing(first_s: float) -> Iterator[float]:
    """Deadlines up to LIMIT_S, each four times the last.

    For a test in which one request misses its deadline and another keeps it: the first deadline
    is short, and on a busy machine the test goes on to the next.
    """
    while first_s < LIMIT_S:
        yield first_s
        first_s *= 4
    yield LIMIT_S


def rows(count: int = 1, value: float = 1.0) -> list[np.ndarray]:
    """The inputs of a request with so many rows."""
    return [np.full((count, 2), value, np.float32)]


class _Held:
    """Takes the call for a worker's thread, which goes on sleeping."""

    called = False

    def release(self) -> None:
        self.called = True


class Bench:
    """A pool over a fake session, with its clock and watchdog."""

    def __init__(
        self,
        compute: Compute = double,
        *,
        workers: int = 1,
        cores: tuple[int, ...] = (),
        sessions: Sequence[tuple[int, Session]] = (),
        max_rows: int = 0,
        wait_s: float = 0.0,
        queue_size: int = 1000,
        quick: bool = False,
        share: float | None = None,
        widths: tuple[int, ...] = (1,),
        clock: FakeClock | None = None,
    ) -> None:
        self.clock = clock or FakeClock()
        self.watchdog = Unattended(self.clock.s)
        self.session = FakeSession(compute)
        if quick:  # for requests of one row
            inputs = (TensorInfo("x", np.dtype(np.float32), (1, 2)),)
            self.session.info = replace(self.session.info, inputs=inputs)
        shared = tuple(WidthOption(*s) for s in sessions) or (WidthOption(workers, self.session),)
        self.places = [WorkerPlace(index, shared, cores) for index in range(workers)]
        bound = (cores,) * workers
        self.layout = Layout(workers, 1, widths, bound, (-1,) * workers, 2, "the test")
        self.pool = Pool(
            self.places,
            self.layout,
            queue_size=queue_size,
            quick=self.session if quick else None,
            batching=Batching(max_rows, round(wait_s * 1e9)) if max_rows else None,
            share=share,
            clock_ns=self.clock.ns,
            watchdog=self.watchdog,
        )

    def submit(self, *given: Any, timeout_s: float | None = None) -> Answer:
        answer = Answer()
        answer.request = self.pool.submit(Call(*(given or (rows(),)), timeout_s), answer)
        return answer

    def predict(self, *given: Any, timeout_s: float | None = None) -> Client:
        return Client(lambda: self.pool.run(Call(*(given or (rows(),)), timeout_s)))

    def pass_time(self, seconds: float) -> None:
        """Move the clock and end what is overdue."""
        self.clock.advance(seconds)
        self.watchdog.fire_due()

    def watched(self, count: int) -> None:
        """Return when so many deadlines are watched."""
        wait_for(lambda: self.watching >= count)

    @property
    def watching(self) -> int:
        """The deadlines that are neither over nor cancelled."""
        return sum(entry.act is not None for *_, entry in list(self.watchdog._heap))

    def queued(self, count: int) -> None:
        """Return when so many requests wait."""
        wait_for(lambda: self.pool.statistics().queued >= count)

    @contextmanager
    def held(self) -> Iterator[list[Answer]]:
        """The workers' threads do not wake while requests are made; then all must be answered."""
        answers: list[Answer] = []
        slots = self.pool._scheduler.slots
        signals = [slot.signal for slot in slots]
        for slot in slots:
            slot.signal = _Held()  # type: ignore[assignment]
        yield answers
        for slot, signal in zip(slots, signals, strict=True):
            called = slot.signal.called  # type: ignore[attr-defined]
            slot.signal = signal
            if called:
                signal.release()
        for answer in answers:
            answer.wait()

    @property
    def threads(self) -> list[threading.Thread]:
        return [slot.thread for slot in self.pool._scheduler.slots if slot.thread is not None]

    def statistics(self) -> Any:
        """The pool's, checked: whatever was sent is somewhere."""
        found = self.pool.statistics()
        assert accounted(found) == found.sent
        return found


def accounted(found: Any) -> int:
    names = "queued running done failed timed_out cancelled rejected closed"
    return sum(getattr(found, name) for name in names.split())


@contextmanager
def closing(bench: Bench, *gates: Gate) -> Iterator[Bench]:
    """A bench that is taken down however the test ends: gates opened, threads ended."""
    try:
        yield bench
    finally:
        for gate in gates:
            gate.open()
        closed = Client(lambda: bench.pool.close(None))
        closed.ended()
        for thread in bench.threads:
            thread.join(LIMIT_S)


def raising(exc: BaseException, at: float = 13.0) -> Compute:
    """An engine that cannot bear one value."""

    def compute(inputs: list[np.ndarray], stop: Stop) -> list[np.ndarray]:
        if (inputs[0] == at).any():
            raise exc
        return double(inputs, stop)

    return compute


def still_works(bench: Bench) -> None:
    answer = bench.submit(rows(2, 21.0))
    np.testing.assert_array_equal(answer.wait()[0], rows(2, 42.0)[0])
    np.testing.assert_array_equal(bench.pool.run(Call(rows(1, 3.0)))[0], rows(1, 6.0)[0])


def batch_behind(
    compute: Compute, values: list[float], **more: Any
) -> tuple[Bench, Gate, list[Answer]]:
    """A pool whose worker is held by value 99 while the others queue up to be one batch."""
    gate = Gate()

    def gated(inputs: list[np.ndarray], stop: Stop) -> list[np.ndarray]:
        if (inputs[0] == 99).any():
            return gate(inputs, stop)
        return compute(inputs, stop)

    bench = Bench(gated, max_rows=8, **more)
    bench.submit(rows(1, 99.0))
    gate.entered()
    return bench, gate, [bench.submit(rows(2, value)) for value in values]
