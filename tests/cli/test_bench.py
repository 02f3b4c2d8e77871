from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mindspore_lite.bench import compare, evidence, peers
from mindspore_lite.bench.burst import Burst
from mindspore_lite.cli import bench as bench_module
from mindspore_lite.cli.demo import DIGITS_MODEL

Run = Callable[..., Any]
SHORT = ("--duration", 0.05, "--warmup", 0)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "SETTLE_S", 0.0)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--clients", "0"], "--clients got '0', wanted numbers above 0"),
        (["--clients", "1,many"], "--clients got '1,many', wanted numbers above 0"),
        (["--rate", "nan"], "--rate got 'nan', wanted numbers above 0"),
        (["--rate", "1e9"], "up to 100000"),
        (["--duration", "0"], "--duration is 0, wanted seconds, 0.001 to 86400"),
        (["--warmup", "inf"], "--warmup is inf, wanted seconds"),
        (["--workers", "-1"], "--workers is -1, wanted 0 or more"),
        (["--compare", "tensorrt"], "--compare got 'tensorrt', wanted some of onnxruntime"),
        (["--compare", "none.mindir"], "or model files, but there is no such file in '"),
        (["--compare", "openvino", "--target", "gpu"], "it goes with --target cpu"),
        (["--tune", "--rate", "5"], "--tune does not go with --rate"),
        (["--tune", "--target", "gpu"], "--tune searches settings of the CPU"),
        (["--tune", "--p99-ms", "0"], "--p99-ms is 0, wanted more than 0"),
        (["--p99-ms", "5"], "--p99-ms goes with --tune"),
    ],
)
def test_wrong_flags_are_one_line_and_exit_code_2(
    mslite: Run, flags: list[str], words: str
) -> None:
    done = mslite("bench", DIGITS_MODEL, *flags)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.mindir"], "model_path does not exist: 'nowhere.mindir'"),
        ([DIGITS_MODEL, "--engine", "magic"], "engine is 'magic', wanted one of"),
        ([DIGITS_MODEL, "--input", f"y={DIGITS_MODEL}"], "the model has no input ['y']"),
        ([DIGITS_MODEL, "--input", "x=nowhere.npy"], "nowhere.npy"),
        ([DIGITS_MODEL, "--shape", "x=1,1,9"], "got shape [1, 1, 9], the model wants"),
        ([DIGITS_MODEL, "--shape", "x=-1,1,8,8"], "--shape got [-1, 1, 8, 8], every dim must be"),
        ([DIGITS_MODEL, "--shape", "x=99999999999,1,8,8"], "has no room in memory; give a smaller"),
        ([DIGITS_MODEL, "--json", "nowhere/x.json"], "there is no folder for 'nowhere/x.json'"),
        ([DIGITS_MODEL, "--html", "."], "'.' is a folder, wanted a file"),
    ],
)
def test_what_cannot_be_measured_is_one_line_and_exit_code_1(
    mslite: Run, arguments: list[object], words: str
) -> None:
    done = mslite("bench", *arguments, *SHORT)
    assert done.code == 1
    assert words in done.err
    assert done.err.count("\n") == 1


def test_a_file_of_another_size_is_refused(mslite: Run, tmp_path: Path) -> None:
    np.zeros(3, np.float32).tofile(tmp_path / "x.bin")
    done = mslite("bench", DIGITS_MODEL, "--input", f"x={tmp_path / 'x.bin'}")
    assert done.code == 1
    assert "has 3 values, input 'x' of shape [1, 1, 8, 8] wants 64" in done.err


def test_every_load_is_a_row_and_everything_is_in_the_files(mslite: Run, tmp_path: Path) -> None:
    figures, report = tmp_path / "bench.json", tmp_path / "bench.html"
    loads = ("--clients", "1,2", "--rate", 100, "--workers", 1, "--threads", 1)
    done = mslite("bench", DIGITS_MODEL, *loads, *SHORT, "--json", figures, "--html", report)
    assert (done.code, done.err) == (0, "")
    assert "input x is open; taking [1, 1, 8, 8]" in done.out
    assert "digits.mindir: 1 worker, 1 thread each" in done.out
    assert re.search(r"mslite +1 client +\d+\.\d +\d", done.out)
    assert re.search(r"mslite +100 /s +\d+\.\d +\d", done.out)
    found = json.loads(figures.read_text())
    assert found["model"] == {
        "file": "digits.mindir",
        "inputs": [{"name": "x", "dtype": "float32", "shape": [1, 1, 8, 8]}],
    }
    assert [(run["clients"], run["rate"]) for run in found["runs"]] == [
        (1, None),
        (2, None),
        (None, 100.0),
    ]
    assert found["settings"]["engine"] == "onnxruntime"
    assert found["layout"] == [{"worker": 0, "threads": 1, "cores": []}]
    assert found["tune"] is None
    assert "digits.mindir" in report.read_text()


def test_inputs_may_come_from_files(mslite: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((3, 1, 8, 8), np.float32))
    figures = tmp_path / "bench.json"
    done = mslite(
        *("bench", DIGITS_MODEL, "--input", f"x={tmp_path / 'x.npy'}", "--clients", 1),
        *(*SHORT, "--json", figures),
    )
    assert done.code == 0
    assert json.loads(figures.read_text())["model"]["inputs"][0]["shape"] == [3, 1, 8, 8]


def test_a_comparison_prints_ratios_with_their_spread(
    mslite: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        peers, "missing", lambda names: {n: peers.INSTALL[n] for n in names if n == "openvino"}
    )
    done = mslite(
        *("bench", DIGITS_MODEL, "--clients", 1, "--compare", "onnxruntime,openvino"),
        *(*SHORT, "--rounds", 2),
    )
    assert (done.code, done.err) == (0, "")
    assert "openvino is not installed, and left out: pip install openvino" in done.out
    assert re.search(r"onnxruntime +1 client +\d", done.out)
    wanted = (
        r"mslite and onnxruntime, 1 client: \d+\.\d\d \(\d+\.\d\d to \d+\.\d\d\) throughput, ours"
    )
    assert re.search(wanted, done.out)


def test_errors_are_shown_and_none_but_errors_is_a_failure(
    mslite: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    none = Burst(np.empty(0), np.empty(0), 0, 1.0, 0.1, errors=7, first_error="too hot")
    monkeypatch.setattr(compare, "closed_loop", lambda *_, **__: none)
    done = mslite("bench", DIGITS_MODEL, "--clients", 1, *SHORT)
    assert "mslite, 1 client: 7 errors, the first: too hot" in done.out
    assert (done.code, done.err) == (1, "mslite: no request was answered\n")


def test_ctrl_c_shows_what_was_measured(mslite: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    some = Burst(np.zeros(9), np.ones(9) * 0.5, 9, 1.0, 0.1, interrupted=True)
    monkeypatch.setattr(compare, "closed_loop", lambda *_, **__: some)
    done = mslite("bench", DIGITS_MODEL, *SHORT)
    assert re.search(r"mslite +1 client +9\.0", done.out)
    assert (done.code, done.err) == (
        130,
        "mslite: interrupted; these are the figures up to then\n",
    )
    nothing = Burst(np.empty(0), np.empty(0), 0, 0.0, 0.0, interrupted=True)
    monkeypatch.setattr(compare, "closed_loop", lambda *_, **__: nothing)
    assert mslite("bench", DIGITS_MODEL, *SHORT).err == "mslite: interrupted\n"


def test_warnings_of_a_build_are_lines(mslite: Run) -> None:
    workers = len(os.sched_getaffinity(0)) + 1
    done = mslite("bench", DIGITS_MODEL, "--workers", workers, "--clients", 1, *SHORT)
    assert (done.code, done.err) == (0, "")
    assert done.out.count(f"warning: {workers} workers of") == 1


def test_two_model_files_are_compared(mslite: Run, tmp_path: Path) -> None:
    small = tmp_path / "small.mindir"
    assert mslite("convert", DIGITS_MODEL, small, "--quantise", "weight").code == 0
    files = ("--json", tmp_path / "c.json", "--html", tmp_path / "c.html")
    flags = ("--clients", 1, "--compare", small, "--rounds", 1, *SHORT, *files)
    done = mslite("bench", DIGITS_MODEL, *flags)
    assert (done.code, done.err) == (0, "")
    assert "mslite is digits.mindir; small.mindir runs with its settings" in done.out
    assert "mslite and small.mindir, 1 client: " in done.out
    assert "small.mindir, output Default/Softmax-op0: largest difference " in done.out
    assert ", the same top class in 1 of 1 row\n" in done.out
    assert "these are of one random request" in done.out
    found = json.loads((tmp_path / "c.json").read_text())
    assert [run["side"] for run in found["runs"]] == ["mslite", "small.mindir"]
    (apart,) = found["apart"]
    assert 0 < apart["largest"] < 0.2
    page = (tmp_path / "c.html").read_text()
    assert "How far the answers lie apart" in page
    assert "digits.mindir answers " in page  # not the program: both sides are it


def test_a_file_of_the_same_name_is_told_by_its_path(mslite: Run, tmp_path: Path) -> None:
    (tmp_path / "digits.mindir").write_bytes(DIGITS_MODEL.read_bytes())
    twin = tmp_path / "digits.mindir"
    flags = ("--clients", 1, "--compare", twin, "--rounds", 1, *SHORT)
    done = mslite("bench", DIGITS_MODEL, *flags)
    assert (done.code, done.err) == (0, "")
    assert f"mslite and {twin}, 1 client: " in done.out
    assert "largest difference 0 of the largest value, cosine 1.0" in done.out


# --- --tune ---------------------------------------------------------------------------------------

TUNE = ("--tune", "--engine", "onnxruntime", "--clients", "1", *SHORT)


def test_too_few_requests_are_said_and_nothing_is_remembered(
    mslite: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE_DIR", str(tmp_path / "cache"))
    short = ("--tune", "--engine", "onnxruntime", "--clients", "1")
    times = ("--duration", "0.001", "--warmup", "0")
    done = mslite("bench", DIGITS_MODEL, *short, *times, "--json", tmp_path / "t.json")
    assert (done.code, done.err) == (0, "")
    assert "not remembered for [common_context] engine=auto: " in done.out
    assert "rounds say too little, wanted 100 in 5 or more" in done.out
    assert "wanted 100" in json.loads((tmp_path / "t.json").read_text())["tune"]["not_remembered"]
    assert not (tmp_path / "cache/choices").exists()


def test_the_best_settings_are_printed_and_kept(
    mslite: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "why_too_little", lambda _: "")
    kept: list[tuple[object, ...]] = []
    monkeypatch.setattr(bench_module, "remember", lambda *what: kept.append(what) or True)
    done = mslite("bench", DIGITS_MODEL, *TUNE, "--json", tmp_path / "tune.json")
    assert (done.code, done.err) == (0, "")
    assert "context = mslite.Context()" in done.out
    assert "[common_context]\n  engine=onnxruntime" in done.out
    assert "remembered for [common_context] engine=auto" in done.out
    found = json.loads((tmp_path / "tune.json").read_text())
    (chosen,) = [point for point in found["tune"]["points"] if point["chosen"]]
    assert chosen["on_front"]
    assert found["settings"]["workers"] == chosen["workers"]
    assert [run["clients"] for run in found["runs"]] == [1]
    assert kept[0][:2] == (DIGITS_MODEL, "MINDIR")


def test_a_limit_that_nothing_keeps_to_is_a_failure(
    mslite: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_module, "remember", lambda *_: pytest.fail("there is no winner"))
    done = mslite("bench", DIGITS_MODEL, *TUNE, "--p99-ms", 1e-6, "--json", tmp_path / "t.json")
    assert (done.code, done.err) == (1, "mslite: no setting keeps p99 within 1e-06 ms\n")
    assert "too slow" in done.out
    assert json.loads((tmp_path / "t.json").read_text())["tune"]["python"] == ""


def test_a_search_in_which_nothing_can_be_tried_says_why(mslite: Run) -> None:
    done = mslite("bench", DIGITS_MODEL, *TUNE, "--shape", "x=1,1,9")
    assert done.code == 1
    assert "no setting could be tried: predict failed!" in done.err
