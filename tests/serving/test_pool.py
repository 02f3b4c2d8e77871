"""pool.py: who computes what, where and in which order; many callers get each their own."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError

import numpy as np
import pytest
from support.fake_engine import (
    LIMIT_S,
    Answer,
    Bench,
    Client,
    FakeSession,
    Gate,
    closing,
    double,
    rows,
    still_works,
    wait_for,
)

from mindspore_lite.engines.base import Stop
from mindspore_lite.errors import ClosedError, EngineError, QueueFullError
from mindspore_lite.serving.call import Call
from mindspore_lite.serving.pool import Pool
from mindspore_lite.serving.request import State

# --- where a request is computed ------------------------------------------------------------------


def test_an_idle_pool_computes_on_the_callers_own_thread() -> None:
    with closing(Bench(workers=2)) as bench:
        caller = bench.predict(rows(3, 2.0))
        (got,) = caller.ended().result
        np.testing.assert_array_equal(got, np.full((3, 2), 4.0, np.float32))
        assert bench.session.threads == [caller.ident]


def test_the_main_thread_computes_only_what_is_short_for_certain() -> None:
    """Ctrl-C does not reach it while it computes."""
    with closing(Bench()) as bench:
        for size in (3, 3, 4, 4):
            bench.pool.run(Call(rows(size)))
        own, workers = threading.get_ident(), bench.threads[0].ident
        assert bench.session.threads == [workers, own, workers, own]


def test_a_request_with_a_deadline_is_computed_on_the_workers_thread() -> None:
    with closing(Bench()) as bench:
        bench.pool.run(Call(rows(), timeout_s=5.0))
        assert bench.session.threads == [bench.threads[0].ident]


def test_a_bound_worker_computes_on_its_own_thread_and_core() -> None:
    core = max(os.sched_getaffinity(0))
    before = os.sched_getaffinity(0)
    with closing(Bench(cores=(core,))) as bench:
        bench.pool.run(Call(rows()))
        bench.submit().wait()
        assert bench.session.threads == [bench.threads[0].ident] * 2
        assert bench.session.cores == [{core}] * 2
        assert os.sched_getaffinity(0) == before


def test_a_second_caller_gets_the_second_worker() -> None:
    gate = Gate()
    with closing(Bench(gate, workers=2), gate) as bench:
        callers = [bench.predict(rows(1, value)) for value in (1.0, 2.0)]
        gate.entered(2)
        assert bench.statistics().running == 2
        assert sorted(bench.session.threads) == sorted(c.ident for c in callers)


def test_a_caller_that_leaves_hands_the_queue_to_the_workers_thread() -> None:
    gate = Gate()
    with closing(Bench(gate), gate) as bench:
        first = bench.predict()
        gate.entered()
        second = bench.submit(rows(1, 5.0))
        gate.let(1)
        np.testing.assert_array_equal(first.ended().result[0], rows(1, 2.0)[0])
        gate.entered()
        gate.let(1)
        np.testing.assert_array_equal(second.wait()[0], rows(1, 10.0)[0])
        assert bench.session.threads == [first.ident, bench.threads[0].ident]


def test_requests_are_computed_in_the_order_in_which_they_came() -> None:
    gate, order = Gate(), []

    def compute(inputs, stop):  # type: ignore[no-untyped-def]
        order.append(inputs[0][0, 0].item())
        return gate(inputs, stop)

    with closing(Bench(compute), gate) as bench:
        answers = [bench.submit(rows(1, float(value))) for value in range(20)]
        gate.open()
        for answer in answers:
            answer.wait()
    assert order == list(range(20))


def test_the_answer_of_a_submitted_request_comes_on_the_workers_thread() -> None:
    with closing(Bench()) as bench:
        answer = bench.submit()
        answer.wait()
        assert answer.thread == bench.threads[0].ident
        assert answer.times == 1


def test_outputs_of_one_request_stay_when_others_follow() -> None:
    with closing(Bench()) as bench:
        kept = bench.pool.run(Call(rows(2, 3.0)))[0]
        bench.pool.run(Call(rows(2, 4.0)))
        np.testing.assert_array_equal(kept, rows(2, 6.0)[0])


# --- the queue's bound ----------------------------------------------------------------------------


def test_a_full_queue_refuses_and_says_what_to_do() -> None:
    gate = Gate()
    with closing(Bench(gate, queue_size=2), gate) as bench:
        accepted = [bench.submit()]
        gate.entered()
        accepted += [bench.submit() for _ in range(2)]
        with pytest.raises(QueueFullError, match=r"is full: .*queue_size is 2, and as"):
            bench.pool.run(Call(rows()))
        with pytest.raises(QueueFullError):
            bench.submit()
        gate.open()
        for answer in accepted:
            answer.wait()
        found = bench.statistics()
        assert (found.sent, found.done, found.rejected) == (5, 3, 2)


def test_requests_for_which_a_worker_was_called_do_not_fill_the_queue() -> None:
    """However slowly the threads wake: as many run at once as there are workers."""
    with closing(Bench(workers=3, queue_size=1)) as bench, bench.held() as answers:
        for _ in range(4):
            answers.append(bench.submit())
        with pytest.raises(QueueFullError):
            bench.submit()
    assert [len(answer.request.outputs) for answer in answers] == [1] * 4


def test_of_two_thousand_callers_on_a_queue_of_ten_all_are_answered_or_refused() -> None:
    gate, refused = Gate(), threading.Semaphore(0)

    def call(value: float) -> bool:
        try:
            return bool(bench.pool.run(Call(rows(1, value)))[0][0, 0] == 2 * value)
        except QueueFullError:
            refused.release()
            raise

    with closing(Bench(gate, workers=2, queue_size=10), gate) as bench:
        callers = [Client(lambda n=n: call(float(n))) for n in range(2000)]
        for _ in range(1988):
            assert refused.acquire(timeout=LIMIT_S)
        found = bench.statistics()
        assert (found.sent, found.running, found.queued, found.rejected) == (2000, 2, 10, 1988)
        gate.open()
        answers = [caller.ended().result for caller in callers if caller.ended().error is None]
        assert answers == [True] * 12
        assert bench.statistics().done == 12


# --- widths ---------------------------------------------------------------------------------------


def wide_and_narrow(gate: Gate) -> tuple[FakeSession, FakeSession, Bench]:
    """Two workers; a lone request may have both cores."""
    wide, narrow = FakeSession(gate), FakeSession(gate)
    bench = Bench(workers=2, sessions=[(1, wide), (2, narrow)])
    return wide, narrow, bench


def test_a_lone_request_is_wide_and_a_crowd_is_narrow() -> None:
    gate = Gate()
    wide, narrow, bench = wide_and_narrow(gate)
    with closing(bench, gate):
        first = bench.predict()
        gate.entered()
        second = bench.predict()
        gate.entered()
        assert (len(wide.rows), len(narrow.rows)) == (1, 1)
        gate.let(2)
        first.ended()
        second.ended()


def test_a_crowd_is_forgotten_after_some_lone_requests() -> None:
    gate = Gate()
    wide, narrow, bench = wide_and_narrow(gate)
    with closing(bench, gate):
        pair = [bench.predict() for _ in range(2)]
        gate.entered(2)
        gate.open()
        for caller in pair:
            caller.ended()
        before = len(wide.rows)
        bench.pool.run(Call(rows()))
        assert len(wide.rows) == before, "the crowd is still remembered"
        for _ in range(100):
            bench.pool.run(Call(rows()))
        assert len(wide.rows) > before
        remembered = len(narrow.rows)
        bench.pool.run(Call(rows()))
        assert len(narrow.rows) == remembered, "alone for long"


def test_runs_that_fail_at_once_do_not_tell_which_width_pays() -> None:
    def compute(inputs: list[np.ndarray], stop: Stop) -> list[np.ndarray]:
        if (inputs[0] == 13).any():
            bench.clock.advance(0.001)
            raise ValueError("refused at once")
        bench.clock.advance(1.0)
        return double(inputs, stop)

    wide, narrow = FakeSession(compute), FakeSession(compute)
    with closing(Bench(workers=2, sessions=[(1, wide), (2, narrow)])) as bench:
        for _ in range(100):
            bench.pool._scheduler._widths._crowd = 9.0  # as if many were there
            with pytest.raises(EngineError):
                bench.pool.run(Call(rows(1, 13.0)))
        bench.pool._scheduler._widths._crowd = 0.0
        for _ in range(5):
            bench.pool.run(Call(rows()))
    assert (len(wide.rows), len(narrow.rows)) == (5, 100)


def test_what_waits_counts_for_the_crowd() -> None:
    gate = Gate()
    wide, narrow, bench = wide_and_narrow(gate)
    with closing(bench, gate), bench.held() as answers:
        answers += [bench.submit() for _ in range(5)]
        gate.open()
    assert (wide.rows, narrow.rows) == ([], [1] * 5)


# --- never swapped --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("max_rows", "wait_s", "bound"),
    [(0, 0.0, False), (0, 0.0, True), (7, 0.0, False), (7, 1e-4, True)],
)  # fmt: skip
def test_callers_get_their_own_answers_under_a_heavy_mixed_load(
    max_rows: int, wait_s: float, bound: bool
) -> None:
    """Every request has values of its own; failures, cancelling and refusals are mixed in."""

    def compute(inputs, stop):  # type: ignore[no-untyped-def]
        if (inputs[0] < 0).any():
            raise ValueError("negative")
        return double(inputs, stop)

    cores = (min(os.sched_getaffinity(0)),) if bound else ()
    bench = Bench(compute, workers=3, cores=cores, max_rows=max_rows, wait_s=wait_s, queue_size=20)
    bench.pool._clock_ns = time.monotonic_ns  # so that gathering ends by itself
    problems: list[str] = []
    refused: list[int] = []

    def call(seed: int) -> None:
        rng = random.Random(seed)
        for number in range(60):
            value = float(seed * 1000 + number + 1)
            given = rows(rng.randint(1, 12), value if rng.random() < 0.9 else -value)
            try:
                if rng.random() < 0.5:
                    (got,) = bench.pool.run(Call(given, rng.choice([None, 1e6])))
                else:
                    answer = Answer()
                    request = bench.pool.submit(Call(given, rng.choice([None, 1e6])), answer)
                    if rng.random() < 0.2 and bench.pool.cancel(request):
                        continue
                    (got,) = answer.wait()
            except QueueFullError:
                refused.append(number)
            except Exception as exc:  # noqa: BLE001 - judged here
                if given[0][0, 0] > 0 or "negative" not in str(exc):
                    problems.append(repr(exc))
            else:
                if given[0][0, 0] < 0 or not np.array_equal(got, given[0] * 2):
                    problems.append(f"{value}: {got}")

    with closing(bench):
        callers = [Client(lambda seed=seed: call(seed)) for seed in range(12)]
        for caller in callers:
            assert caller.ended().error is None
        found = bench.statistics()
    assert problems == []
    assert (found.queued, found.running, found.sent) == (0, 0, 12 * 60)
    assert found.rejected == len(refused)


# --- closing --------------------------------------------------------------------------------------


def test_closing_finishes_what_was_taken_and_ends_the_threads() -> None:
    gate = Gate()
    bench = Bench(gate, workers=2)
    answers = [bench.submit(rows(1, float(value))) for value in range(10)]
    gate.entered(2)
    threads = bench.threads
    closer = Client(lambda: bench.pool.close(None))
    gate.open()
    closer.ended()
    for value, answer in enumerate(answers):
        assert answer.wait()[0][0, 0] == 2 * value
    assert not any(thread.is_alive() for thread in threads)
    assert bench.session.closed == 1
    with pytest.raises(ClosedError, match="build it again"):
        bench.pool.run(Call(rows()))
    with pytest.raises(ClosedError):
        bench.submit()
    found = bench.statistics()
    assert (found.sent, found.done, found.closed) == (12, 10, 2)


def test_closing_waits_for_a_run_on_a_callers_thread() -> None:
    gate = Gate()
    bench = Bench(gate)
    caller = bench.predict()
    gate.entered()
    queued = bench.submit()
    closer = Client(lambda: bench.pool.close(None))
    gate.let(1)
    assert caller.ended().error is None
    gate.open()
    queued.wait()
    closer.ended()
    assert not bench.threads[0].is_alive()


def test_closing_twice_and_at_once_is_harmless() -> None:
    bench = Bench(workers=2)
    closers = [Client(lambda: bench.pool.close(5.0)) for _ in range(4)]
    for closer in closers:
        assert closer.ended().error is None
    bench.pool.close(None)
    assert bench.watching == 0


@pytest.mark.parametrize("wait_s", [0.0, 3600.0])
def test_a_pool_that_is_closed_right_after_a_request_ends(wait_s: float) -> None:
    """Threads that are woken by the closing, while something is still queued, must end later."""
    for _ in range(60):
        bench = Bench(workers=4, max_rows=4 if wait_s else 0, wait_s=wait_s)
        answer = bench.submit()
        Client(lambda: bench.pool.close(None)).ended()  # noqa: B023 - ended before the next turn
        answer.wait()
        assert not any(thread.is_alive() for thread in bench.threads)


def test_an_abandoned_pool_drains_and_ends_its_threads() -> None:
    gate = Gate()
    bench = Bench(gate, workers=2)
    answers = [bench.submit() for _ in range(5)]
    gate.entered(2)
    bench.pool.abandon()
    gate.open()
    for answer in answers:
        answer.wait()
    for thread in bench.threads:
        thread.join(LIMIT_S)
        assert not thread.is_alive()


# --- statistics -----------------------------------------------------------------------------------


def test_statistics_tell_waiting_and_running_times_of_each_worker() -> None:
    gate = Gate()
    with closing(Bench(gate), gate) as bench:
        first = bench.submit()
        gate.entered()
        second = bench.submit()
        found = bench.statistics()
        assert (found.queued, found.running) == (1, 1)
        bench.clock.advance(0.5)
        gate.let(1)
        first.wait()
        gate.entered()
        bench.clock.advance(1.0)
        gate.let(1)
        second.wait()
        found = bench.statistics()
    assert found.queue_wait.max_ms == 500
    assert found.run_time.max_ms == 1000
    assert found.run_time.mean_ms == 750
    assert found.run_time.count == found.queue_wait.count == 2
    (worker,) = found.workers
    assert (worker.index, worker.threads, worker.cores, worker.node) == (0, 1, (), -1)
    assert (worker.done, worker.failed) == (2, 0)
    assert (worker.queue_wait, worker.run_time) == (found.queue_wait, found.run_time)
    assert found.batches == {1: 2}
    assert found.layout is bench.layout


def test_statistics_of_workers_add_up() -> None:
    gate = Gate()
    with closing(Bench(gate, workers=3), gate) as bench:
        callers = [bench.predict() for _ in range(3)]
        gate.entered(3)
        gate.open()
        for caller in callers:
            caller.ended()
        found = bench.statistics()
        assert [worker.done for worker in found.workers] == [1, 1, 1]


def test_a_statistics_record_does_not_change_later() -> None:
    with closing(Bench()) as bench:
        bench.pool.run(Call(rows()))
        before = bench.statistics()
        bench.pool.run(Call(rows()))
        assert (before.sent, before.done, before.batches) == (1, 1, {1: 1})
        before.batches[99] = 1
        assert 99 not in bench.statistics().batches


def test_threads_that_cannot_be_started_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[threading.Thread] = []
    start = threading.Thread.start

    def refuse_the_third(thread: threading.Thread) -> None:
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    bench = Bench(workers=1)
    with closing(bench):
        monkeypatch.setattr(threading.Thread, "start", refuse_the_third)
        with pytest.raises(RuntimeError, match=r"worker threads cannot be started: can't start"):
            Pool(bench.places * 3, bench.layout, watchdog=bench.watchdog)
        monkeypatch.undo()
    for thread in started:
        thread.join(LIMIT_S)
        assert not thread.is_alive()


def test_an_ended_request_holds_no_arrays() -> None:
    with closing(Bench()) as bench:
        answer = bench.submit()
        answer.wait()
        assert answer.request.call.inputs == ()
        assert answer.request.state is State.DONE


def test_a_worker_whose_cores_are_gone_works_on_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with closing(Bench(cores=(100_000,))) as bench:
        still_works(bench)
    assert "worker 0 is not bound" in caplog.text


def test_a_request_that_was_cancelled_before_it_was_admitted_never_runs() -> None:
    with closing(Bench()) as bench, pytest.raises(CancelledError):
        bench.pool.run(Call(rows(), known=lambda end: end()))
    assert bench.session.threads == []
    assert bench.statistics().sent == 0


@pytest.mark.parametrize("timeout_s", [None, 9.0])
def test_a_caller_that_waits_is_told_when_another_cancels_its_request(
    timeout_s: float | None,
) -> None:
    gate = Gate()
    with closing(Bench(gate), gate) as bench:
        ends: list[Callable[[], object]] = []
        callers = []
        for _ in range(2):  # one runs, one waits in the queue
            callers.append(
                Client(lambda: bench.pool.run(Call(rows(), timeout_s, known=ends.append)))
            )
            wait_for(lambda: bench.pool.statistics().sent == len(callers))
        gate.entered()
        for end, caller in reversed(list(zip(ends, callers, strict=True))):
            end()
            assert isinstance(caller.ended().error, CancelledError)
            end()  # again, which is harmless
        gate.open()
        still_works(bench)
        assert bench.statistics().cancelled == 2
