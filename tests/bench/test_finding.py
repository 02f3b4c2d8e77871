"""bench/finding.py: the headline says what was found, and no more than the spread allows."""

from __future__ import annotations

from typing import Any

import pytest
from support.bench_results import ratio, result

from mindspore_lite.bench.finding import findings, setting
from mindspore_lite.bench.number_text import TIMES
from mindspore_lite.bench.page import page
from mindspore_lite.bench.view import View


def headline(made: dict[str, Any]) -> str:
    return (
        findings(View(made))[0]
        .replace(f"\N{NO-BREAK SPACE}{TIMES}", " x")
        .replace("\N{NO-BREAK SPACE}", " ")
    )


def compared(low: float, middle: float, high: float, **load: Any) -> dict[str, Any]:
    made = result((1, 16), (), ("onnxruntime",), tune=False)
    found = ratio("onnxruntime", **load) | {"low": low, "middle": middle, "high": high}
    return made | {"ratios": [found, ratio("onnxruntime", clients=1)]}


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (
            compared(1.08, 1.12, 1.15, clients=16),
            "mslite answers 1.12 x as many requests as onnxruntime at 16 clients (1.08 to 1.15).",
        ),
        (
            compared(0.97, 1.01, 1.04, clients=16),
            "mslite answers 1.01 x as many requests as onnxruntime at 16 clients (0.97 to 1.04); "
            "1 lies within the spread.",
        ),
        (
            result((4,), (), (), tune=False),
            "mslite answers 1,300 requests/s at 4 clients, half of them within 2.77 ms and 99 % "
            "within 5.12 ms.",
        ),
        ({}, "Nothing was measured."),
    ],
)
def test_headline(made: dict[str, Any], text: str) -> None:
    assert headline(made) == text


def test_a_load_where_we_are_behind_is_told_as_well() -> None:
    made = compared(1.08, 1.12, 1.15, clients=16)
    made["ratios"][1] |= {"low": 0.4, "middle": 0.55, "high": 0.7}
    first, second = findings(View(made))
    assert "16 clients" in first
    assert "at 1 client (0.40 to 0.70)." in second


def test_an_open_loop_compares_p99() -> None:
    made = result((), (200.0,), ("torch",), tune=False)
    made["ratios"][0] |= {"low": 1.2, "middle": 1.3, "high": 1.4}
    told = "The p99 latency of torch is 1.30 x that of mslite at 200 requests/s (1.20 to 1.40)."
    assert headline(made) == told


def test_a_search_comes_first() -> None:
    made = result()
    assert headline(made).startswith("Best is openvino with 4 workers of 1 thread, batches of 4: ")
    assert headline(made).endswith("under the limit of 20 ms.")
    for point in made["tune"]["points"]:
        point["chosen"] = False
    assert headline(made) == "No setting that was tried keeps p99 under 20 ms."


def test_a_run_without_answers_is_told() -> None:
    made = result((4,), (), (), tune=False)
    made["runs"][0] |= {"throughput": 0.0, "errors": 5}
    assert headline(made) == "Every request to mslite failed."


def test_a_setting_without_batches_says_so() -> None:
    point = {"engine": "onnxruntime", "workers": 1, "threads": 2, "batch": 0}
    assert setting(point) == "onnxruntime with 1 worker of 2 threads, no batching"
    automatic = point | {"workers": 0, "threads": 0, "batch": 8}
    told = "onnxruntime with automatic workers of automatic threads, batches of 8"
    assert setting(automatic) == told


def test_a_winner_that_is_not_remembered_says_why() -> None:
    made = result()
    made["tune"]["not_remembered"] = "6 requests say too little"
    said = findings(View(made))
    assert said[1] == "It is not remembered for engine=auto: 6 requests say too little."


def test_other_files_are_compared_by_the_names_of_files() -> None:
    made = compared(1.08, 1.12, 1.15, clients=16)
    for one in (*made["ratios"], *made["runs"]):
        one |= {key: "small.mindir" for key in ("peer", "side") if one.get(key) == "onnxruntime"}
    apart = {"peer": "small.mindir", "output": "y", "largest": 0.01, "cosine": 0.9999}
    made["apart"] = [{**apart, "agreed": 1, "rows": 1}]
    name = made["model"]["file"]
    assert findings(View(made))[0].startswith(f"{name} answers 1.12\N{NO-BREAK SPACE}")
    assert "0.999900" in page(made)
    made["apart"][0] |= {"cosine": float("nan"), "rows": 0}
    assert "How far the answers lie apart" in page(made)
