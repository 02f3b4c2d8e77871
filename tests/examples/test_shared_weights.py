"""examples/shared_weights: three processes on one copy of the weights, one of them not listed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.fake_engine import LIMIT_S
from support.models import dense_net, written

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "examples/shared_weights/main.py"
# since Python 3.12 a fork beside threads, NumPy's own included, is worth a warning
WARNINGS = "error,ignore:This process:DeprecationWarning"


def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    more = {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": WARNINGS, **environment}
    return subprocess.run(
        [sys.executable, str(PROGRAM), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=4 * LIMIT_S,
        env={**os.environ, **more},
        check=False,
    )


@pytest.mark.parametrize(
    ("method", "target"), [("spawn", "cpu"), ("fork", "cpu"), ("fork", "ascend")]
)
def test_a_listed_process_uses_the_weights_and_an_unlisted_one_is_told(
    method: str, target: str
) -> None:
    options = ("--unlisted", 2, "--start-method", method, "--target", target, "--device", 2)
    done = run(*options, MSLITE_ASCEND="emulate", MSLITE_ASCEND_QUIET="1")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    for index in range(3):
        assert f"index: {index}" in lines
    for text in ("begin model group", "********** begin build model **********"):
        assert lines.count(text) == 3
    listed, unlisted = re.findall(r"^pid: (\d+)$", done.stdout, re.M)
    if f"str of pids: 0, {listed}, 0" not in lines:  # they may have come the other way round
        listed, unlisted = unlisted, listed
    assert f"str of pids: 0, {listed}, 0" in lines
    (handle,) = re.findall(r"^shareable handle: (\d+)$", done.stdout, re.M)
    assert f"int shareable_handle: {handle}" in lines
    assert f"share handle value: {handle}" in lines
    assert lines.count(f"sub process sharehandle: {handle}") == 2
    (told,) = (line for line in lines if line.startswith("share  2 "))
    assert told.startswith(
        f"share  2   build_from_file failed! Error is this process, {unlisted}, is not in the "
        "shareable_weight_pid_list of process "
    )
    for index in (0, 1):
        assert re.search(rf"^share  {index} spend time: [\d.e-]+ s$", done.stdout, re.M)
    results = re.findall(r"^share  [01]   (\[.*?\)\])$", done.stdout, re.M | re.S)
    assert len(results) == 2
    assert results[0] == results[1]


def test_a_model_of_ones_own_and_more_processes(tmp_path: Path) -> None:
    model = written(tmp_path / "dense.mindir", dense_net())
    done = run(model, "--processes", 4)
    assert (done.returncode, done.stderr) == (0, "")
    results = re.findall(r"^share  \d   (\[.*?\)\])$", done.stdout, re.M | re.S)
    assert len(results) == 4
    assert len(set(results)) == 1


def test_all_are_told_when_the_first_process_cannot_share(tmp_path: Path) -> None:
    done = run(MSLITE_CACHE="off", MSLITE_CACHE_DIR=str(tmp_path))
    assert done.returncode == 1
    assert "share  0   build_from_file failed! Error is the model cannot be shared" in done.stdout
    assert done.stdout.count("the first process could not build its model") == 2
