"""observer.py: the slowest requests, refusals, and marks for what should be looked at."""

from __future__ import annotations

from typing import Any

from mindspore_lite import errors
from mindspore_lite.server.meter import RequestTimes
from mindspore_lite.server.models import ServedModel
from mindspore_lite.server.observer import Observer, Refused, Slowest


def request(total_ms: int, id_: str = "") -> RequestTimes:
    service: Any = None
    times = RequestTimes(1, 1)
    times.model, times.id = ServedModel("m", "1", service, {}, {}), id_
    times.encoded_ns = 1 + total_ms * 1_000_000
    return times


def test_the_slowest_come_first_and_are_few() -> None:
    slowest = Slowest(lambda: 0)
    for ms in range(1000):
        slowest.add(request(ms), 200)
    found = slowest.recent()
    assert [one["ms"] for one in found] == [float(ms) for ms in range(999, 979, -1)]
    assert sum(found[0]["phases_ms"].values()) == found[0]["ms"]


def test_the_slowest_are_forgotten_after_minutes() -> None:
    now_s = [0]
    slowest = Slowest(lambda: now_s[0] * 10**9)
    slowest.add(request(500, "old"), 200)
    now_s[0] = 4 * 60
    slowest.add(request(1, "new"), 504)
    assert [one["id"] for one in slowest.recent()] == ["old", "new"]
    now_s[0] = 5 * 60 + 1
    assert [one["id"] for one in slowest.recent()] == ["new"]
    now_s[0] = 60 * 60
    assert slowest.recent() == []


def test_a_long_id_is_cut() -> None:
    slowest = Slowest()
    slowest.add(request(1, "x" * 1024), 200)
    assert len(slowest.recent()[0]["id"]) == 128


def test_refusals_are_counted_by_status() -> None:
    refused = Refused()
    for status in (401, 413, 401):
        refused.add(status)
    assert refused.counts() == {401: 2, 413: 1}


def test_rejections_and_deadlines_leave_marks() -> None:
    observer = Observer()
    for exc in (errors.QueueFullError("x"), errors.RequestTimeoutError("x")):
        times = request(1)
        times.encoded_ns = 0
        times.failed(exc)
        observer.answered(times)
        observer.answered(times)
    assert [(m["what"], m["text"], m["count"]) for m in observer.marks.recent()] == [
        ("rejected", "queue_full", 1),
        ("deadline", "", 1),
    ]


def test_what_is_for_no_model_is_not_counted() -> None:
    observer = Observer()
    times = RequestTimes()
    observer.answered(times)
    observer.sent(times, 404, "http")
    assert not observer.slowest.recent()
