"""What a slot takes together, and how long it waits for it, on the scheduler alone."""

from __future__ import annotations

from support.fake_engine import FakeSession

from mindspore_lite.serving.call import Call
from mindspore_lite.serving.request import Request, State
from mindspore_lite.serving.scheduler import Batching, Scheduler, Slot, WorkerPlace
from mindspore_lite.serving.thread_widths import WidthOption

RUN_NS = 10_000


def scheduler(
    workers: int = 2,
    *,
    rows: int = 16,
    wait_ns: int = 0,
    buckets: tuple[int, ...] = (),
    cards: tuple[str, ...] = ("", ""),
) -> Scheduler:
    lanes = (WidthOption(workers, FakeSession()),)
    places = [WorkerPlace(number, lanes, card=cards[number]) for number in range(workers)]
    return Scheduler(places, 1000, Batching(rows, wait_ns, buckets))


def send(scheduler: Scheduler, now_ns: int, key: object = "a", rows: int = 1) -> Request:
    request = Request(Call(()), now_ns, rows=rows, key=key)
    scheduler.admit(request, now_ns, direct=False)
    return request


def finish(scheduler: Scheduler, slot: Slot, now_ns: int) -> None:
    for request in slot.batch:
        scheduler.finish(slot, request, now_ns, [])
    slot.batch = []


def called(scheduler: Scheduler) -> Slot:
    slot = scheduler.to_wake()
    assert slot is not None
    return slot


def settled(scheduler: Scheduler, crowd: int) -> int:
    """A scheduler that saw runs of RUN_NS with so many requests under way; returns the time."""
    for _ in range(crowd):
        send(scheduler, 0)
    now_ns, slot = 0, called(scheduler)
    assert scheduler.claim(slot, now_ns) is None
    while slot.batch:
        now_ns += RUN_NS
        finish(scheduler, slot, now_ns)
        scheduler.claim(slot, now_ns)
    return now_ns


def test_a_lone_request_never_waits_for_others() -> None:
    lonely = scheduler()
    now_ns = settled(lonely, crowd=1)
    request = Request(Call(()), now_ns, rows=1, key="a")
    slot = lonely.admit(request, now_ns, direct=True)
    assert slot is not None and slot.batch == [request]


def test_as_many_requests_as_slots_are_not_joined() -> None:
    pair = scheduler()
    now_ns = settled(pair, crowd=2)
    send(pair, now_ns), send(pair, now_ns)
    first, second = called(pair), called(pair)
    assert pair.claim(first, now_ns) is None and len(first.batch) == 1
    assert pair.claim(second, now_ns) is None and len(second.batch) == 1


def test_a_slot_waits_for_its_share_of_a_crowd() -> None:
    busy = scheduler()
    now_ns = settled(busy, crowd=16)
    for _ in range(16):
        send(busy, now_ns)
    slots = called(busy), called(busy)
    for slot in slots:
        assert busy.claim(slot, now_ns) is None and len(slot.batch) == 8
    now_ns += RUN_NS
    finish(busy, slots[0], now_ns)
    busy.claim(slots[0], now_ns)  # it is idle, until its eight callers come back
    send(busy, now_ns)
    slot = called(busy)
    due_ns = busy.claim(slot, now_ns)
    assert due_ns is not None and now_ns < due_ns <= now_ns + RUN_NS // 10
    for _ in range(6):
        send(busy, now_ns)
        assert busy.to_wake() is None
    send(busy, now_ns)
    assert busy.to_wake() is slot
    assert busy.claim(slot, now_ns) is None and len(slot.batch) == 8


def test_a_slot_that_waited_long_enough_takes_what_there_is() -> None:
    busy = scheduler()
    now_ns = settled(busy, crowd=16)
    requests = [send(busy, now_ns) for _ in range(3)]
    slot = called(busy)
    due_ns = busy.claim(slot, now_ns)
    assert due_ns is not None
    assert busy.claim(slot, due_ns) is None
    assert slot.batch == requests


def test_a_crowd_that_left_is_forgotten() -> None:
    busy = scheduler()
    now_ns = settled(busy, crowd=16)
    waits = []
    for _ in range(200):
        send(busy, now_ns)
        slot = called(busy)
        due_ns = busy.claim(slot, now_ns)
        waits.append(due_ns is not None)
        if due_ns is not None:
            assert busy.claim(slot, due_ns) is None
        now_ns += RUN_NS
        finish(busy, slot, now_ns)
        busy.claim(slot, now_ns)
    assert waits[0] and not waits[-1]


def test_a_slot_leaves_the_others_their_share() -> None:
    busy = scheduler(workers=2, rows=64)
    for _ in range(20):
        send(busy, 0)
    first, second = called(busy), called(busy)
    busy.claim(first, 0)
    busy.claim(second, 0)
    assert (len(first.batch), len(second.batch)) == (10, 10)


def test_a_full_batch_of_another_kind_does_not_wait_for_the_head() -> None:
    mixed = scheduler(rows=4, wait_ns=1000)
    head = send(mixed, 0, key="a")
    slot = called(mixed)
    assert mixed.claim(slot, 0) == 1000
    others = [send(mixed, 1, key="b") for _ in range(4)]
    assert mixed.to_wake() is slot
    assert mixed.claim(slot, 1) is None and slot.batch == others
    next_slot = called(mixed)
    assert mixed.claim(next_slot, 2) == 1000  # and somebody goes on waiting for the head
    assert head.state is State.QUEUED


def test_only_one_slot_gathers() -> None:
    pair = scheduler(rows=4, wait_ns=1000)
    send(pair, 0)
    first = called(pair)
    send(pair, 0)
    second = called(pair)
    assert pair.claim(first, 0) == 1000
    assert pair.claim(second, 0) is None
    assert second.batch == [] and second in pair.idle_slots()
    assert pair.claim(first, 1000) is None and len(first.batch) == 2


def test_a_small_request_does_not_overtake_a_larger_one_of_its_kind() -> None:
    single = scheduler(workers=1, rows=4, wait_ns=1)
    order = [send(single, 0, rows=rows) for rows in (2, 3, 1)]
    slot = called(single)
    single.claim(slot, 0)
    assert slot.batch == order[:1]


# --- cards ----------------------------------------------------------------------------------------


def half_busy(cards: tuple[str, str]) -> tuple[Scheduler, int, Slot, Slot, int | None]:
    """Eight rows run in one slot, and another gathers from the first row on that came back."""
    busy = scheduler(cards=cards)
    now_ns = settled(busy, crowd=16)
    for _ in range(16):
        send(busy, now_ns)
    running, gathering = called(busy), called(busy)
    for slot in (running, gathering):
        assert busy.claim(slot, now_ns) is None and len(slot.batch) == 8
    now_ns += RUN_NS
    finish(busy, gathering, now_ns)
    busy.claim(gathering, now_ns)
    send(busy, now_ns)
    assert called(busy) is gathering
    return busy, now_ns, running, gathering, busy.claim(gathering, now_ns)


def test_a_slot_waits_longer_while_its_card_computes_for_another() -> None:
    for cards, part in ((("a", "a"), 1), (("a", "b"), 10), (("", ""), 10)):
        busy, now_ns, _, gathering, due_ns = half_busy(cards)
        assert busy.gathering is gathering
        assert due_ns == now_ns + busy.pace_ns // part


def test_a_slot_whose_card_got_free_takes_over() -> None:
    busy, now_ns, running, gathering, due_ns = half_busy(("a", "a"))
    assert due_ns is not None
    now_ns += 1
    finish(busy, running, now_ns)
    running.awake = True
    sooner_ns = busy.claim(running, now_ns)
    assert sooner_ns is not None and sooner_ns < due_ns
    assert busy.gathering is running
    assert gathering in busy.idle_slots()
    assert busy.claim(running, sooner_ns) is None
    assert len(running.batch) == 1
    assert busy.gathering is None


def test_rows_that_would_fill_a_bucket_badly_wait_for_the_next_run() -> None:
    taken = []
    for rows in (1, 2, 3, 5, 6, 8, 9, 12, 16, 20):
        fitted = scheduler(1, buckets=(1, 2, 4, 8, 16))
        settled(fitted, crowd=64)
        for _ in range(rows):
            send(fitted, 0)
        slot = called(fitted)
        assert fitted.claim(slot, RUN_NS**2) is None
        taken.append((rows, len(slot.batch)))
    wanted = {1: 1, 2: 2, 3: 3, 5: 4, 6: 6, 8: 8, 9: 8, 12: 12, 16: 16, 20: 16}
    assert dict(taken) == wanted


def test_a_share_is_a_bucket_too() -> None:
    fitted = scheduler(buckets=(1, 4, 16), rows=16)
    settled(fitted, crowd=14)  # seven for each slot, which would fill less than half of a bucket
    assert fitted._goal() == 4


def test_buckets_may_be_larger_than_a_batch() -> None:
    assert Batching(6, 0, (2, 8)).fitting() == [0, 1, 2, 2, 2, 2, 6]
    assert list(Batching(6).fitting()) == list(range(7))
    assert Batching(2**31 - 1).fitting()[-1] == 2**31 - 1  # as some write for "any number"
