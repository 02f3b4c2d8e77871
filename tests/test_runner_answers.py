"""runner.py: deadlines, Futures, coroutines and closing, on a real engine that can be stopped."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
    Future,
    ThreadPoolExecutor,
    as_completed,
    wait,
)
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.fake_engine import LIMIT_S, Client, accounted, wait_for
from support.models import DIGITS, ENDLESS, built_runner, looping

import mindspore_lite as mslite
from mindspore_lite.errors import ClosedError, QueueFullError, RequestTimeoutError

X = np.array([3, 4], np.float32)
SOON_S = 0.01  # a deadline of a run that never ends
FAR_S = 600.0
QUICK = [np.array(3), X]
NEVER = [ENDLESS, X]


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[mslite.ModelParallelRunner]:
    """One worker, and a model that runs as long as one likes."""
    runner = built_runner(looping(tmp_path / "loop.onnx"), workers_num=1, queue_size=3)
    with closed_at_once(runner):
        yield runner


@contextmanager
def closed_at_once(runner: mslite.ModelParallelRunner) -> Iterator[mslite.ModelParallelRunner]:
    """Endless runs must not hold up a test that failed."""
    try:
        yield runner
    finally:
        runner.close(0)


def answers(runner: mslite.ModelParallelRunner) -> None:
    """The runner still works, and its books add up."""
    for outputs in (runner.predict(QUICK, timeout_s=FAR_S), runner.submit(QUICK).result(LIMIT_S)):
        np.testing.assert_array_equal(outputs[0].get_data_to_numpy(), X)
    found = runner.statistics()
    assert accounted(found) == found.sent


def running(runner: mslite.ModelParallelRunner) -> None:
    wait_for(lambda: runner.statistics().running > 0)


# --- deadlines ------------------------------------------------------------------------------------


def test_a_run_that_does_not_end_is_ended_by_its_deadline(loop: mslite.ModelParallelRunner) -> None:
    with pytest.raises(RequestTimeoutError) as caught:
        loop.predict(NEVER, timeout_s=SOON_S)
    assert str(caught.value).startswith("predict failed! no answer within timeout_s=0.01: ")
    answers(loop)
    found = loop.statistics()
    assert (found.timed_out, found.failed, found.stuck) == (1, 0, 0)


def test_a_request_behind_an_endless_one_is_ended_while_it_waits(
    loop: mslite.ModelParallelRunner,
) -> None:
    endless = loop.submit(NEVER)
    running(loop)
    with pytest.raises(RequestTimeoutError, match="it still waited in the queue"):
        loop.predict(QUICK, timeout_s=SOON_S)
    with pytest.raises(RequestTimeoutError):
        loop.submit(QUICK, timeout_s=SOON_S).result(LIMIT_S)
    assert endless.cancel()
    answers(loop)


def test_the_contexts_deadline_holds_where_a_request_has_none(tmp_path: Path) -> None:
    path = looping(tmp_path / "loop.onnx")
    with closed_at_once(built_runner(path, workers_num=1, timeout_s=SOON_S)) as runner:
        with pytest.raises(RequestTimeoutError, match=r"timeout_s=0\.01"):
            runner.predict(NEVER)
        with pytest.raises(RequestTimeoutError):
            runner.submit(NEVER).result(LIMIT_S)
        np.testing.assert_array_equal(
            runner.predict(QUICK, timeout_s=FAR_S)[0].get_data_to_numpy(), X
        )


@pytest.mark.parametrize("timeout_s", [FAR_S, 10**6, float("inf"), np.float32(100), np.int64(100)])
def test_a_deadline_that_is_not_reached_changes_nothing(
    loop: mslite.ModelParallelRunner, timeout_s: Any
) -> None:
    np.testing.assert_array_equal(
        loop.predict(QUICK, timeout_s=timeout_s)[0].get_data_to_numpy(), X
    )


@pytest.mark.parametrize(
    ("timeout_s", "kind"),
    [
        (0, ValueError),
        (-1, ValueError),
        (float("nan"), ValueError),
        ("1", TypeError),
        (True, TypeError),
    ],
)
def test_deadlines_that_make_no_sense_are_refused(
    loop: mslite.ModelParallelRunner, timeout_s: Any, kind: type[Exception]
) -> None:
    for call in (loop.predict, loop.submit):
        with pytest.raises(kind, match="timeout_s must be"):
            call(QUICK, timeout_s=timeout_s)
    assert loop.statistics().sent == 0


def test_outputs_of_a_request_that_timed_out_are_not_written(
    loop: mslite.ModelParallelRunner,
) -> None:
    memory = np.full(2, -1, np.float32)
    with pytest.raises(RequestTimeoutError):
        loop.predict(NEVER, [mslite.Tensor(memory)], timeout_s=SOON_S)
    answers(loop)
    assert memory.tolist() == [-1, -1]


def test_a_full_queue_refuses_and_what_was_taken_is_answered(
    loop: mslite.ModelParallelRunner,
) -> None:
    endless = loop.submit(NEVER)
    running(loop)
    taken = [loop.submit(QUICK) for _ in range(3)]
    for call in (loop.predict, loop.submit):
        with pytest.raises(QueueFullError, match=r"predict failed! the queue is full: .* is 3"):
            call(QUICK)
    endless.cancel()
    for future in taken:
        future.result(LIMIT_S)
    found = loop.statistics()
    assert (found.sent, found.rejected, found.done, found.cancelled) == (6, 2, 3, 1)


# --- Futures --------------------------------------------------------------------------------------


def test_a_future_is_done_with_a_result_or_an_error(loop: mslite.ModelParallelRunner) -> None:
    good, bad = loop.submit(QUICK), loop.submit([np.array(1), np.zeros(3, np.float32)])
    assert isinstance(good, Future)
    np.testing.assert_array_equal(good.result(LIMIT_S)[0].get_data_to_numpy(), X)
    assert good.exception() is None
    assert good.done()
    assert not good.cancelled()
    assert not good.cancel()
    error = bad.exception(LIMIT_S)
    assert str(error).startswith("predict failed! ")


def test_futures_can_be_waited_for_together(loop: mslite.ModelParallelRunner) -> None:
    endless = loop.submit(NEVER)
    running(loop)
    waiting = [loop.submit(QUICK) for _ in range(3)]
    done, pending = wait([endless, *waiting], timeout=0)
    assert (done, len(pending)) == (set(), 4)
    assert endless.cancel()
    done, _ = wait([endless, *waiting], timeout=LIMIT_S, return_when=FIRST_COMPLETED)
    assert endless in done
    assert set(as_completed(waiting, timeout=LIMIT_S)) == set(waiting)
    assert wait([endless, *waiting], timeout=LIMIT_S).not_done == set()


def test_a_cancelled_future_wakes_who_waits_for_it(loop: mslite.ModelParallelRunner) -> None:
    endless = loop.submit(NEVER)
    running(loop)
    waiters = [Client(lambda: endless.result(LIMIT_S)), Client(lambda: wait([endless], LIMIT_S))]
    seen = []
    endless.add_done_callback(seen.append)
    assert endless.cancel()
    assert endless.cancel()
    assert isinstance(waiters[0].ended().error, CancelledError)
    assert waiters[1].ended().result.done == {endless}
    assert endless.cancelled()
    assert seen == [endless]
    answers(loop)


def test_a_waiting_future_can_be_cancelled_and_never_runs(loop: mslite.ModelParallelRunner) -> None:
    endless, waiting = loop.submit(NEVER), loop.submit(QUICK)
    assert waiting.cancel()
    with pytest.raises(CancelledError):
        waiting.result(0)
    assert endless.cancel()
    answers(loop)
    found = loop.statistics()
    assert (found.cancelled, found.done) == (2, 2)


def test_many_threads_that_cancel_agree(loop: mslite.ModelParallelRunner) -> None:
    for _ in range(20):
        future = loop.submit(QUICK)
        with ThreadPoolExecutor(4) as threads:
            told = list(threads.map(lambda _: future.cancel(), range(4)))  # noqa: B023
        wait([future], LIMIT_S)
        assert future.cancelled() or not any(told)
        assert future.done()
    answers(loop)


def test_a_callback_that_raises_harms_nobody(
    loop: mslite.ModelParallelRunner, caplog: pytest.LogCaptureFixture
) -> None:
    future = loop.submit(QUICK)
    future.add_done_callback(lambda _: 1 / 0)
    future.result(LIMIT_S)
    answers(loop)


def test_a_callback_may_use_the_runner(loop: mslite.ModelParallelRunner) -> None:
    found: Future[Any] = Future()

    def chain(future: Future[list[mslite.Tensor]]) -> None:
        try:
            first = loop.predict([np.array(1), future.result()[0]])
            second = loop.predict([np.array(1), first[0]], timeout_s=FAR_S)
            found.set_result(loop.submit([np.array(1), second[0]]))
        except BaseException as exc:  # noqa: BLE001 - shown by the test
            found.set_exception(exc)

    loop.submit(QUICK).add_done_callback(chain)
    last = found.result(LIMIT_S).result(LIMIT_S)
    np.testing.assert_array_equal(last[0].get_data_to_numpy(), X)


def test_a_callback_may_close_the_runner(tmp_path: Path) -> None:
    runner = built_runner(looping(tmp_path / "loop.onnx"), workers_num=1)
    closed = threading.Event()

    def close(_: object) -> None:
        runner.close()
        closed.set()

    runner.submit(QUICK).add_done_callback(close)
    assert closed.wait(LIMIT_S)
    with pytest.raises(ClosedError):
        runner.predict(QUICK)
    Client(runner.close).ended()


def test_a_callback_at_a_deadline_may_try_again(loop: mslite.ModelParallelRunner) -> None:
    """On the thread that keeps all deadlines, the second try would never be ended."""
    found: Future[Any] = Future()

    def again(future: Future[list[mslite.Tensor]]) -> None:
        try:
            loop.predict(NEVER, timeout_s=SOON_S)
        except BaseException as exc:  # noqa: BLE001 - shown by the test
            found.set_result((future.exception(), exc))

    loop.submit(NEVER, timeout_s=SOON_S).add_done_callback(again)
    first, second = found.result(LIMIT_S)
    assert isinstance(first, RequestTimeoutError)
    assert isinstance(second, RequestTimeoutError)
    answers(loop)


def test_a_callback_at_a_deadline_may_close_the_runner(loop: mslite.ModelParallelRunner) -> None:
    closed = threading.Event()
    more = [loop.submit(NEVER), loop.submit(NEVER, timeout_s=SOON_S)]

    def close(_: object) -> None:
        loop.close(SOON_S)
        closed.set()

    more[1].add_done_callback(close)
    assert closed.wait(LIMIT_S)
    assert isinstance(more[0].exception(LIMIT_S), ClosedError)


# --- coroutines -----------------------------------------------------------------------------------


def test_coroutines_are_answered_each_with_its_own() -> None:
    async def ask(runner: mslite.ModelParallelRunner) -> list[Any]:
        rng = np.random.default_rng(0)
        given = [rng.random((n % 3 + 1, 1, 8, 8), np.float32) for n in range(12)]
        found = await asyncio.gather(*(runner.predict_async([x]) for x in given))
        return [
            (x, outputs[0].get_data_to_numpy()) for x, outputs in zip(given, found, strict=True)
        ]

    with built_runner(DIGITS, workers_num=1) as runner:
        for x, got in asyncio.run(ask(runner)):
            want = runner.predict([x])[0].get_data_to_numpy()
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_a_coroutine_gets_the_errors_of_predict(loop: mslite.ModelParallelRunner) -> None:
    with pytest.raises(RuntimeError, match="predict failed! model input len"):
        asyncio.run(loop.predict_async([]))
    with pytest.raises(RequestTimeoutError, match="predict failed! no answer within"):
        asyncio.run(loop.predict_async(NEVER, timeout_s=SOON_S))
    memory = np.zeros(2, np.float32)
    asyncio.run(loop.predict_async(QUICK, [mslite.Tensor(memory)]))
    np.testing.assert_array_equal(memory, X)


def test_a_cancelled_task_cancels_its_request(loop: mslite.ModelParallelRunner) -> None:
    async def give_up() -> None:
        async with asyncio.timeout(SOON_S):
            await loop.predict_async(NEVER)

    with pytest.raises(TimeoutError):
        asyncio.run(give_up())
    answers(loop)
    assert loop.statistics().cancelled == 1


def test_the_event_loop_is_free_while_a_worker_computes(loop: mslite.ModelParallelRunner) -> None:
    async def both() -> bool:
        task = asyncio.ensure_future(loop.predict_async(NEVER))
        while not loop.statistics().running:
            await asyncio.sleep(0)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return True
        return False

    assert asyncio.run(both())
    answers(loop)


# --- closing --------------------------------------------------------------------------------------


def test_close_finishes_what_was_taken(tmp_path: Path) -> None:
    runner = built_runner(looping(tmp_path / "loop.onnx"), workers_num=1)
    futures = [runner.submit([np.array(2000), X]) for _ in range(10)]
    runner.close()
    assert all(future.done() for future in futures)
    for future in futures:
        np.testing.assert_array_equal(future.result(0)[0].get_data_to_numpy(), X)


def test_close_with_a_limit_ends_what_runs_and_waits(loop: mslite.ModelParallelRunner) -> None:
    direct = Client(lambda: loop.predict(NEVER))
    running(loop)
    futures = [loop.submit(QUICK) for _ in range(3)]
    loop.close(timeout_s=SOON_S)
    for error in [direct.ended().error, *(future.exception(LIMIT_S) for future in futures)]:
        assert isinstance(error, ClosedError)
        assert str(error) == (
            "predict failed! the runner was closed, and the request did not end within 0.01 s"
        )
    assert loop.statistics().closed == 4


def test_close_under_full_load_from_another_thread_answers_everybody(tmp_path: Path) -> None:
    runner = built_runner(looping(tmp_path / "loop.onnx"), workers_num=1)
    counts = {"done": 0, "closed": 0}
    lock = threading.Lock()

    def call() -> None:
        while True:
            try:
                runner.predict([np.array(200), X])
            except ClosedError:
                with lock:
                    counts["closed"] += 1
                return
            with lock:
                counts["done"] += 1

    clients = [Client(call) for _ in range(8)]
    wait_for(lambda: runner.statistics().done >= 50)
    runner.close()
    for client in clients:
        assert client.ended().error is None
    found = runner.statistics()
    assert (found.done, found.closed) == (counts["done"], 8)
    assert found.sent == found.done + 8
