"""queue.py: the order of what waits."""

from __future__ import annotations

from mindspore_lite.serving.call import HIGHEST, LOWEST, Call
from mindspore_lite.serving.queue import AGEING_NS, Queue
from mindspore_lite.serving.request import Request


def queue_of(*waiting: tuple[int, int]) -> tuple[Queue, list[Request]]:
    """(priority, arrived_ns) of each."""
    queue = Queue()
    requests = [Request(Call((), priority=priority), ns) for priority, ns in waiting]
    for request in requests:
        queue.add(request)
    return queue, requests


def test_higher_priorities_come_first_and_equal_ones_as_they_came() -> None:
    queue, (a, low, b, high, c) = queue_of((0, 1), (-1, 2), (0, 3), (1, 4), (0, 5))
    assert list(queue) == [high, a, b, c, low]
    assert queue.head() is high
    assert len(queue) == 5


def test_waiting_counts_as_much_as_a_priority() -> None:
    queue, (old, new) = queue_of((0, 0), (3, 3 * AGEING_NS + 1))
    assert list(queue) == [old, new]
    queue, (old, new) = queue_of((0, 0), (3, 3 * AGEING_NS - 1))
    assert list(queue) == [new, old]


def test_the_lowest_priority_is_overtaken_for_twenty_seconds_at_most() -> None:
    span_ns = (HIGHEST - LOWEST) * AGEING_NS
    assert span_ns == 20_000_000_000
    queue, (lowest, late) = queue_of((LOWEST, 0), (HIGHEST, span_ns))
    assert queue.head() is lowest
    queue.remove(lowest)
    assert queue.head() is late


def test_what_is_put_back_comes_before_all_others_and_the_last_one_first() -> None:
    queue, (urgent, a, b) = queue_of((100, 1), (0, 2), (-100, 3))
    for request in (a, b):
        queue.remove(request)
        queue.put_back(request)
    assert list(queue) == [b, a, urgent]
    for request in (b, a, urgent):
        assert queue.head() is request
        queue.remove(request)
    assert not queue


def test_the_one_that_waits_longest_is_known() -> None:
    queue, (old, _, high) = queue_of((0, 1), (0, 2), (9, 3))
    assert queue.head() is high
    assert queue.oldest_ns() == 1
    queue.remove(old)
    assert queue.oldest_ns() == 2


def test_the_oldest_may_be_in_a_batch_that_was_put_back_before_another() -> None:
    queue = Queue()
    for arrived_ns in (1000, 1001):  # the later batch is put before the earlier one
        queue.put_back(Request(Call(()), arrived_ns))
    assert queue.head().arrived_ns == 1001
    assert queue.oldest_ns() == 1000
