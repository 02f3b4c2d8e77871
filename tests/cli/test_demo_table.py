from __future__ import annotations

import io
import re
import sys

import numpy as np
import pytest
from rich.console import Console

from mindspore_lite.cli.demo_table import (
    Answer,
    Round,
    client_lines,
    comparison,
    histogram,
    shown,
    table,
)
from mindspore_lite.serving.layout import Layout


def plan(workers: int, *widths: int) -> Layout:
    return Layout(workers, widths[-1], widths, ((),) * workers, (-1,) * workers, 2, "mask")


def round_of(name: str, layout: Layout, *times_ms: float, took_s: float = 1.0) -> Round:
    """Two clients; every answer of the first is right, of the second one digit is wrong."""
    results = Round(name, 2, layout)
    results.took_s = took_s
    for client in (0, 1):
        results.answers[client] = [Answer(ms, (3, 4, 5), 3 - client) for ms in times_ms]
    return results


def printed(results: Round, tasks: int) -> str:
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=True, color_system="standard")
    console.print(table(results, tasks))
    return out.getvalue()


def test_the_table_shows_the_latest_answer_and_all_that_was_right() -> None:
    text = printed(round_of("at once", plan(2, 1), 1.0, 2.5), tasks=4)
    assert "│      0 │   2 of 4 │    2.5 │ 3 4 5 " in text
    assert "\x1b[32m6 of 6" in text  # green
    assert "\x1b[31m4 of 6" in text  # red


def test_a_client_without_an_answer_has_its_row_already() -> None:
    text = printed(Round("at once", 2, plan(1, 1)), tasks=4)
    assert text.count("0 of 4") == 2


def test_long_predictions_are_cut() -> None:
    results = Round("at once", 1, plan(1, 1))
    results.answers[0].append(Answer(1.0, tuple(range(10)) * 2, 20))
    assert "0 1 2 3 4 5 6 7 8 9 ..." in printed(results, tasks=1)


def test_in_a_pipe_no_table_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with shown(round_of("at once", plan(1, 1), 1.0), tasks=1) as live:
        assert not live
    assert capsys.readouterr() == ("", "")


def test_a_line_tells_what_a_client_got() -> None:
    assert client_lines(round_of("at once", plan(1, 1), 1.0, 2.0)) == [
        "client 0: 2 requests, 1.0 to 2.0 ms, mean 1.5 ms, 6 of 6 digits right",
        "client 1: 2 requests, 1.0 to 2.0 ms, mean 1.5 ms, 4 of 6 digits right",
    ]


def test_the_comparison_says_what_was_measured_also_when_it_is_slower() -> None:
    at_once = round_of("at once", plan(4, 2, 1), 2.0, 2.0, took_s=2.0)
    in_turn = round_of("in turn", plan(1, 1), 1.0, 1.0, took_s=1.0)
    head, *rows, first, second, gain, wait = comparison(at_once, in_turn).splitlines()
    assert head.split() == ["time", "requests/s", "digits/s", "median", "p99"]
    assert re.sub(" +", " ", rows[0]) == "at once 2.00 s 2.0 6 2.0 ms 2.0 ms"
    assert re.sub(" +", " ", rows[1]) == "in turn 1.00 s 4.0 12 1.0 ms 1.0 ms"
    assert first == "at once: 4 workers, 2 or 1 threads for a request"
    assert second == "in turn: 1 worker, 1 thread for a request"
    assert gain == "gain: 0.50 times the throughput;"
    assert wait.strip() == "99 of 100 requests are answered within 2.0 ms instead of 1.0 ms"


class Output(io.TextIOWrapper):
    """Standard output in some encoding."""

    def __init__(self, encoding: str) -> None:
        super().__init__(io.BytesIO(), encoding)


def test_the_longest_bar_fills_the_room_and_the_shortest_can_be_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdout", Output("utf-8"))
    lines = histogram(np.array([1.0] * 1000 + [256.0]), width=80).splitlines()
    assert len(lines) == 8
    assert lines[0].split() == ["1.0", "to", "2.0", "ms", "1000", "█" * 50]
    assert lines[1].split() == ["2.0", "to", "4.0", "ms", "0"]
    assert lines[-1].split() == ["128.0", "to", "256.0", "ms", "1", "█"]


def test_a_histogram_of_equal_times_holds_them_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Output("ascii"))
    text = histogram(np.full(7, 3.0), width=40)
    assert [int(line.split()[4]) for line in text.splitlines()].count(7) == 1
    assert "#" * 14 in text
    assert text.isascii()
