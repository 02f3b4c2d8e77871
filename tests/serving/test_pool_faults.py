"""pool.py when things go wrong: engines that fail, hang or lie, callers that leave, bad callbacks.

Every test ends with a pool that still works, or is closed, and with books that add up.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any

import numpy as np
import pytest
from support.fake_engine import (
    LIMIT_S,
    Bench,
    Client,
    Compute,
    Gate,
    batch_behind,
    closing,
    double,
    raising,
    rows,
    still_works,
)

from mindspore_lite.engines.base import Stop
from mindspore_lite.errors import (
    ClosedError,
    EngineError,
    InputError,
    RequestTimeoutError,
    StoppedError,
)
from mindspore_lite.serving import pool as pool_module
from mindspore_lite.serving.call import Call
from mindspore_lite.serving.pool import GRACE_S
from mindspore_lite.serving.request import State

Arrays = list[np.ndarray]


def ways(bench: Bench) -> list[Callable[[Arrays], Arrays]]:
    """On the caller's thread, on the worker's, and by a callback."""
    return [
        lambda x: bench.pool.run(Call(x)),
        lambda x: bench.pool.run(Call(x, 1e6)),
        lambda x: bench.submit(x).wait(),
    ]


# --- engines that raise ---------------------------------------------------------------------------


@pytest.mark.parametrize("max_rows", [0, 4])
@pytest.mark.parametrize("way", range(3))
def test_an_error_of_the_package_reaches_its_caller_as_it_is(way: int, max_rows: int) -> None:
    error = InputError("not that one")
    with closing(Bench(raising(error), max_rows=max_rows)) as bench:
        with pytest.raises(InputError) as got:
            ways(bench)[way](rows(1, 13.0))
        assert got.value is error
        still_works(bench)
        found = bench.statistics()
        assert (found.failed, found.done, found.workers[0].failed) == (1, 2, 1)


@pytest.mark.parametrize("way", range(3))
def test_any_other_error_becomes_an_engine_error_with_its_cause(way: int) -> None:
    with closing(Bench(raising(ZeroDivisionError("by zero")))) as bench:
        with pytest.raises(EngineError, match="the engine failed: ZeroDivisionError: by zero") as g:
            ways(bench)[way](rows(1, 13.0))
        assert isinstance(g.value.__cause__, ZeroDivisionError)
        still_works(bench)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("way", range(3))
def test_an_interrupt_inside_of_the_engine_costs_no_worker(
    way: int, kind: type[BaseException]
) -> None:
    with closing(Bench(raising(kind()))) as bench:
        with pytest.raises(kind):
            ways(bench)[way](rows(1, 13.0))
        assert bench.threads[0].is_alive()
        still_works(bench)
        assert bench.statistics().failed == 1


def test_as_many_failures_as_one_likes_leave_all_workers_in_place() -> None:
    """The original lost a worker per failure on the caller's thread."""
    with closing(Bench(raising(ValueError("no")), workers=2)) as bench:
        for _ in range(10):
            for way in ways(bench):
                with pytest.raises(EngineError):
                    way(rows(1, 13.0))
        assert len(bench.pool._scheduler.idle_slots()) == 2
        still_works(bench)


def test_a_request_behind_a_failing_run_is_not_forgotten() -> None:
    """The original did not wake the queue after a failure on the caller's thread."""
    gate = Gate()

    def compute(inputs: Arrays, stop: Stop) -> Arrays:
        gate.wait(stop)
        return raising(ValueError("no"))(inputs, stop)

    with closing(Bench(compute), gate) as bench:
        failing = bench.predict(rows(1, 13.0))
        gate.entered()
        behind = bench.submit(rows(1, 2.0))
        gate.open()
        assert isinstance(failing.ended().error, EngineError)
        behind.wait()


# --- engines that lie -----------------------------------------------------------------------------


@pytest.mark.parametrize("outputs", [0, 2])
@pytest.mark.parametrize("way", range(3))
def test_a_wrong_number_of_outputs_is_an_error(way: int, outputs: int) -> None:
    def compute(inputs: Arrays, stop: Stop) -> Arrays:
        return double(inputs, stop) * (outputs if (inputs[0] == 13).any() else 1)

    with closing(Bench(compute)) as bench:
        with pytest.raises(EngineError, match=f"returned {outputs} outputs, the model has 1"):
            ways(bench)[way](rows(1, 13.0))
        still_works(bench)


# --- batches that fail ----------------------------------------------------------------------------


BAD_BATCHES: dict[str, Callable[[Arrays, Stop], Arrays]] = {
    "it raises": raising(ValueError("no")),
    "it raises an interrupt": raising(KeyboardInterrupt()),
    "it says that it was stopped": raising(StoppedError("by nobody")),
    "it has no outputs": lambda i, s: [] if (i[0] == 13).any() else double(i, s),
    "it has a row too few": lambda i, s: [i[0][(i[0] != 13).all(1)] * 2],
    "it has no batch axis": lambda i, s: (
        [np.float32(3)] * 1 if (i[0] == 13).any() and len(i[0]) > 2 else raising(OSError("x"))(i, s)
    ),
}


@pytest.mark.parametrize("compute", BAD_BATCHES.values(), ids=BAD_BATCHES)
def test_only_the_guilty_one_of_a_batch_fails(
    compute: Callable[[Arrays, Stop], Arrays], request: pytest.FixtureRequest
) -> None:
    bench, gate, (one, guilty, two) = batch_behind(compute, [1.0, 13.0, 2.0])
    with closing(bench, gate):
        gate.open()
        assert one.wait()[0].tolist() == rows(2, 2.0)[0].tolist()
        assert two.wait()[0].tolist() == rows(2, 4.0)[0].tolist()
        if "a row too few" in request.node.callspec.id:
            # alone it is what the model gives, and nobody else's rows are in it
            assert guilty.wait()[0].shape == (0, 2)
        else:
            with pytest.raises((EngineError, KeyboardInterrupt, StoppedError)):
                guilty.wait()
        assert bench.session.rows == [1, 6, 2, 2, 2]
        still_works(bench)


def hanging_alone(trap: Gate) -> Compute:
    """Fails with 13 among others, and hangs with 13 alone."""

    def compute(inputs: Arrays, stop: Stop) -> Arrays:
        if (inputs[0] == 13).any():
            if len(inputs[0]) > 2:
                raise ValueError("together they fail")
            trap.wait(stop)
        return double(inputs, stop)

    return compute


def test_the_other_members_are_answered_while_the_guilty_one_hangs() -> None:
    """Alone, the guilty one hangs; those before it were computed, those behind it go on."""
    trap = Gate(obeys=False)

    bench, gate, (one, guilty, two) = batch_behind(hanging_alone(trap), [1.0, 13.0, 2.0])
    with closing(bench, gate, trap):
        gate.open()
        one.wait()
        trap.entered()
        assert bench.pool.cancel(guilty.request)
        bench.pass_time(GRACE_S)
        two.wait()
        assert bench.statistics().stuck == 1


def test_close_reaches_members_of_a_batch_that_is_run_one_by_one() -> None:
    trap = Gate(obeys=False)

    bench, gate, (guilty, two) = batch_behind(hanging_alone(trap), [13.0, 2.0])
    with closing(bench, gate, trap):
        gate.open()
        trap.entered()
        closer = Client(lambda: bench.pool.close(1.0))
        bench.watched(1)
        bench.pass_time(1.0)
        for answer in (guilty, two):
            with pytest.raises(ClosedError):
                answer.wait()
        bench.pass_time(GRACE_S)
        closer.ended()


def test_a_member_that_ended_before_the_batch_was_joined_takes_no_other_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench, gate, (one, leaver, two) = batch_behind(double, [1.0, 5.0, 2.0])
    joined = pool_module.joining.joined

    def leave_first(requests: Any) -> Any:
        assert bench.pool.cancel(leaver.request)
        return joined([r.call.inputs for r in bench.pool._scheduler.slots[0].batch])

    monkeypatch.setattr(pool_module.joining, "joined", leave_first)
    with closing(bench, gate):
        gate.open()
        one.wait()
        two.wait()
        monkeypatch.undo()
        assert not leaver.there
        still_works(bench)


def test_a_deadline_of_one_member_does_not_end_the_batch() -> None:
    batch_gate = Gate()
    bench, gate, (one, two) = batch_behind(batch_gate, [1.0, 2.0])
    with closing(bench, gate, batch_gate):
        late = bench.submit(rows(2, 3.0), timeout_s=1.0)
        gate.open()
        batch_gate.entered()
        bench.pass_time(1.0)
        with pytest.raises(RequestTimeoutError):
            late.wait()
        assert bench.session.rows == [1, 6]
        batch_gate.let(1)
        assert one.wait()[0][0, 0] == 2
        assert two.wait()[0][0, 0] == 4
        assert bench.statistics().timed_out == 1
        bench.pass_time(GRACE_S)
        assert bench.statistics().stuck == 0


def test_a_batch_that_nobody_wants_any_more_is_stopped() -> None:
    batch_gate = Gate()
    bench, gate, (one, two) = batch_behind(batch_gate, [1.0, 2.0])
    with closing(bench, gate, batch_gate):
        gate.open()
        batch_gate.entered()
        assert bench.pool.cancel(one.request)
        assert bench.pool.cancel(two.request)
        batch_gate.open()
        still_works(bench)
        assert bench.statistics().cancelled == 2


# --- engines that hang ----------------------------------------------------------------------------


def test_a_deadline_ends_a_request_that_waits() -> None:
    gate = Gate()
    with closing(Bench(gate), gate) as bench:
        bench.submit()
        gate.entered()
        late = bench.predict(timeout_s=2.0)
        bench.watched(1)
        bench.pass_time(2.0)
        error = late.ended().error
        assert isinstance(error, RequestTimeoutError)
        assert "no answer within timeout_s=2: it still waited in the queue, 1 long" in str(error)
        found = bench.statistics()
        assert (found.timed_out, found.queued, found.running) == (1, 0, 1)


def test_a_deadline_ends_a_running_request_and_the_worker_goes_on() -> None:
    gate = Gate()
    with closing(Bench(gate), gate) as bench:
        late = bench.predict(timeout_s=2.0)
        gate.entered()
        bench.watched(1)
        bench.pass_time(2.0)
        error = late.ended().error
        assert isinstance(error, RequestTimeoutError)
        assert "it was running, and was told to stop" in str(error)
        gate.open()
        still_works(bench)
        assert bench.session.late == [False] * 3
        found = bench.statistics()
        assert (found.timed_out, found.done, found.failed, found.stuck) == (1, 2, 0, 0)


@pytest.mark.parametrize("by", ["deadline", "cancel"])
def test_a_worker_whose_engine_hangs_is_replaced_after_the_grace(
    by: str, caplog: pytest.LogCaptureFixture
) -> None:
    trap = Gate(obeys=False)

    def compute(inputs: Arrays, stop: Stop) -> Arrays:
        if (inputs[0] == 13).any():
            trap.wait(stop)
        return double(inputs, stop)

    with closing(Bench(compute), trap) as bench:
        hung = bench.submit(rows(1, 13.0), timeout_s=1.0)
        trap.entered()
        old = bench.threads[0]
        waits = bench.submit(rows(1, 2.0))
        if by == "deadline":
            bench.pass_time(1.0)
            with pytest.raises(RequestTimeoutError):
                hung.wait()
        else:
            assert bench.pool.cancel(hung.request)
        bench.pass_time(GRACE_S / 2)
        assert bench.statistics().stuck == 0
        assert not waits.there
        bench.pass_time(GRACE_S / 2)
        waits.wait()
        assert bench.threads[0] is not old
        assert "worker 0 goes on with a new thread" in caplog.text
        found = bench.statistics()
        assert (found.stuck, found.running, found.done) == (1, 0, 1)
        still_works(bench)
        trap.open()  # the late thread comes back, and what it brings is nobody's
        old.join(LIMIT_S)
        assert not old.is_alive()
        assert hung.times == (1 if by == "deadline" else 0)
        assert hung.request.outputs is None
        found = bench.statistics()
        assert (found.stuck, found.done) == (0, 3)
        assert bench.watching == 0


def test_an_engine_that_stops_within_the_grace_keeps_its_thread() -> None:
    gate = Gate(obeys=False)
    with closing(Bench(gate), gate) as bench:
        late = bench.submit(timeout_s=1.0)
        gate.entered()
        thread = bench.threads[0]
        bench.pass_time(1.0)
        with pytest.raises(RequestTimeoutError):
            late.wait()
        gate.open()
        bench.submit().wait()
        bench.pass_time(GRACE_S)
        assert bench.threads == [thread]
        assert bench.statistics().stuck == 0


def test_no_more_threads_are_made_than_there_are_workers_to_hang(
    caplog: pytest.LogCaptureFixture,
) -> None:
    trap = Gate(obeys=False)
    with closing(Bench(trap), trap) as bench:
        for hanging in (1, 1):
            late = bench.submit(timeout_s=1.0)
            trap.entered()
            bench.pass_time(1.0)
            with pytest.raises(RequestTimeoutError):
                late.wait()
            bench.pass_time(GRACE_S)
            assert bench.statistics().stuck == hanging
        assert "1 runs hang, as many as there are workers" in caplog.text
        trap.open()
        still_works(bench)


def test_a_worker_that_could_not_be_replaced_is_so_when_another_came_back() -> None:
    """Two runs hang, the first lets go: the worker must not wait for the second for ever."""
    traps = {13.0: Gate(obeys=False), 14.0: Gate(obeys=False)}

    def compute(inputs: Arrays, stop: Stop) -> Arrays:
        trap = traps.get(inputs[0][0, 0].item())
        if trap is not None:
            trap.wait(stop)
        return double(inputs, stop)

    with closing(Bench(compute), *traps.values()) as bench:
        for value, trap in traps.items():
            bench.submit(rows(1, value), timeout_s=1.0)
            trap.entered()
            lost = bench.threads[0]
            bench.pass_time(1.0)
            bench.pass_time(GRACE_S)
            if value == 13.0:
                first = lost
        waits = bench.submit(rows(1, 1.0))
        traps[13.0].open()
        first.join(LIMIT_S)
        bench.pass_time(GRACE_S)
        waits.wait()


# --- cancelling -----------------------------------------------------------------------------------


def test_a_request_can_be_cancelled_while_it_waits_and_never_runs() -> None:
    gate = Gate()
    with closing(Bench(gate), gate) as bench:
        bench.submit()
        gate.entered()
        waiting = bench.submit(rows(7), timeout_s=5.0)
        assert bench.pool.cancel(waiting.request)
        assert not bench.pool.cancel(waiting.request)
        assert waiting.request.state is State.CANCELLED
        assert isinstance(waiting.request.error, CancelledError)
        gate.open()
        still_works(bench)
        assert 7 not in bench.session.rows
        assert not waiting.there
        assert bench.statistics().cancelled == 1
        assert bench.watching == 0


def test_a_request_can_be_cancelled_while_it_runs() -> None:
    gate = Gate()
    with closing(Bench(gate), gate) as bench:
        running = bench.submit()
        gate.entered()
        assert bench.pool.cancel(running.request)
        gate.open()
        still_works(bench)
        assert not running.there
        found = bench.statistics()
        assert (found.cancelled, found.failed) == (1, 0)


def test_a_request_that_has_ended_cannot_be_cancelled() -> None:
    with closing(Bench()) as bench:
        answer = bench.submit()
        answer.wait()
        assert not bench.pool.cancel(answer.request)
        assert answer.request.state is State.DONE


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="signals go to the main one"
)
def test_an_interrupted_caller_leaves_the_queue() -> None:
    """Ctrl-C while predict() waits: the request is cancelled, and the pool goes on."""
    gate = Gate()

    class InterruptedError(BaseException):
        pass

    def interrupt(*_: object) -> None:
        raise InterruptedError

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with closing(Bench(gate), gate) as bench:
            bench.submit()
            gate.entered()
            main = threading.main_thread().ident
            assert main is not None

            def send() -> None:
                bench.queued(1)
                signal.pthread_kill(main, signal.SIGUSR1)

            Client(send)
            with pytest.raises(InterruptedError):
                bench.pool.run(Call(rows()))
            found = bench.statistics()
            assert (found.cancelled, found.queued) == (1, 0)
            gate.open()
            still_works(bench)
    finally:
        signal.signal(signal.SIGUSR1, before)
