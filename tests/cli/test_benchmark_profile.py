"""benchmark_profile.py: traces with figures that can be checked by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mindspore_lite.cli.benchmark_profile import Call, own_times, read_calls, show, tables
from mindspore_lite.errors import EngineError


def run_at(start: int) -> dict[str, object]:
    return {"cat": "Session", "name": "model_run", "tid": 1, "ts": start, "dur": 90, "args": {}}


def node(name: str, kind: str, start: int, taken: int) -> dict[str, object]:
    name = f"{name}_kernel_time"
    args = {"op_name": kind}
    return {"cat": "Node", "name": name, "tid": 1, "ts": start, "dur": taken, "args": args}


EVENTS = [
    run_at(100),
    node("a", "Conv", 110, 1000),
    run_at(2000),
    node("a", "Conv", 2010, 30),
    node("b_nchwc", "Conv", 2050, 10),
    {**node("b", "Conv", 2050, 10), "name": "b_fence_before"},
    run_at(3000),
    node("a", "Conv", 3010, 50),
    node("", "Add", 3070, 10),
    node("c", "Add", 4000, 10),  # of a run whose end was not recorded
]


def test_tables_leave_the_warm_up_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(EVENTS))
    show(str(path), skipped=1, wanted=2)
    rule, columns = "-" * 41, "avg(ms)\tpercent\tcalledTimes\topTotalTime"
    assert capsys.readouterr().out.splitlines() == [
        rule,
        f"opName\t{columns}",
        "Add\t0.005000\t0.100000\t1\t0.010000",
        "a\t0.040000\t0.800000\t2\t0.080000",
        "b\t0.005000\t0.100000\t1\t0.010000",
        rule,
        f"opType\t{columns}",
        "Add\t0.005000\t0.100000\t1\t0.010000",
        "Conv\t0.045000\t0.900000\t3\t0.090000",
        f"Trace is saved to : {path}",
    ]


def test_runs_that_were_not_recorded_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(EVENTS))
    show(str(path), skipped=1, wanted=9)
    assert "kept a record of 2 of 9 runs; ask for fewer loops\n" in capsys.readouterr().out
    assert read_calls(str(path), skipped=5, wanted=2) == ([], 0)
    calls, runs = read_calls(str(path), skipped=1, wanted=1)  # another run follows
    assert ([call.name for call in calls], runs) == (["a", "b"], 1)
    assert len(tables([], 0)) == 4


def test_an_operator_that_runs_others_has_only_its_own_time() -> None:
    calls = [
        Call("inner", "Mul", 1, 10, 30),
        Call("loop", "Loop", 1, 0, 100),
        Call("innermost", "If", 1, 15, 5),
        Call("second", "Mul", 1, 50, 20),
        Call("elsewhere", "Mul", 2, 20, 40),
        Call("after", "Mul", 1, 100, 7),
    ]
    found = {call.name: call.taken_us for call in own_times(calls)}
    wanted = {"loop": 50, "inner": 25, "innermost": 5, "second": 20, "elsewhere": 40, "after": 7}
    assert found == wanted


@pytest.mark.parametrize("text", ["", "{", "[1]", '[{"cat": "Node", "name": "a_kernel_time"}]'])
def test_what_is_no_trace(tmp_path: Path, text: str) -> None:
    (tmp_path / "t").write_text(text)
    with pytest.raises(EngineError, match="no trace that can be read"):
        read_calls(str(tmp_path / "t"), 0, 1)
