"""scheduler.py: single decisions that the state machine does not name."""

from __future__ import annotations

import pytest
from support.fake_engine import FakeSession

from mindspore_lite.errors import ClosedError, QueueFullError
from mindspore_lite.serving.call import Call
from mindspore_lite.serving.request import Request, State
from mindspore_lite.serving.scheduler import Batching, Scheduler, Slot, WorkerPlace
from mindspore_lite.serving.thread_widths import WidthOption

SESSION = FakeSession()
WAIT_NS = 100


def scheduler(
    workers: int = 1, max_rows: int = 0, wait_ns: int = 0, queue_size: int = 100
) -> Scheduler:
    places = [WorkerPlace(index, (WidthOption(workers, SESSION),)) for index in range(workers)]
    return Scheduler(places, queue_size, Batching(max_rows, wait_ns) if max_rows else None)


def queued(scheduler: Scheduler, rows: int = 1, key: object = "k", now_ns: int = 0) -> Request:
    request = Request(Call(()), now_ns, rows=rows, key=key)
    assert scheduler.admit(request, now_ns, direct=False) is None
    return request


def woken(scheduler: Scheduler) -> Slot:
    slot = scheduler.to_wake()
    assert slot is not None
    return slot


def taken(scheduler: Scheduler, slot: Slot, now_ns: int = 0) -> list[Request]:
    assert scheduler.claim(slot, now_ns) is None
    return slot.batch


# --- batches --------------------------------------------------------------------------------------


def test_requests_of_one_key_are_joined_up_to_the_limit_of_rows() -> None:
    d = scheduler(max_rows=4)
    a, b, c = queued(d, 2), queued(d, 2), queued(d, 1)
    slot = woken(d)
    assert taken(d, slot) == [a, b]
    assert list(d.queue) == [c]


def test_requests_of_other_keys_and_without_a_key_stay_out() -> None:
    d = scheduler(max_rows=9)
    a, other, alone, b = queued(d), queued(d, key="o"), queued(d, key=None), queued(d)
    assert taken(d, woken(d)) == [a, b]
    assert list(d.queue) == [other, alone]


def test_a_request_with_more_rows_than_a_batch_is_taken_alone() -> None:
    d = scheduler(max_rows=4)
    large, _ = queued(d, 10), queued(d, 1)
    assert taken(d, woken(d)) == [large]
    assert d.batches == {4: 2, 2: 1}


def test_requests_without_rows_are_joined_like_others() -> None:
    d = scheduler(max_rows=4)
    none, some = queued(d, 0), queued(d, 4)
    assert taken(d, woken(d)) == [none, some]
    assert d.drained is False
    assert not d._rows


def test_a_request_waits_for_others_and_no_longer_than_its_time() -> None:
    d = scheduler(max_rows=4, wait_ns=WAIT_NS)
    a = queued(d, 1, now_ns=1000)
    slot = woken(d)
    assert d.claim(slot, 1010) == 1000 + WAIT_NS
    assert d.gathering is slot
    b = queued(d, 1, now_ns=1050)
    assert d.to_wake() is None
    assert taken(d, slot, 1000 + WAIT_NS) == [a, b]


def test_a_full_batch_leaves_at_once() -> None:
    d = scheduler(max_rows=4, wait_ns=WAIT_NS)
    a = queued(d, 3)
    slot = woken(d)
    assert d.claim(slot, 0) == WAIT_NS
    b = queued(d, 1)
    assert d.to_wake() is slot
    assert taken(d, slot) == [a, b]


def test_a_request_that_cannot_be_joined_does_not_wait() -> None:
    d = scheduler(max_rows=4, wait_ns=WAIT_NS)
    alone = queued(d, key=None)
    assert taken(d, woken(d)) == [alone]


def test_a_full_queue_ends_the_gathering_before_anyone_is_refused() -> None:
    d = scheduler(2, max_rows=100, wait_ns=WAIT_NS, queue_size=3)
    queued(d)
    slot = woken(d)
    assert d.claim(slot, 0) == WAIT_NS
    queued(d)
    assert d.to_wake() is None
    queued(d)
    assert d.to_wake() is slot
    assert len(taken(d, slot)) == 3


def test_a_closing_desk_gathers_no_more() -> None:
    d = scheduler(max_rows=4, wait_ns=WAIT_NS)
    a = queued(d)
    slot = woken(d)
    assert d.claim(slot, 0) == WAIT_NS
    d.close()
    assert taken(d, slot, 1) == [a]


def test_a_gathering_whose_requests_all_left_makes_the_slot_idle() -> None:
    d = scheduler(max_rows=4, wait_ns=WAIT_NS)
    a = queued(d)
    slot = woken(d)
    assert d.claim(slot, 0) == WAIT_NS
    assert d.end(a, State.CANCELLED, RuntimeError())
    assert d.claim(slot, WAIT_NS) is None
    assert d.drained


def test_requests_far_behind_are_left_for_the_next_batch() -> None:
    """The scheduler looks through a bounded part of the queue, under the pool's lock."""
    d = scheduler(max_rows=1000, queue_size=2000)
    first = queued(d)
    for _ in range(1000):
        queued(d, key=None)
    far = queued(d)
    assert taken(d, woken(d)) == [first]
    assert far in d.queue


def test_members_of_a_failed_batch_come_next_each_alone_and_in_order() -> None:
    d = scheduler(2, max_rows=4)
    a, b, late, behind = queued(d), queued(d), queued(d), queued(d, 4)
    slot = woken(d)
    assert taken(d, slot) == [a, b, late]
    d.end(late, State.TIMED_OUT, RuntimeError())
    d.put_back(slot)
    assert list(d.queue) == [a, b, behind]
    assert (d.running, a.state) == (0, State.QUEUED)
    assert taken(d, slot) == [a]
    assert taken(d, woken(d)) == [b]


def test_a_closing_desk_wakes_no_idle_slot() -> None:
    """Its thread may have ended; who put requests back goes on with them."""
    d = scheduler(2, max_rows=4)
    a, b = queued(d), queued(d)
    slot = woken(d)
    d._flight = 4.0  # so that both are taken at once
    assert taken(d, slot) == [a, b]
    d.close()
    d.put_back(slot)
    assert d.to_wake() is None
    assert [*taken(d, slot), *taken(d, slot)] == [a, b]


# --- who is refused -------------------------------------------------------------------------------


def test_a_refused_request_is_counted_and_says_what_to_do() -> None:
    d = scheduler(queue_size=1)
    for _ in range(2):
        queued(d)
        d.to_wake()
    with pytest.raises(QueueFullError, match=r"queue_size is 1.*send fewer at once, or raise it"):
        queued(d)
    assert (d.sent, d.ended[State.REJECTED]) == (3, 1)


def test_a_closed_desk_refuses_even_when_idle() -> None:
    d = scheduler()
    d.close()
    for direct in (False, True):
        with pytest.raises(ClosedError, match="the runner is closed; build it again"):
            d.admit(Request(Call(()), 0), 0, direct=direct)
    assert (d.sent, d.ended[State.CLOSED]) == (2, 2)


# --- who computes ---------------------------------------------------------------------------------


def test_the_first_worker_is_taken_first() -> None:
    """Its sessions are the wide ones, where workers differ."""
    d = scheduler(3)
    slots = [d.admit(Request(Call(()), 0), 0, direct=True) for _ in range(3)]
    assert [slot.place.index for slot in slots if slot] == [0, 1, 2]
    for slot in (slots[2], slots[0]):
        assert slot is not None
        d.finish(slot, slot.batch[0], 0, [])
        assert not d.leave(slot, 0)
    assert d.admit(Request(Call(()), 0), 0, direct=True) is slots[0]


def test_no_direct_run_overtakes_the_queue() -> None:
    d = scheduler(2)
    waiting = queued(d)
    slot = woken(d)
    assert d.admit(Request(Call(()), 0), 0, direct=True) is None
    assert taken(d, slot) == [waiting]


def test_a_stop_that_was_fired_serves_no_other_run() -> None:
    d = scheduler()
    request = Request(Call(()), 0)
    slot = d.admit(request, 0, direct=True)
    assert slot is not None
    stop = slot.stop
    d.end(request, State.CLOSED, ClosedError())
    assert stop.fired
    assert not d.finish(slot, request, 0, [])
    d.leave(slot, 0)
    assert d.admit(Request(Call(()), 0), 0, direct=True) is slot
    assert slot.stop is not stop
    assert not slot.stop.fired


def test_a_stop_that_was_not_fired_is_kept() -> None:
    """An engine makes its own handle for each Stop, which costs time."""
    d = scheduler()
    stops = set()
    for _ in range(3):
        slot = d.admit(Request(Call(()), 0), 0, direct=True)
        assert slot is not None
        d.finish(slot, slot.batch[0], 0, [])
        d.leave(slot, 0)
        stops.add(slot.stop)
    assert len(stops) == 1


def test_a_replaced_slot_keeps_its_place_and_its_books() -> None:
    d = scheduler()
    request = queued(d)
    slot = woken(d)
    taken(d, slot)
    d.end(request, State.TIMED_OUT, RuntimeError())
    fresh = d.replace(slot)
    assert fresh is not None
    assert d.slots == [fresh]
    assert (fresh.place, fresh.tally, d.stuck) == (slot.place, slot.tally, 1)
    assert d.replace(slot) is None
    d.found_again(slot)
    assert d.stuck == 0
