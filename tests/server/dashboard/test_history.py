from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from support.fake_numbers import BOUNDS_MS, model, numbers

from mindspore_lite.server.dashboard import history as history_module
from mindspore_lite.server.dashboard.history import History
from mindspore_lite.server.dashboard.ring import percentile


def served(success: int, **more: Any) -> dict[str, Any]:
    return numbers(model(success=success, **more))


def recent(history: History, found: dict[str, Any]) -> dict[str, Any]:
    (one,) = history.described(found)["models"]
    result: dict[str, Any] = one["recent"]
    return result


def test_a_rate_is_that_of_ten_seconds() -> None:
    history = History()
    for second in range(31):
        history.add(
            served(100 * second if second < 20 else 2000 + 7 * (second - 20)), 50.0 + second
        )
    assert recent(history, served(0))["rate"] == 7.0


def test_errors_and_percentiles_are_those_of_a_minute() -> None:
    history = History()
    history.add(served(0, failed={"deadline": 5, "error": 0}), 0.0)
    history.add(served(0, failed={"deadline": 8, "error": 0}), 30.0)
    counts = {"bounds_ms": BOUNDS_MS, "counts": [0, 98, 0, 2, 0], "sum_ms": 1.0}
    history.add(served(100, failed={"deadline": 8, "error": 0}, latency=counts), 61.0)
    found = recent(history, served(0))
    assert found["errors"] == {"deadline": 3}
    assert found["p50_ms"] == pytest.approx(1 + 50 / 98, abs=1e-3)
    assert found["p99_ms"] == pytest.approx(6.0)


def test_a_model_without_samples_has_no_percentiles() -> None:
    assert recent(History(), served(3))["p99_ms"] is None


def test_a_model_that_was_loaded_anew_begins_at_nought() -> None:
    history = History()
    for second, success in enumerate((0, 50, 3, 5)):
        history.add(served(success), float(second))
    found = history.of("digits", "1")
    assert found is not None
    assert found["columns"]["requests"] == [0, 50, 3, 2]


def test_values_that_are_no_counters_stay_as_they_are() -> None:
    history = History()
    for second, queued in enumerate((3, 9, 0)):
        history.add(served(0, queued=queued), float(second))
    found = history.of("digits", "1")
    assert found is not None
    assert found["columns"]["queued"] == [3, 9, 0]


@pytest.mark.parametrize("kept", [5, 64, 200])
def test_only_so_many_samples_are_kept(kept: int) -> None:
    history = History(kept)
    for second in range(3 * kept):
        history.add(served(second * second), float(second))
    found = history.of("digits", "1")
    assert found is not None
    assert found["at"] == [float(second) for second in range(2 * kept, 3 * kept)]
    assert found["columns"]["requests"] == [2 * second - 1 for second in range(2 * kept, 3 * kept)]
    assert len(found["latency"]) == kept


def test_a_gap_is_one_sample_with_its_length() -> None:
    history = History()
    history.add(served(0), 0.0)
    history.add(served(100), 20.0)
    found = history.of("digits", "1")
    assert found is not None
    assert found["took_s"] == [1.0, 20.0]
    assert recent(history, served(0))["rate"] == 5.0


def test_a_model_that_is_gone_is_forgotten_later() -> None:
    history = History(10)
    history.add(numbers(model("a"), model("b")), 0.0)
    for second in range(1, 12):
        history.add(numbers(model("a")), float(second))
        assert (history.of("b", "1") is not None) == (second <= 10)
    assert history.of("a", "1") is not None


def test_the_number_of_models_with_a_history_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_module, "_MOST_MODELS", 2)
    history = History()
    history.add(numbers(model("a"), model("b"), model("c")), 0.0)
    assert history.of("c", "1") is None
    history.add(numbers(model("b")), 10.0)
    history.add(numbers(model("b"), model("c")), 11.0)
    assert history.of("a", "1") is None
    assert history.of("c", "1") is not None


def test_other_reasons_begin_another_history() -> None:
    history = History()
    history.add(served(1), 0.0)
    history.add(served(2, failed={"other": 1}), 1.0)
    found = history.of("digits", "1")
    assert found is not None
    assert found["columns"]["failed.other"] == [1]


def test_followers_get_every_sample_as_an_event() -> None:
    history, heard = History(), []
    history.add(served(5), 0.0)
    stop = history.follow(heard.append)
    history.add(served(8, queued=2), 1.5)
    assert history.followers == 1
    assert stop() and not stop()
    history.add(served(9), 2.5)
    (event,) = heard
    name, data, *rest = event.decode().split("\n")
    assert (name, rest) == ("event: numbers", ["", ""])
    found = json.loads(data.removeprefix("data: "))
    second = found["models"][0]["second"]
    assert found["at"] == 1.5
    values = second["values"]
    assert (second["took_s"], values["requests"], values["queued"]) == (1.5, 3, 2)
    assert second["latency"] == [0] * 5


def test_the_states_of_slots_are_kept_for_a_minute() -> None:
    history = History()
    history.add(numbers(model(slots=["stuck"])), 0.0)
    for second in range(1, 70):
        history.add(numbers(model(slots=["idle", "computing" if second < 69 else "stuck"])), second)
    (spark,) = history.sparks()
    assert spark["slots"] == ["i" * 60, "c" * 59 + "s"]


def test_small_pictures_have_few_points() -> None:
    history = History()
    for second in range(400):
        history.add(served(10 * second), float(second))
    (spark,) = history.sparks()
    assert (spark["name"], len(spark["rate"])) == ("digits", 60)
    assert set(spark["rate"][1:-1]) == {10.0}


@pytest.mark.parametrize(
    ("counts", "part", "found"),
    [
        ([0, 0, 0, 0, 0], 0.5, None),
        ([10, 0, 0, 0, 0], 0.5, 0.5),
        ([0, 0, 4, 0, 0], 1.0, 4.0),
        ([0, 0, 0, 0, 9], 0.5, 8.0),
        ([1, 1, 0, 0, 0], 0.75, 1.5),
    ],
)
def test_percentiles_lie_within_their_bucket(
    counts: list[int], part: float, found: float | None
) -> None:
    assert percentile(BOUNDS_MS, np.array(counts, float), part) == found


def test_frequent_marks_do_not_hide_rare_ones() -> None:
    history, heard = History(), []
    history.follow(heard.append)
    marks = [{"what": "load", "time": 0}, *({"what": "rejected", "time": i} for i in range(99))]
    history.add(numbers(model(), marks=marks), 1.0)
    found = json.loads(heard[0].split(b"data: ")[1])["marks"]
    assert [one["what"] for one in found] == ["load", *["rejected"] * 20]
    assert found[-1]["time"] == 98
