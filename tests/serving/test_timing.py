"""timing.py: what a pool says of when it computed a request, and of what it does right now."""

from __future__ import annotations

from concurrent.futures import CancelledError
from typing import Any

import numpy as np
import pytest
from support.fake_engine import Answer, Bench, Client, Gate, double, rows, wait_for

from mindspore_lite.engines.base import Stop
from mindspore_lite.errors import EngineError
from mindspore_lite.serving.call import Call
from mindspore_lite.serving.timing import Timing


def timed(count: int = 1, value: float = 1.0) -> Call:
    call = Call(rows(count, value))
    call.timing = Timing()
    return call


def timing(call: Call) -> Timing:
    assert call.timing is not None
    return call.timing


class Ticking:
    """An engine that takes a second, by the clock of its bench."""

    def __init__(self) -> None:
        self.bench: Bench | None = None

    def __call__(self, inputs: list[np.ndarray], stop: Stop) -> list[np.ndarray]:
        assert self.bench is not None
        self.bench.clock.advance(1.0)
        return double(inputs, stop)


def bench(**more: Any) -> Bench:
    engine = Ticking()
    engine.bench = Bench(engine, **more)
    return engine.bench


def test_a_caller_that_computes_itself_did_not_wait() -> None:
    found = bench()
    call = timed()
    found.pool.run(call)
    run = timing(call).run
    assert run is not None and run.rows == 1 and run.most == 0
    assert timing(call).arrived_ns == run.claimed_ns == run.began_ns
    assert run.ran_ns == run.ended_ns == run.claimed_ns + 1_000_000_000
    found.pool.close(None)


def test_the_inline_lane_says_the_same() -> None:
    found = bench(quick=True)
    call = timed()
    Client(lambda: found.pool.run(call)).ended()
    run = timing(call).run
    assert run is not None and run.ended_ns - run.claimed_ns == 1_000_000_000
    found.pool.close(None)


def test_requests_of_a_batch_share_their_run_and_each_waited_for_itself() -> None:
    gate = Gate()
    found = Bench(gate, max_rows=8)
    first = found.submit()
    gate.entered()
    calls, answers = [timed(count) for count in (1, 2)], [Answer(), Answer()]
    for call, answer in zip(calls, answers, strict=True):
        found.clock.advance(1.0)
        found.pool.submit(call, answer)
    found.clock.advance(1.0)
    gate.open()
    for answer in (first, *answers):
        answer.wait()
    one, two = (timing(call) for call in calls)
    assert one.run is two.run and one.run is not None
    assert (one.run.rows, one.run.most) == (3, 8)
    assert two.arrived_ns - one.arrived_ns == 1_000_000_000
    assert one.run.claimed_ns - two.arrived_ns >= 1_000_000_000
    found.pool.close(None)


def test_a_member_that_was_cancelled_is_not_among_the_rows() -> None:
    gate = Gate()
    found = Bench(gate, max_rows=8)
    first = found.submit()
    gate.entered()
    kept, dropped, answer = timed(1), timed(2), Answer()
    found.pool.submit(kept, answer)
    gone = found.pool.submit(dropped, Answer())
    gate.let(1)
    first.wait()
    gate.entered()
    assert found.pool.cancel(gone)
    gate.open()
    answer.wait()
    run = timing(kept).run
    assert run is not None and run.rows == 1
    assert timing(dropped).run is None
    found.pool.close(None)


def test_members_of_a_batch_that_failed_have_runs_of_their_own() -> None:
    gate = Gate()

    def picky(inputs: list[np.ndarray], stop: Stop) -> list[np.ndarray]:
        gate.wait(stop)
        if (inputs[0] < 0).any():
            raise EngineError("negative")
        return double(inputs, stop)

    found = Bench(picky, max_rows=8)
    first = found.submit()
    gate.entered()
    calls, answers = [timed(1), timed(1, -1.0)], [Answer(), Answer()]
    for call, answer in zip(calls, answers, strict=True):
        found.pool.submit(call, answer)
    gate.open()
    first.wait()
    answers[0].wait()
    with pytest.raises(EngineError, match="negative"):
        answers[1].wait()
    good, bad = timing(calls[0]).run, timing(calls[1]).run
    assert good is not None and bad is not None and good is not bad
    assert (good.rows, bad.rows) == (1, 0)
    found.pool.close(None)


def test_a_request_that_was_cancelled_in_the_queue_has_no_run() -> None:
    gate = Gate()
    found = Bench(gate)
    running = found.predict()
    gate.entered()
    call = timed()
    waiting = Client(lambda: found.pool.run(call))
    wait_for(lambda: found.pool.occupancy().queued == 1)
    now = found.pool.occupancy()
    assert (now.slots, now.running, now.queue_size) == (("computing",), 1, 1000)
    gate.open()
    running.ended()
    waiting.ended()
    assert timing(call).run is not None
    late = timed()
    late.known = lambda cancel: cancel()  # type: ignore[misc]
    with pytest.raises(CancelledError):
        found.pool.run(late)
    assert timing(late).run is None
    assert found.pool.occupancy().slots == ("idle",)
    found.pool.close(None)


def test_a_worker_that_does_not_stop_is_stuck() -> None:
    gate = Gate(obeys=False)
    found = Bench(gate, workers=2)
    answer = found.submit(timeout_s=1.0)
    gate.entered()
    found.clock.advance(2.0)
    found.watchdog.fire_due()
    assert sorted(found.pool.occupancy().slots) == ["idle", "stuck"]
    found.clock.advance(10.0)
    found.watchdog.fire_due()  # it gets a new thread
    wait_for(lambda: found.pool.occupancy().slots == ("idle", "idle", "stuck"))
    gate.open()
    wait_for(lambda: found.pool.occupancy().slots == ("idle", "idle"))
    assert answer.there
    found.pool.close(None)
