"""meter.py: what is counted of requests, and that it adds up at every moment."""

from __future__ import annotations

import gc
import time
import weakref
from concurrent import futures
from typing import Any

import numpy as np
import pytest
from support.served import FakeService

from mindspore_lite import errors
from mindspore_lite.server.errors import Kind, NoRoomError, RequestError
from mindspore_lite.server.meter import (
    FAILED,
    INVALID,
    PHASES,
    REJECTED,
    Counts,
    RequestTimes,
    reason_of,
)
from mindspore_lite.server.models import Models, ServedModel
from mindspore_lite.server.observer import Observer
from mindspore_lite.serving.call import Call
from mindspore_lite.serving.timing import Run, Timing


def served(max_batch_size: int = 0) -> ServedModel:
    service: Any = None
    return ServedModel("m", "1", service, {}, {}, max_batch_size=max_batch_size)


def request(model: ServedModel, run: Run | None, rows: int = 0, at_ns: int = 1000) -> RequestTimes:
    """A request that took 1 us in every phase, but for what its run says."""
    times = RequestTimes(at_ns, at_ns + 1000)
    times.model, times.rows = model, rows
    times.decoded_ns = at_ns + 2000
    times.timing = Timing()
    times.timing.run = run
    return times


def counted(times: RequestTimes, reason: str = "") -> bool:
    assert times.model is not None
    return times.model.meter.count(times, reason)


def run_at(at_ns: int, rows: int = 1, most: int = 0) -> Run:
    """1 us each to join, run and split."""
    run = Run(at_ns + 3000, at_ns + 6000, at_ns + 4000, at_ns + 5000, rows)
    run.most = most
    return run


def check(counts: Counts) -> None:
    """The rules that hold at every moment."""
    assert counts.executions == sum(one.runs for one in counts.batches.values())
    assert counts.rows == sum(rows * one.runs for rows, one in counts.batches.items())
    parts_ns = counts.queue_ns + counts.input_ns + counts.infer_ns + counts.output_ns
    assert counts.success_ns >= parts_ns
    assert counts.success == sum(counts.latency)
    late = counts.rejected[REJECTED.index("timeout")]
    assert counts.fail == sum(counts.failed) + late


def test_phases_follow_one_another_and_add_up() -> None:
    times = request(served(), run_at(1000))
    times.encoded_ns, times.sent_ns = 8000, 9500
    phases = times.phases_ns()
    assert list(phases) == list(PHASES)
    assert phases == {
        "receive": 1000, "decode": 1000, "queue": 1000, "batch": 2000, "run": 1000,
        "encode": 1000, "send": 1500,
    }  # fmt: skip
    assert sum(phases.values()) == times.total_ns() == 8500


def test_a_request_that_never_ran_waited_until_its_end() -> None:
    times = request(served(), None)
    times.encoded_ns = 10_000
    assert times.phases_ns()["queue"] == 7000
    refused = RequestTimes(1000, 2000)
    refused.encoded_ns = 5000
    assert refused.phases_ns()["decode"] == 3000


def test_each_request_is_charged_for_its_whole_batch_which_counts_once() -> None:
    model = served(4)
    run = run_at(1000, rows=4)
    for rows in (1, 3):
        assert counted(request(model, run, rows))
        check(model.meter.counts())
    counts = model.meter.counts()
    assert (counts.success, counts.executions, counts.rows) == (2, 1, 4)
    assert (counts.input_ns, counts.infer_ns, counts.output_ns) == (2000, 2000, 2000)
    (batch,) = counts.batches.items()
    assert batch[0] == 4 and batch[1].infer_ns == 1000


def test_rows_of_a_model_with_a_batch_axis_count_without_batching() -> None:
    model = served(4)
    counted(request(model, run_at(1000), rows=3))
    assert model.meter.counts().rows == 3


def test_rows_of_a_model_without_a_batch_axis_count_as_one() -> None:
    model = served()
    counted(request(model, run_at(1000)))
    assert model.meter.counts().rows == 1


def test_a_request_with_more_rows_than_a_batch_counts_in_parts() -> None:
    model = served()
    counted(request(model, run_at(1000, rows=19, most=8)))
    counts = model.meter.counts()
    check(counts)
    assert {rows: one.runs for rows, one in counts.batches.items()} == {8: 2, 3: 1}


def test_a_request_is_counted_once() -> None:
    model = served()
    times = request(model, run_at(1000))
    assert counted(times)
    assert not counted(times, "cancelled")
    counts = model.meter.counts()
    assert counts.success == 1 and not counts.fail


def test_hits_of_the_cache_are_no_runs() -> None:
    model = served()
    times = request(model, None)
    times.timing = Timing()
    times.timing.hit_ns = 500
    counted(times)
    missed = request(model, run_at(1000))
    assert missed.timing is not None
    missed.timing.miss_ns = 300
    counted(missed)
    counts = model.meter.counts()
    check(counts)
    assert (counts.success, counts.hits, counts.misses, counts.executions) == (2, 1, 1, 1)
    assert (counts.hit_ns, counts.miss_ns) == (500, 300)


REASONS = [
    (errors.QueueFullError("x"), "queue_full"),
    (errors.RequestTimeoutError("x"), "deadline"),
    (errors.WorkerDiedError("x"), "crash"),
    (errors.ResourceError("x"), "memory"),
    (MemoryError(), "memory"),
    (errors.ClosedError("x"), "not_ready"),
    (errors.CancelledError("x"), "cancelled"),
    (futures.CancelledError(), "cancelled"),
    (errors.EngineError("x"), "error"),
    (KeyError("a bug"), "error"),
    (errors.ShapeError("x"), INVALID),
    (NoRoomError(1), "memory"),
    (RequestError(Kind.INVALID, "x"), INVALID),
    (RequestError(Kind.NOT_FOUND, "x"), INVALID),
    (RequestError(Kind.DEADLINE, "x"), "timeout"),
    (RequestError(Kind.UNAVAILABLE, "x"), "not_ready"),
]


@pytest.mark.parametrize(("exc", "reason"), REASONS)
def test_failures_are_counted_by_reason(exc: BaseException, reason: str) -> None:
    model = served()
    assert reason_of(exc) == reason
    times = request(model, None)
    times.failed(exc)
    counted(times)
    counts = model.meter.counts()
    check(counts)
    named = dict(zip((*FAILED, *REJECTED), (*counts.failed, *counts.rejected), strict=True))
    assert {name: n for name, n in named.items() if n} == ({reason: 1} if reason != INVALID else {})
    assert not counts.success and not counts.rows


def test_a_request_that_was_too_late_in_the_queue_was_rejected() -> None:
    late = errors.RequestTimeoutError("x")
    late.was_waiting = True
    assert reason_of(late) == "timeout"


def test_a_pool_says_when_it_computed_what() -> None:
    service = FakeService()
    models = Models()
    model = models.load("m", "1", lambda: service)
    try:
        times = RequestTimes()
        times.model = model
        arrays = [np.zeros((1, 2), np.float32) for _ in model.inputs]
        call = Call(arrays)
        times.decoded(call)
        service.run(call)
        counted(times)
        Observer().sent(times, 200, "http")
    finally:
        models.close(None)
    assert times.run is not None and times.run.rows == 1
    assert all(ns >= 0 for ns in times.phases_ns().values())
    assert sum(times.phases_ns().values()) == times.total_ns()
    check(model.meter.counts())


def test_latencies_lie_between_their_bounds() -> None:
    model = served()
    for inside_ns in (100_000, 100_001, 40_000_000_000):
        times = request(model, run_at(1000))
        times.received_ns = time.monotonic_ns() - inside_ns
        counted(times)
    counts = model.meter.counts().latency
    assert sum(counts[:-1]) == 2 and counts[-1] == 1


def test_a_service_that_does_not_say_when_it_ran_is_counted_all_the_same() -> None:
    model = served()
    counted(request(model, None))
    counts = model.meter.counts()
    check(counts)
    assert (counts.success, counts.executions, counts.hits) == (1, 1, 0)
    assert counts.infer_ns > 0


def test_requests_that_are_not_read_yet_hold_no_model() -> None:
    model = served()
    counted(request(model, run_at(1000)))
    gone = weakref.ref(model)
    gc.disable()
    try:
        del model
        assert gone() is None
    finally:
        gc.enable()
