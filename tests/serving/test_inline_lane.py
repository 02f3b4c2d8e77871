"""quick.py: a lane without a queue, and books that still add up."""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from support.fake_engine import Bench, Client, Gate, accounted, closing, double, raising, rows

from mindspore_lite.errors import ClosedError, EngineError, InputError, RequestTimeoutError
from mindspore_lite.serving.call import Call
from mindspore_lite.serving.pool import GRACE_S


def quick(compute: Any = double, **more: Any) -> Bench:
    return Bench(compute, quick=True, **more)


def test_callers_compute_on_their_own_threads_however_many_there_are() -> None:
    gate = Gate()
    with closing(quick(gate), gate) as bench:
        callers = [bench.predict(rows(1, float(value))) for value in range(5)]
        gate.entered(5)
        found = bench.statistics()
        assert (found.sent, found.running) == (5, 5)
        gate.open()
        for value, caller in enumerate(callers):
            assert caller.ended().result[0][0, 0] == 2 * value
        assert sorted(bench.session.threads) == sorted(c.ident for c in callers)
        found = bench.statistics()
        assert (found.sent, found.done, found.running) == (5, 5, 0)
        assert (found.batches, found.run_time.count, found.queue_wait.max_ms) == ({1: 5}, 5, 0)


def test_one_run_is_ended_by_what_it_was_known_by_and_the_others_go_on() -> None:
    gate = Gate()
    with closing(quick(gate), gate) as bench:
        ends: list[Any] = []
        one = Client(lambda: bench.pool.run(Call(rows(), known=ends.append)))
        gate.entered()
        other = bench.predict()
        gate.entered()
        ends[0]()
        assert isinstance(one.ended().error, CancelledError)
        gate.open()
        assert other.ended().error is None
        found = bench.statistics()
        assert (found.sent, found.done, found.cancelled) == (2, 1, 1)
        ends[0]()  # late, and harmless
        bench.pool.run(Call(rows(), known=ends.append))


def test_closing_ends_runs_that_are_known_as_well() -> None:
    gate = Gate()
    with closing(quick(gate), gate) as bench:
        one = Client(lambda: bench.pool.run(Call(rows(), known=lambda end: None)))
        gate.entered()
        closed = Client(lambda: bench.pool.close(0.0))
        bench.watched(1)
        bench.pass_time(0.0)
        assert isinstance(one.ended().error, ClosedError)
        closed.ended()


def test_requests_with_a_deadline_and_submitted_ones_take_the_queue() -> None:
    gate = Gate()
    with closing(quick(gate), gate) as bench:
        late = bench.predict(timeout_s=1.0)
        gate.entered()
        bench.watched(1)
        bench.pass_time(1.0)
        assert isinstance(late.ended().error, RequestTimeoutError)
        gate.open()
        bench.submit().wait()
        assert set(bench.session.threads) == {bench.threads[0].ident}
        found = bench.statistics()
        assert (found.sent, found.done, found.timed_out) == (2, 1, 1)


def test_requests_of_other_sizes_may_take_long_and_wait_their_turn() -> None:
    gate = Gate()
    with closing(quick(gate), gate) as bench:
        large = [bench.predict(rows(3)) for _ in range(2)]
        gate.entered()
        bench.queued(1)
        small = bench.predict(rows(1))
        gate.entered()  # which passes both
        gate.open()
        for caller in (*large, small):
            assert caller.ended().error is None


@pytest.mark.parametrize(
    ("raised", "seen"),
    [
        (InputError("no"), InputError),
        (ValueError("no"), EngineError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_failures_are_counted_and_cost_nothing_else(
    raised: BaseException, seen: type[BaseException]
) -> None:
    def compute(inputs: Any, stop: Any) -> Any:
        if (inputs[0] == 13).any():
            raise raised
        return double(inputs, stop)

    with closing(quick(compute)) as bench:
        with pytest.raises(seen) as caught:
            bench.pool.run(Call(rows(1, 13.0)))
        if isinstance(raised, ValueError):
            assert caught.value.__cause__ is raised
        assert bench.pool.run(Call(rows(1, 2.0)))[0][0, 0] == 4
        found = bench.statistics()
        assert (found.sent, found.failed, found.done, found.running) == (2, 1, 1, 0)


def test_a_wrong_number_of_outputs_is_an_error() -> None:
    with (
        closing(quick(lambda i, s: [])) as bench,
        pytest.raises(EngineError, match="returned 0 outputs, the model has 1"),
    ):
        bench.pool.run(Call(rows()))


def test_a_closed_lane_refuses() -> None:
    with closing(quick()) as bench:
        bench.pool.run(Call(rows()))
        bench.pool.close(None)
        with pytest.raises(ClosedError, match="build it again"):
            bench.pool.run(Call(rows()))
        found = bench.statistics()
        assert (found.sent, found.done, found.closed) == (2, 1, 1)


def test_closing_waits_for_who_is_inside() -> None:
    gate = Gate()
    with closing(quick(gate), gate) as bench:
        callers = [bench.predict() for _ in range(3)]
        gate.entered(3)
        closer = Client(lambda: bench.pool.close(None))
        gate.let(2)
        gate.open()
        closer.ended()
        assert [caller.ended().error for caller in callers] == [None] * 3


def test_closing_with_a_limit_ends_who_is_inside() -> None:
    gate = Gate()
    with closing(quick(gate), gate) as bench:
        callers = [bench.predict() for _ in range(3)]
        gate.entered(3)
        closer = Client(lambda: bench.pool.close(2.0))
        bench.watched(1)
        bench.pass_time(2.0)
        gate.open()
        closer.ended()
        assert [type(caller.ended().error) for caller in callers] == [ClosedError] * 3
        assert bench.statistics().closed == 3


def test_closing_with_a_limit_returns_even_if_the_engine_hangs() -> None:
    trap = Gate(obeys=False)
    with closing(quick(trap), trap) as bench:
        caller = bench.predict()
        trap.entered()
        closer = Client(lambda: bench.pool.close(2.0))
        bench.watched(1)
        bench.pass_time(2.0)
        bench.pass_time(GRACE_S)
        closer.ended()
        trap.open()
        caller.ended()


def test_the_books_are_exact_at_every_moment() -> None:
    """Read at the worst moment: when a run has ended, and its caller is about to leave."""
    with closing(quick()) as bench:
        lane = bench.pool._quick
        assert lane is not None
        seen = []

        class Watched(type(lane._done)):  # type: ignore[misc]
            def append(self, item: int) -> None:
                seen.append(bench.statistics())
                super().append(item)
                seen.append(bench.statistics())

        lane._done = lane._ended[next(iter(lane._ended))] = Watched()
        bench.predict(rows()).ended()
        bench.predict(rows()).ended()
        seen.append(bench.statistics())
    assert [(s.sent, s.running, s.done) for s in seen] == [
        (1, 1, 0),
        (1, 0, 1),
        (2, 1, 1),
        (2, 0, 2),
        (2, 0, 2),
    ]


def test_many_callers_get_their_own_answers_and_are_all_counted() -> None:
    problems: list[object] = []
    start = threading.Barrier(9)

    def call(seed: int) -> None:
        start.wait(120)
        for number in range(400):
            value = float(seed * 1000 + number)
            (got,) = bench.pool.run(Call(rows(1, value)))
            if not np.array_equal(got, rows(1, 2 * value)[0]):
                problems.append((value, got))

    def read() -> None:
        start.wait(120)
        sent = 0
        while sent < 8 * 400:
            found = bench.pool.statistics()
            if accounted(found) != found.sent or found.sent < sent:
                problems.append((sent, found))
                return
            sent = found.done

    with closing(quick(workers=2)) as bench:
        clients = [Client(lambda seed=seed: call(seed)) for seed in range(8)]
        reader = Client(read)
        for client in [*clients, reader]:
            assert client.ended().error is None
        assert problems == []
        found = bench.statistics()
        assert (found.sent, found.done, found.run_time.count) == (3200, 3200, 3200)
        assert found.workers[0].done == 3200


def test_runs_are_counted_by_their_priority() -> None:
    with closing(Bench(raising(InputError("no"), at=13.0), quick=True)) as bench:
        bench.pool.run(Call(rows()))
        for value in (1.0, 13.0):
            with suppress(InputError):
                bench.pool.run(Call(rows(1, value), priority=4))
        found = bench.statistics().priorities
        assert {p: (own.sent, own.done, own.queue_wait.count) for p, own in found.items()} == {
            0: (1, 1, 1),
            4: (2, 1, 2),
        }
