"""bench/number_text.py: three digits that count, in the unit that suits."""

from __future__ import annotations

import pytest

from mindspore_lite.bench.number_text import (
    MISSING,
    count,
    digits,
    factor,
    many,
    span,
    span_tick,
    tick,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, MISSING), (0, "0"), (0.0123456, "0.0123"), (0.99999, "1.00"), (9.996, "10.0"),
        (12.345, "12.3"), (999.9, "1,000"), (12345.6, "12,300"), (-2.5, "-2.50"),
        (1e-7, "1.00e-07"), (3e20, "3.00e+20"),
    ],
)  # fmt: skip
def test_digits(value: float | None, text: str) -> None:
    assert digits(value) == text


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (None, MISSING), (0.0, "0 ns"), (0.00083, "830 ns"), (0.83, "830 µs"),
        (0.9999, "1.00 ms"), (1234, "1.23 s"), (90e3, "90.0 s"),
    ],
)  # fmt: skip
def test_a_span_has_the_unit_that_suits(ms: float | None, text: str) -> None:
    assert span(ms).replace("\N{NO-BREAK SPACE}", " ") == text


def test_ticks_are_short() -> None:
    assert [tick(value) for value in (0, 0.5, 250, 1500, 2e6)] == ["0", "0.5", "250", "1.5k", "2M"]
    found = [span_tick(ms).replace("\N{NO-BREAK SPACE}", " ") for ms in (0, 0.2, 1, 2500)]
    assert found == ["0", "200 µs", "1 ms", "2.5 s"]


def test_counts_and_factors() -> None:
    assert (count(1234567), count(None)) == ("1,234,567", MISSING)
    texts = [factor(value) for value in (0.9951, 12, 1234, None)]
    assert texts == ["1.00", "12.00", "1,230", MISSING]
    assert (many(1, "worker"), many(4, "worker")) == ("1 worker", "4 workers")
