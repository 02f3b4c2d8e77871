"""pool.py and code of its callers: callbacks that fail, wait, ask again, or close the pool."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from support.fake_engine import (
    LIMIT_S,
    Answer,
    Bench,
    Client,
    Gate,
    batch_behind,
    closing,
    double,
    rows,
    still_works,
)

from mindspore_lite.engines.base import Stop
from mindspore_lite.errors import RequestTimeoutError
from mindspore_lite.serving.call import Call
from mindspore_lite.serving.pool import GRACE_S

Arrays = list[np.ndarray]


@pytest.mark.parametrize("kind", [ValueError, SystemExit, KeyboardInterrupt])
def test_a_callback_that_raises_costs_no_worker(
    kind: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: object) -> None:
        raise kind("a mistake of the caller")

    with closing(Bench()) as bench:
        bench.pool.submit(Call(rows()), fail)
        still_works(bench)
        assert bench.threads[0].is_alive()
        assert "a callback of a request failed" in caplog.text
        assert bench.statistics().done == 3


@pytest.mark.parametrize("kind", [ValueError, SystemExit])
def test_a_callback_that_raises_at_a_deadline_holds_up_no_other(
    kind: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    gate, failed = Gate(), threading.Event()

    def fail(_: object) -> None:
        failed.set()
        raise kind("a mistake of the caller")

    with closing(Bench(gate), gate) as bench:
        bench.submit()
        gate.entered()
        bench.pool.submit(Call(rows(), 1.0), fail)
        late = bench.submit(timeout_s=1.0)
        bench.pass_time(1.0)
        with pytest.raises(RequestTimeoutError):
            late.wait()
        assert failed.wait(LIMIT_S)


def test_a_callback_may_predict_and_submit_on_the_same_pool() -> None:
    again = Answer()

    def chain(request: Any) -> None:
        np.testing.assert_array_equal(bench.pool.run(Call(request.outputs))[0], rows(1, 4.0)[0])
        np.testing.assert_array_equal(
            bench.pool.run(Call(request.outputs, 5.0))[0], rows(1, 4.0)[0]
        )
        bench.pool.submit(Call(request.outputs), again)

    with closing(Bench()) as bench:
        bench.pool.submit(Call(rows()), chain)
        assert again.wait()[0][0, 0] == 4
        found = bench.statistics()
        assert (found.sent, found.done, found.running) == (4, 4, 0)
        assert bench.watching == 0


def test_a_deadline_is_kept_inside_of_a_callback() -> None:
    gate, answers, errors = Gate(), Answer(), []

    def chain(request: Any) -> None:
        try:
            bench.pool.run(Call(request.outputs, 1.0))
        except RequestTimeoutError as exc:
            errors.append(exc)
        answers(request)

    with closing(Bench(gate), gate) as bench:
        bench.pool.submit(Call(rows()), chain)
        gate.entered()
        gate.let(1)
        gate.entered()
        bench.watched(1)
        bench.pass_time(1.0)
        answers.wait()
        assert len(errors) == 1
        assert bench.statistics().timed_out == 1
        gate.open()
        still_works(bench)


def test_a_callback_whose_own_run_hangs_costs_no_worker() -> None:
    trap, over, seen = Gate(obeys=False), threading.Event(), []

    def compute(inputs: Arrays, stop: Stop) -> Arrays:
        if (inputs[0] == 2).any():
            trap.wait(stop)
        return double(inputs, stop)

    def chain(request: Any) -> None:
        try:
            bench.pool.run(Call(request.outputs, 1.0))
        except RequestTimeoutError as exc:
            seen.append(exc)
        seen.append(bench.pool.run(Call(rows(1, 5.0)))[0][0, 0].item())  # as any other thread now
        over.set()

    with closing(Bench(compute), trap) as bench:
        bench.pool.submit(Call(rows()), chain)
        trap.entered()
        bench.watched(1)
        bench.pass_time(1.0)
        bench.pass_time(GRACE_S)
        still_works(bench)
        assert bench.statistics().stuck == 1
        trap.open()
        assert over.wait(LIMIT_S)
        assert [type(item) for item in seen] == [RequestTimeoutError, float]
        assert bench.statistics().stuck == 0
        still_works(bench)


def test_a_callback_may_close_the_pool_it_was_called_by() -> None:
    closed = threading.Event()

    def close(_: object) -> None:
        bench.pool.close(None)
        closed.set()

    bench = Bench(workers=2)
    bench.pool.submit(Call(rows()), close)
    assert closed.wait(LIMIT_S)
    Client(lambda: bench.pool.close(None)).ended()
    assert not any(thread.is_alive() for thread in bench.threads)


def test_a_callback_at_a_deadline_may_try_again_with_a_deadline() -> None:
    """It must not run on the thread that watches deadlines, or nobody would end the second try."""
    trap, errors = Gate(obeys=False), []
    over = threading.Event()

    def again(request: Any) -> None:
        errors.append(request.error)
        try:
            bench.pool.run(Call(rows(), 1.0))
        except RequestTimeoutError as exc:
            errors.append(exc)
        over.set()

    with closing(Bench(trap), trap) as bench:
        bench.pool.submit(Call(rows(), 1.0), again)
        trap.entered()
        Client(lambda: bench.pass_time(1.0)).ended()
        bench.watched(2)  # the second try, and the grace of the first
        Client(lambda: bench.pass_time(1.0)).ended()
        assert over.wait(LIMIT_S)
        assert [type(exc) for exc in errors] == [RequestTimeoutError] * 2


def test_a_callback_at_a_deadline_may_close_the_pool() -> None:
    trap, closed = Gate(obeys=False), threading.Event()

    def close(_: object) -> None:
        bench.pool.close(1.0)
        closed.set()

    with closing(Bench(trap), trap) as bench:
        bench.pool.submit(Call(rows(), 1.0), close)
        trap.entered()
        Client(lambda: bench.pass_time(1.0)).ended()
        bench.watched(2)
        bench.pass_time(1.0)
        bench.pass_time(GRACE_S)
        assert closed.wait(LIMIT_S)


def test_who_waits_is_answered_before_the_callbacks_of_the_same_batch() -> None:
    called, go_on = threading.Event(), threading.Event()

    def slow(_: object) -> None:
        called.set()
        assert go_on.wait(LIMIT_S)

    bench, gate, _ = batch_behind(double, [])
    with closing(bench, gate):
        bench.pool.submit(Call(rows(1, 1.0)), slow)
        waiting = bench.predict(rows(1, 2.0))
        bench.queued(2)
        gate.open()
        assert called.wait(LIMIT_S)
        assert waiting.ended().result[0][0, 0] == 4
        assert bench.session.rows == [1, 2]
        go_on.set()


def test_a_worker_that_was_called_twice_is_no_error() -> None:
    """Its signal was set by another, a closing for example, and its thread has not woken yet."""

    class Twice:
        def __init__(self, signal: Any) -> None:
            self.signal = signal

        def release(self) -> None:
            self.signal.release()
            raise RuntimeError("release unlocked lock")

        def acquire(self, *args: Any, **more: Any) -> bool:
            return bool(self.signal.acquire(*args, **more))

    with closing(Bench()) as bench:
        slot = bench.pool._scheduler.slots[0]
        slot.signal = Twice(slot.signal)  # type: ignore[assignment]
        assert bench.pool.run(Call(rows(), 5.0))[0][0, 0] == 2
        bench.submit().wait()
