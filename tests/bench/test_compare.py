from __future__ import annotations

import numpy as np
import pytest
from support.bench_world import Answering, Silent

from mindspore_lite.bench import compare
from mindspore_lite.bench.burst import Burst, Load
from mindspore_lite.bench.compare import ComparePlan, check_alike, ratios, rounds_for, turns
from mindspore_lite.bench.measure import Meter
from mindspore_lite.bench.sides import Desk
from mindspore_lite.errors import EngineError


def burst(throughput: int, p99_ms: float, **more: object) -> Burst:
    ends = np.linspace(0.1, 1.0, 10)
    return Burst(ends - p99_ms / 1e3, ends, throughput, 1.0, 0.1, **more)  # type: ignore[arg-type]


def desk(*outputs: object) -> Desk:
    with Answering("side", *outputs).desk(Load(clients=1), {}) as made:
        return made


@pytest.fixture
def order(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Who had a turn; nothing is measured."""
    seen: list[str] = []

    def taken(desk: Desk, load: Load, plan: ComparePlan, number: int, tick: object) -> Burst:
        seen.append(f"{number}{next(n for n, d in DESKS.items() if d is desk)}")
        return burst(10, 1.0, interrupted=len(seen) == 5 and plan.seed == 5)

    monkeypatch.setattr(compare, "SETTLE_S", 0.0)
    monkeypatch.setattr(compare, "_burst", taken)
    return seen


DESKS = {"mslite": desk([1]), "b": desk([1]), "c": desk([1])}
METERS = {name: Meter() for name in DESKS}


def test_each_round_another_side_begins(order: list[str]) -> None:
    watch = Silent()
    found, interrupted = turns(DESKS, Load(clients=1), ComparePlan(1.0, 0.1, 3), watch, METERS)
    assert order == ["0mslite", "0b", "0c", "1b", "1c", "1mslite", "2c", "2mslite", "2b"]
    assert {name: len(bursts) for name, bursts in found.items()} == {"mslite": 3, "b": 3, "c": 3}
    assert (interrupted, watch.steps) == (False, 9)


def test_ctrl_c_ends_the_rounds_with_what_there_is(order: list[str]) -> None:
    found, interrupted = turns(
        DESKS, Load(clients=1), ComparePlan(1.0, 0.1, 3, 5), Silent(), METERS
    )
    assert interrupted
    assert {name: len(bursts) for name, bursts in found.items()} == {"mslite": 1, "b": 2, "c": 2}
    (ratio, _) = ratios(Load(clients=1), found)
    assert ratio.middle == 1.0


def test_only_the_first_round_has_a_long_warm_up() -> None:
    plan = ComparePlan(duration_s=7.0, warmup_s=0.5, rounds=7)
    assert plan.lengths(0) == (0.5, 1.0)
    assert plan.lengths(1) == (0.2, 1.0)


@pytest.mark.parametrize(
    "duration_s, loads, answer_s, rounds",
    [
        (3.0, [Load(clients=1)], 1e-4, 30),
        (1.0, [Load(clients=1)], 1e-4, 14),
        (3.0, [Load(clients=1)], 0.04, 7),
        (60.0, [Load(clients=1)], 0.04, 15),
        (3.0, [Load(clients=1), Load(rate=50.0)], 1e-4, 7),
    ],
)
def test_the_faster_the_answers_the_more_rounds(
    duration_s: float, loads: list[Load], answer_s: float, rounds: int
) -> None:
    assert rounds_for(duration_s, loads, answer_s) == rounds


def test_a_real_round_of_each_loop() -> None:
    for load in (Load(clients=2), Load(rate=500.0)):
        found, _ = turns(
            {"mslite": DESKS["mslite"]}, load, ComparePlan(0.05, 0.0), Silent(), {"mslite": Meter()}
        )
        assert found["mslite"][0].latencies_ms.size > 0


def test_ratios_are_those_of_rounds_and_more_than_one_is_good() -> None:
    ours = [burst(t, 2.0) for t in (110, 120, 130)]
    theirs = [burst(100, 4.0) for _ in range(3)]
    (closed,) = ratios(Load(clients=4), {"mslite": ours, "peer": theirs})
    assert (closed.peer, closed.of, closed.clients, closed.rate) == ("peer", "throughput", 4, None)
    assert (closed.low, closed.middle, closed.high) == pytest.approx((1.15, 1.2, 1.25))
    (opened,) = ratios(Load(rate=9.0), {"mslite": ours[:1], "peer": theirs[:1]})
    assert (opened.of, opened.rate) == ("p99", 9.0)
    assert (opened.low, opened.middle, opened.high) == pytest.approx((2, 2, 2))


def test_a_round_without_answers_gives_no_ratio() -> None:
    assert ratios(Load(clients=1), {"mslite": [burst(0, 1)], "peer": [burst(9, 1)]}) == []


def test_equal_answers_pass() -> None:
    values = [1.0, np.nan, np.inf, 1000.0]
    check_alike({"mslite": desk(values, []), "peer": desk([1.5, np.nan, np.inf, 1000.0], [])}, {})
    check_alike({"mslite": desk([1.0])}, {})


@pytest.mark.parametrize(
    ("theirs", "words"),
    [
        ([[2.0, 1.0]], "output 0 of peer differs from mslite's by 0.5 of the largest value"),
        ([[1.0]], "by inf of"),
        ([[np.nan, 2.0]], "by inf of"),
        ([[1.0, 2.0], [3.0]], "peer has 2 outputs, mslite has 1"),
    ],
)
def test_other_answers_are_refused(theirs: list[object], words: str) -> None:
    with pytest.raises(EngineError, match=words):
        check_alike({"mslite": desk([1.0, 2.0]), "peer": desk(*theirs)}, {})


def test_another_file_may_answer_otherwise_and_it_is_said_how_far() -> None:
    ours, theirs = [[1.0, 2.0], [3.0, 0.0]], [[1.0, 0.5], [3.0, 0.0]]
    desks = {"mslite": desk(ours, [4]), "small.mindir": desk(theirs, [4])}
    first, second = check_alike(desks, {"small.mindir": ["y", "label"]})
    assert (first.peer, first.output, first.agreed, first.rows) == ("small.mindir", "y", 1, 2)
    assert first.largest == pytest.approx(0.5)
    assert first.cosine == pytest.approx(11 / np.sqrt(14 * 10.25))
    assert (second.output, second.largest, second.cosine, second.rows) == ("label", 0.0, 1.0, 0)


@pytest.mark.parametrize("theirs", [[[1.0]], [[1.0, 2.0], [3.0]]])
def test_another_network_is_refused(theirs: list[object]) -> None:
    desks = {"mslite": desk([1.0, 2.0]), "other.mindir": desk(*theirs)}
    with pytest.raises(EngineError, match=r"other\.mindir answers with .*, the model with \[\[2"):
        check_alike(desks, {"other.mindir": ["y", "z"]})
