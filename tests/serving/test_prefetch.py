"""ahead.py, and what a scheduler makes of places that are ahead of the engine."""

from __future__ import annotations

import pytest
from support.fake_engine import FakeSession

from mindspore_lite.serving.call import Call
from mindspore_lite.serving.prefetch import Line, places_ahead
from mindspore_lite.serving.request import Request, State
from mindspore_lite.serving.scheduler import Scheduler, WorkerPlace
from mindspore_lite.serving.thread_widths import WidthOption

SESSION = FakeSession()


def scheduler(workers: int, ahead: int) -> Scheduler:
    lanes = (WidthOption(workers, SESSION),)
    places = [WorkerPlace(at, lanes, ahead=at >= workers) for at in range(workers + ahead)]
    return Scheduler(places, 100)


def sent(scheduler: Scheduler, now_ns: int) -> Request:
    request = Request(Call(()), now_ns)
    assert scheduler.admit(request, now_ns, direct=True) is not None
    return request


def finished(
    scheduler: Scheduler, request: Request, now_ns: int, error: Exception | None = None
) -> bool:
    slot = next(slot for slot in scheduler.slots if request in slot.batch)
    is_wanted = scheduler.finish(slot, request, now_ns, [], error)
    assert not scheduler.leave(slot, now_ns)
    return is_wanted


@pytest.mark.parametrize(("streams", "ahead"), [(1, 0), (2, 1), (8, 1), (9, 2), (64, 8)])
def test_one_stream_needs_nobody_ahead_and_many_need_several(streams: int, ahead: int) -> None:
    assert places_ahead(streams) == ahead


def test_runs_begin_in_the_order_in_which_they_came() -> None:
    line = Line[str](2)
    assert [line.enter(run) for run in "abcd"] == [True, True, False, False]
    assert [line.leave("b"), line.leave("a")] == ["c", "d"]
    assert [line.leave("c"), line.leave("d")] == [None, None]
    assert line.enter("e")


def test_a_run_that_leaves_before_its_turn_makes_nobody_begin() -> None:
    line = Line[str](1)
    assert [line.enter(run) for run in "abc"] == [True, False, False]
    assert line.leave("b") == "b"
    assert line.leave("a") == "c"


def test_time_inside_of_the_engine_is_waiting_until_another_run_has_ended() -> None:
    d = scheduler(2, 1)
    a, b, c = sent(d, 0), sent(d, 10), sent(d, 20)
    assert d.running == 3
    assert [tally.waits.count for _, tally in d.workers] == [1, 1]
    for request, now_ns in ((b, 100), (c, 190), (a, 300)):
        assert finished(d, request, now_ns)
    first, second = (tally for _, tally in d.workers)
    assert (first.done, second.done) == (2, 1)
    assert first.waits.sum_ns + second.waits.sum_ns == 100 - 20
    assert first.runs.sum_ns + second.runs.sum_ns == (100 - 10) + (190 - 100) + 300


def test_a_request_that_ended_while_it_waited_there_is_counted_once() -> None:
    d = scheduler(2, 1)
    a, b, c = sent(d, 0), sent(d, 0), sent(d, 5)
    assert d.end(c, State.TIMED_OUT, TimeoutError())
    assert not finished(d, c, 50)
    assert finished(d, a, 100)
    assert finished(d, b, 100, ValueError())
    tallies = [tally for _, tally in d.workers]
    assert [sum(getattr(t, name) for t in tallies) for name in ("done", "failed")] == [1, 1]
    assert sum(t.waits.count for t in tallies) == 3
    assert d.ended[State.TIMED_OUT] == 1
    assert d.drained


def test_a_run_that_is_told_to_have_ended_before_its_turn_counts_from_where_it_entered() -> None:
    """The thread of the one before was slow to say that it had ended."""
    d = scheduler(2, 1)
    sent(d, 0), sent(d, 0)
    c = sent(d, 40)
    assert finished(d, c, 100)
    _, tally = d.workers[0]
    assert tally.runs.sum_ns == 60


def test_workers_are_credited_in_turn() -> None:
    d = scheduler(2, 1)
    for now_ns in range(0, 100, 10):
        assert finished(d, sent(d, now_ns), now_ns + 5)
    assert [tally.done for _, tally in d.workers] == [5, 5]
    assert [place.index for place, _ in d.workers] == [0, 1]
