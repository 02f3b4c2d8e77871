"""statistics.py: histograms of fixed size, and the records made of them."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindspore_lite.serving.statistics import Histogram, Latency, together

DURATIONS = st.lists(st.integers(0, 2**62), min_size=1, max_size=60)


def filled(durations: list[int]) -> Histogram:
    histogram = Histogram()
    for duration in durations:
        histogram.add(duration)
    return histogram


def rank(durations: list[int], part: float) -> int:
    """The true percentile: the smallest value that so great a part does not exceed."""
    return sorted(durations)[math.ceil(part * len(durations)) - 1]


@given(DURATIONS)
def test_percentiles_are_never_below_the_true_ones_and_at_most_a_sixteenth_above(
    durations: list[int],
) -> None:
    found = filled(durations).latency()
    for part, got_ms in ((0.5, found.p50_ms), (0.9, found.p90_ms), (0.99, found.p99_ms)):
        true_ms = rank(durations, part) / 1e6
        assert true_ms * (1 - 1e-12) <= got_ms <= true_ms * (1 + 1 / 16) * (1 + 1e-12)
    assert found.p50_ms <= found.p90_ms <= found.p99_ms <= found.max_ms
    assert found.max_ms == max(durations) / 1e6
    assert found.mean_ms == pytest.approx(sum(durations) / len(durations) / 1e6)
    assert found.count == len(durations)


@given(DURATIONS, st.integers(1, 5))
def test_adding_many_or_the_same_often_is_adding_each(durations: list[int], times: int) -> None:
    durations = [d >> 10 for d in durations]  # their sum fits into 64 bits
    one_by_one = filled(durations * times)
    often, many = Histogram(), Histogram()
    for duration in durations:
        often.add(duration, times)
    many.add_many(durations * times)
    assert one_by_one.latency() == often.latency() == many.latency()
    assert one_by_one._buckets == often._buckets == many._buckets


@given(DURATIONS, DURATIONS)
def test_histograms_of_workers_make_one(a: list[int], b: list[int]) -> None:
    assert together([filled(a), filled(b)]) == filled(a + b).latency()
    first = filled(a)
    first += filled(b)
    assert first.latency() == filled(a + b).latency()


def test_nothing_was_measured_yet() -> None:
    assert Histogram().latency() == Latency(0, 0.0, 0.0, 0.0, 0.0, 0.0)
    assert together([]) == Latency(0, 0.0, 0.0, 0.0, 0.0, 0.0)


def test_one_duration_is_told_exactly() -> None:
    found = filled([1_234_567]).latency()
    assert {found.p50_ms, found.p90_ms, found.p99_ms, found.max_ms, found.mean_ms} == {1.234567}


@pytest.mark.parametrize("duration", [0, 1, 15, 16, 31, 32, 33, 2**40 - 1, 2**40, 2**63 - 1])
def test_every_duration_has_its_bucket(duration: int) -> None:
    one, many = filled([duration]), Histogram()
    many.add_many([duration])
    assert one._buckets == many._buckets
    assert sum(one._buckets) == 1
    assert np.isclose(one.latency().p50_ms, duration / 1e6)


def test_memory_does_not_grow_with_what_is_added() -> None:
    histogram = Histogram()
    before = len(histogram._buckets)
    for duration in range(10_000):
        histogram.add(duration * 1000)
    assert len(histogram._buckets) == before


def test_a_latency_cannot_be_changed() -> None:
    found = Histogram().latency()
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.count = 1  # type: ignore[misc]


@given(DURATIONS, DURATIONS)
def test_what_was_added_can_be_taken_away(a: list[int], b: list[int]) -> None:
    rest = filled(a + b)
    rest -= filled(b)
    assert rest._buckets == filled(a)._buckets
    assert (rest.count, rest.sum_ns) == (len(a), sum(a))
    most = max(a, default=0)
    assert most <= rest.max_ns <= most * 17 / 16 + 1
