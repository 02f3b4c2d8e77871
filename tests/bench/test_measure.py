from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mindspore_lite.bench import measure
from mindspore_lite.bench.burst import Burst, Load
from mindspore_lite.bench.measure import Meter, run_of, written_bytes


def burst(latencies_ms: list[float], window_s: float = 1.0, **more: object) -> Burst:
    ends = np.linspace(window_s / len(latencies_ms), window_s, len(latencies_ms))
    starts = ends - np.array(latencies_ms) / 1e3
    return Burst(starts, ends, len(latencies_ms), window_s, 0.5, **more)  # type: ignore[arg-type]


def test_rounds_are_put_together() -> None:
    rounds = [burst([1.0] * 50), burst([3.0] * 50, errors=2, first_error="late")]
    run = run_of("mslite", Load(clients=4), rounds, 3 << 20)
    assert (run.side, run.clients, run.rate) == ("mslite", 4, None)
    assert run.throughput == pytest.approx(50)
    assert run.latency_ms.mean == pytest.approx(2)
    assert run.latency_ms.p50 == pytest.approx(2)
    assert run.latency_ms.p99 == run.latency_ms.max == pytest.approx(3)
    assert run.cpu_ms_per_request == pytest.approx(10)
    assert (run.memory_mib, run.requests, run.errors) == (3.0, 100, 2)
    assert run.first_error == "late"


def test_the_histogram_holds_every_request() -> None:
    run = run_of("mslite", Load(clients=1), [burst([0.1, 1.0, 10.0, 100.0])], 0)
    edges, counts = run.histogram.edges_ms, run.histogram.counts
    assert len(edges) == len(counts) + 1 == 61
    assert sum(counts) == 4
    assert edges[1] / edges[0] == pytest.approx(edges[-1] / edges[-2])
    assert counts[0] == counts[-1] == 1


def test_the_timeline_tells_when_it_became_slow() -> None:
    quick, slow = burst([1.0] * 300, 1.0), burst([9.0] * 300, 3.0)
    line = run_of("mslite", Load(rate=100.0), [quick, slow], 0).timeline
    assert len(line) == 60
    assert line[0].p50_ms == pytest.approx(1)
    assert line[-1].p99_ms == pytest.approx(9)
    assert line[0].throughput == pytest.approx(300, rel=0.1)
    assert line[-1].throughput == pytest.approx(100, rel=0.1)
    assert [m.at_s for m in line] == sorted(m.at_s for m in line)
    assert line[-1].at_s < 4


def test_a_run_without_answers_has_figures_too() -> None:
    none = Burst(np.empty(0), np.empty(0), 0, 1.0, 0.5, errors=7, first_error="no")
    run = run_of("mslite", Load(clients=1), [none], -5)
    assert (run.throughput, run.latency_ms.p99, run.cpu_ms_per_request) == (0.0, 0.0, 0.0)
    assert (run.timeline, run.histogram.counts, run.memory_mib) == ((), (), 0.0)


def test_memory_is_what_the_turns_of_a_side_added(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = iter([100, 150, 500, 520])
    monkeypatch.setattr(measure, "written_bytes", lambda: next(seen))
    meter = Meter()
    for _ in range(2):
        with meter.turn():
            pass
    assert meter.own_bytes == 70


def test_written_memory_is_read_from_the_kernel(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self/smaps_rollup").write_text("head\nRss: 9 kB\nAnonymous:   7 kB\n")
    assert written_bytes(tmp_path) == 7 * 1024
    before = written_bytes()
    held = np.ones(4 << 20)
    assert written_bytes() - before > 16 << 20
    assert held[0] == 1
