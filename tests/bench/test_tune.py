from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest

from mindspore_lite.bench.evidence import NOTHING, Measured, RoundFigures, Verdict
from mindspore_lite.bench.result import Point
from mindspore_lite.bench.tune import (
    Score,
    Search,
    Setting,
    Try,
    best_of,
    grid,
    marked,
    neighbours,
)
from mindspore_lite.errors import EngineError


def point(throughput: float, p99_ms: float) -> Point:
    return Point("onnxruntime", 1, 1, 0, 1, throughput, p99_ms)


class Model:
    """As fast as `speed` says; each client waits for all others."""

    def __init__(self) -> None:
        self.tried: list[tuple[Setting, int]] = []
        self.finals: list[tuple[Setting, int]] = []

    def speed(self, setting: Setting, clients: int) -> float:
        return min(clients, setting.workers or 1) * (1 + setting.batch / 64)

    def score(self, setting: Setting, clients: int) -> Score:
        self.tried.append((setting, clients))
        speed = self.speed(setting, clients)
        return Score(1000 * speed, clients / speed)

    @contextmanager
    def opened(self, setting: Setting) -> Iterator[Try]:
        if setting.engine == "broken":
            raise EngineError("it is broken")
        yield lambda clients: self.score(setting, clients)

    def again(self, finalists: Sequence[tuple[Setting, int]]) -> list[Score]:
        self.finals = [*finalists]
        return [self.score(*one) for one in finalists]


def test_the_grid_deals_all_cores_to_few_or_many_workers() -> None:
    found = grid(6, ["onnxruntime"], can_batch=False)
    assert [(s.workers, s.threads) for s in found] == [(0, 0), (6, 1), (3, 2), (1, 6)]
    both = grid(1, ["a", "b"], can_batch=True)
    assert [(s.engine, s.workers, s.batch) for s in both] == [
        (engine, workers, batch) for engine in "ab" for workers in (0, 1) for batch in (0, 8)
    ]


def test_neighbours_are_a_step_away() -> None:
    found = list(neighbours(Setting("e", 2, 2, 8), cores=4))
    assert found == [
        Setting("e", 2, 2, 16),
        Setting("e", 2, 2, 4),
        Setting("e", 1, 4, 8),
        Setting("e", 3, 1, 8),
    ]
    assert list(neighbours(Setting("e"), cores=4)) == []
    assert list(neighbours(Setting("e", 1, 1, 64), cores=1)) == [Setting("e", 1, 1, 32)]


def test_the_search_goes_from_the_grid_to_the_best() -> None:
    model = Model()
    search = Search(model.opened, [1, 8], None)
    search.run(grid(4, ["onnxruntime"], can_batch=True), 4, model.again)
    best = best_of(search.points, None)
    assert best is not None
    assert (best.workers, best.batch, best.clients) == (4, 64, 8)  # 64 is in no grid
    assert len(model.finals) == 3
    assert (Setting("onnxruntime", 4, 1, 64), 8) in model.finals


def test_more_clients_are_not_tried_where_few_wait_too_long() -> None:
    model = Model()
    search = Search(model.opened, [16, 4, 1], 2.0)
    search.run([Setting("e", 1, 1)], 1, model.again)
    assert model.tried[:-1] == [(Setting("e", 1, 1), 1), (Setting("e", 1, 1), 4)]
    assert model.finals == [(Setting("e", 1, 1), 1)]
    best = best_of(search.points, 2.0)
    assert best is not None
    assert best.clients == 1


def test_what_counts_of_the_best_few_is_the_second_try() -> None:
    class Lucky(Model):
        def again(self, finalists: Sequence[tuple[Setting, int]]) -> list[Score]:
            return [Score(1.0 if s.workers == 2 else 1500.0, 1.0) for s, _ in finalists]

    model = Lucky()
    search = Search(model.opened, [2], None)
    search.run([Setting("e", 2, 1), Setting("e", 1, 2)], 2, model.again)
    best = best_of(search.points, None)
    assert best is not None
    assert (best.workers, best.throughput) == (1, 1500.0)


def test_settings_that_cannot_be_are_left_out_with_the_reason() -> None:
    model = Model()
    search = Search(model.opened, [1], None)
    search.run([Setting("broken"), Setting("e", 1, 1)], 1, model.again)
    assert search.refused == {"broken, automatic": "it is broken"}
    assert len(search.points) == 1


def test_ctrl_c_ends_the_search_with_what_there_is() -> None:
    class Interrupted(Model):
        def speed(self, setting: Setting, clients: int) -> float:
            if len(self.tried) == 3:
                raise KeyboardInterrupt
            return super().speed(setting, clients)

    model = Interrupted()
    search = Search(model.opened, [1, 2], None)
    search.run(grid(4, ["e"], can_batch=True), 4, model.again)
    assert search.interrupted
    assert len(search.points) == 2


@pytest.mark.parametrize(("limit", "wanted"), [(None, 300.0), (5.0, 200.0), (0.5, None)])
def test_the_best_has_the_highest_throughput_within_the_limit(
    limit: float | None, wanted: float | None
) -> None:
    points = [point(100, 1), point(300, 9), point(200, 5), point(0, 0)]
    found = best_of(points, limit)
    assert (found and found.throughput) == wanted
    assert [p.throughput for p in marked(points, limit) if p.chosen] == ([wanted] if wanted else [])


def test_the_front_is_what_nothing_else_beats() -> None:
    points = [point(100, 1), point(90, 2), point(300, 9), point(300, 8), point(0, 0)]
    assert [p.on_front for p in marked(points, None)] == [True, False, False, True, False]
    twins = [point(100, 1), replace(point(100, 1), clients=2)]
    assert [p.on_front for p in marked(twins, None)] == [True, True]


def rounds(*throughputs: float, requests: int = 1000) -> Measured:
    return Measured(requests, 1.0, 1.0, tuple(RoundFigures(one, 1.0) for one in throughputs))


class Measuring(Model):
    """Tells in the second try what each round gave."""

    def __init__(self, found: dict[Setting, Measured]) -> None:
        super().__init__()
        self.found = found

    def again(self, finalists: Sequence[tuple[Setting, int]]) -> list[Score]:
        self.finals = [*finalists]
        return [Score(1.0, 1.0, self.found.get(setting, NOTHING)) for setting, _ in finalists]


USUAL, WIDE = Setting("e"), Setting("e", 2, 1)


def verdict(model: Model) -> Verdict:
    search = Search(model.opened, [2], None)
    search.run([WIDE], 1, model.again, USUAL)
    best = best_of(search.points, None)
    assert best is not None
    return search.verdict(best, USUAL)


def test_the_best_is_measured_in_turn_with_the_automatic_settings() -> None:
    model = Measuring({WIDE: rounds(*[200.0] * 5), USUAL: rounds(*[100.0] * 5)})
    assert verdict(model).why_not == ""
    assert model.finals[0] == (WIDE, 2)
    assert (USUAL, 2) in model.finals


def test_few_requests_decide_nothing() -> None:
    model = Measuring({WIDE: rounds(*[2.0] * 7, requests=6), USUAL: rounds(*[1.0] * 7)})
    assert verdict(model).why_not == (
        "6 requests in 7 rounds say too little, wanted 100 in 5 or more; measure longer: "
        "--duration 30"
    )


def test_automatic_settings_that_cannot_be_leave_the_best_without_evidence() -> None:
    class Broken(Measuring):
        def again(self, finalists: Sequence[tuple[Setting, int]]) -> list[Score]:
            if (USUAL, 2) in finalists:
                raise EngineError("it is broken")
            return super().again(finalists)

    assert "0 requests in 0 rounds" in verdict(Broken({WIDE: rounds(*[2.0] * 7)})).why_not
