"""bench/axes.py: values find their places, ticks are few, round and inside."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindspore_lite.bench.axes import Scale, either, from_zero, logarithmic, spaced

VALUES = st.lists(st.floats(1e-12, 1e15), min_size=1, max_size=5)


@given(VALUES, st.sampled_from([from_zero, logarithmic, either]))
def test_every_value_has_a_finite_place_and_ticks_are_few(values: list[float], make) -> None:  # type: ignore[no-untyped-def]
    scale = make(values, 10.0, 110.0)
    places = [scale(value) for value in sorted(values)]
    assert places == sorted(places)
    assert all(10 - 1e-6 <= place <= 110 + 1e-6 for place in places)
    ticks = scale.ticks()
    assert 0 < len(ticks) <= 7
    assert all(scale.low * (1 - 1e-6) <= value <= scale.high * (1 + 1e-6) for value in ticks)


@pytest.mark.parametrize(
    ("scale", "ticks"),
    [
        (Scale(0, 1600, 0, 1), [0, 500, 1000, 1500]),
        (Scale(1, 40, 0, 1, log=True), [1, 2, 5, 10, 20]),
        (Scale(1, 300, 0, 1, log=True), [1, 3, 10, 30, 100, 300]),
        (Scale(1, 1e9, 0, 1, log=True), [1, 1e2, 1e4, 1e6, 1e8]),
        (Scale(0.9, 1.3, 0, 1, log=True), [0.9, 1.0, 1.1, 1.2, 1.3]),
    ],
)
def test_ticks(scale: Scale, ticks: list[float]) -> None:
    assert scale.ticks() == pytest.approx(ticks)


def test_a_log_scale_goes_by_factors_and_keeps_what_is_outside_at_its_border() -> None:
    scale = Scale(1, 100, 0, 10, log=True)
    assert [scale(value) for value in (0, 1, 10, 100, 1e6)] == pytest.approx([0, 0, 5, 10, 10])


def test_either_starts_at_zero_unless_values_lie_far_apart() -> None:
    assert either([2, 9], 0, 1).low == 0
    assert either([2, 900], 0, 1).log
    assert either([], 0, 1)(0) == 0


def test_crowded_labels_are_thinned_and_the_last_stays() -> None:
    scale = Scale(0, 100, 0, 100)
    assert spaced([0, 5, 50, 95, 100], scale, 20) == [5, 50, 100]
