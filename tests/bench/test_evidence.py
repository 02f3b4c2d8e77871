"""evidence.py: what may be remembered of a measurement, and what may not."""

from __future__ import annotations

import math

import pytest

from mindspore_lite.bench.evidence import Measured, RoundFigures, interval, judged
from mindspore_lite.engines.choice import LEAST_REQUESTS

STEADY = [1.0] * 7


def measured(
    throughputs: list[float], p99s_ms: list[float] | None = None, requests: int = 500
) -> Measured:
    pairs = zip(throughputs, p99s_ms or [1.0] * len(throughputs), strict=True)
    rounds = tuple(RoundFigures(*pair) for pair in pairs)
    return Measured(requests, 3.0, max(p99s_ms or [1.0]), rounds)


def test_the_interval_is_the_one_of_the_books() -> None:
    found = interval([math.exp(x) for x in (0.1, 0.2, 0.3, 0.4, 0.5)])
    assert found.middle == pytest.approx(math.exp(0.3))
    half = 2.776 * 0.158114 / math.sqrt(5)
    assert found.low == pytest.approx(math.exp(0.3 - half), rel=1e-4)
    assert found.high == pytest.approx(math.exp(0.3 + half), rel=1e-4)


def test_one_round_has_no_bounds_and_equal_ones_no_width() -> None:
    assert (interval([2.0]).low, interval([2.0]).high) == (0.0, math.inf)
    same = interval([2.0] * 40)
    assert (same.low, same.high) == (pytest.approx(2.0), pytest.approx(2.0))


def test_a_clear_gain_is_remembered() -> None:
    found = judged(measured([2.0, 2.1, 1.9, 2.0, 2.2, 2.0, 2.1]), measured(STEADY), None)
    assert found.why_not == ""
    assert found.evidence.gain is not None
    assert 1.9 < found.evidence.gain < 2.1


def test_a_gain_within_the_noise_is_not() -> None:
    found = judged(measured([2.0, 0.5, 3.0, 0.4, 1.5, 0.6, 1.9]), measured(STEADY), None)
    assert "its throughput is 1.1" in found.why_not
    assert found.why_not.endswith("times; the difference may be chance, measure longer")


@pytest.mark.parametrize("requests", [LEAST_REQUESTS - 1, 6, 0])
def test_too_few_requests_are_said(requests: int) -> None:
    found = judged(measured([9.0] * 7, requests=requests), measured(STEADY), None)
    assert found.why_not.startswith(f"{requests} requests in 7 rounds say too little")


def test_too_few_rounds_are_said() -> None:
    found = judged(measured([9.0] * 4), measured([1.0] * 4), None)
    assert found.why_not.startswith("500 requests in 4 rounds say too little")


def test_the_automatic_settings_need_requests_alone() -> None:
    assert judged(measured(STEADY), None, None).why_not == ""
    few = judged(measured(STEADY, requests=6), None, None)
    assert few.why_not.startswith("6 requests in 7 rounds say too little")
    assert few.why_not.endswith("--duration 70")


def test_where_the_automatic_settings_miss_the_limit_p99_decides() -> None:
    slow, quick = measured([3.0] * 5, [9.0] * 5), measured([1.0] * 5, [3.0] * 5)
    found = judged(quick, slow, 5.0)
    assert found.why_not == ""
    assert found.evidence.gain == pytest.approx(3.0)
    assert "its throughput is 0.33" in judged(quick, slow, None).why_not


def test_rounds_without_an_answer_do_not_count() -> None:
    found = judged(measured([0.0] * 7), measured(STEADY), None)
    assert found.evidence.rounds == 0
    assert found.why_not
