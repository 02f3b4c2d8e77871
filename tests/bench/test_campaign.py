from __future__ import annotations

import numpy as np
import pytest
from support.bench_world import Answering, Silent
from support.models import DIGITS

from mindspore_lite.bench import campaign, compare
from mindspore_lite.bench.burst import Burst, Load
from mindspore_lite.bench.campaign import Sides, places, taking_part
from mindspore_lite.bench.compare import ComparePlan
from mindspore_lite.bench.machine import machine
from mindspore_lite.bench.measure import Meter
from mindspore_lite.bench.sides import Wish
from mindspore_lite.core.cores import Cores
from mindspore_lite.serving.layout import Wanted, layout

PLAN = ComparePlan(0.04, 0.0, rounds=2)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "SETTLE_S", 0.0)


def test_every_side_is_measured_under_every_load() -> None:
    sides = Sides(
        {"mslite": Answering("mslite", [1.0]), "peer": Answering("peer", [1.0])},
        {"mslite": Meter(), "peer": Meter()},
    )
    watch = Silent()
    found = sides.measure([Load(clients=1), Load(rate=300.0)], {}, PLAN, watch)
    assert [(run.side, run.clients, run.rate) for run in found.runs] == [
        ("mslite", 1, None),
        ("peer", 1, None),
        ("mslite", None, 300.0),
        ("peer", None, 300.0),
    ]
    assert [(ratio.of, ratio.peer) for ratio in found.ratios] == [
        ("throughput", "peer"),
        ("p99", "peer"),
    ]
    assert (found.interrupted, watch.steps) == (False, 8)


def burst(**more: object) -> Burst:
    return Burst(np.array([0.1]), np.array([0.105]), 1, 1.0, 0.1, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(("late_ms", "is_said"), [(0.9, False), (40.0, True)])
def test_a_late_sender_is_told_of(
    late_ms: float, is_said: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign, "turns", lambda *_: ({"mslite": [burst(late_ms=late_ms)]}, False))
    sides = Sides({"mslite": Answering("mslite", [1.0])}, {"mslite": Meter()})
    found = sides.measure([Load(rate=5.0)], {}, PLAN, Silent())
    assert [text.split(" late")[0] for text in found.warnings] == (
        ["mslite, 5 /s: requests were sent up to 40.0 ms"] if is_said else []
    )


def test_ctrl_c_keeps_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "turns", lambda *_: ({"mslite": [burst()], "p": []}, True))
    sides = Sides({"mslite": Answering("mslite", [1.0])}, {"mslite": Meter(), "p": Meter()})
    found = sides.measure([Load(clients=1), Load(clients=2)], {}, PLAN, Silent())
    assert found.interrupted
    assert [(run.side, run.clients) for run in found.runs] == [("mslite", 1)]


def test_peers_are_made_and_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Answering("onnxruntime", [1.0])
    monkeypatch.setattr(campaign.Graph, "side", lambda self, name: made)
    ours = Answering("mslite", [1.0])
    with taking_part(ours, Meter(), ["onnxruntime"], DIGITS, "MINDIR", Wish()) as sides:
        assert list(sides.sides) == list(sides.meters) == ["mslite", "onnxruntime"]
        assert not made.closed
    assert made.closed
    assert not ours.closed  # by who made it


def test_workers_and_the_machine_are_told() -> None:
    cores = Cores((0, 1), 2, "affinity mask", 2, ((0, 1),), ())
    found = places(layout(cores, Wanted(2, 1, core_list=(1, 0))))
    assert [(place.worker, place.threads, place.cores) for place in found] == [
        (0, 1, (1,)),
        (1, 1, (0,)),
    ]
    told = machine(["numpy", "no-such-package"])
    assert told.cpu
    assert told.cores >= 1
    assert list(told.versions) == ["mslite", "numpy"]
