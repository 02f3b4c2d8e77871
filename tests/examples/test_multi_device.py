"""examples/multi_device: the guide for several cards as programs of ours, and their model."""

from __future__ import annotations

import importlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from support.devices import stop_process
from support.fake_engine import LIMIT_S
from support.models import arrays, built, small_unet, written
from support.running import assert_close

from mindspore_lite.core import cores
from mindspore_lite.errors import WorkerDiedError

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/multi_device"
SCRIPT = EXAMPLE / "make_model.py"
NOTICE = "mslite: target 'ascend' is emulated on the CPU with 2 devices (MSLITE_ASCEND)\n"
EXIT_LINE = "Receive exit message  and start to exit"
TWO_CORES = pytest.mark.skipif(
    len(cores.usable().ids) < 2, reason="a cpu device needs a core of its own"
)
TARGETS = [pytest.param("cpu", marks=TWO_CORES), "ascend"]


def made(path: Path, *options: str) -> Path:
    command = [sys.executable, str(SCRIPT), str(path), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert (done.stdout, done.stderr) == ("CONVERT RESULT SUCCESS:0\n", "")
    return path


@pytest.fixture(scope="module")
def one_row(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("fixed") / "unet.mindir")


@pytest.fixture(scope="module")
def any_rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("open") / "unet.mindir", "--open-batch")


@pytest.mark.parametrize(("name", "rows"), [("one_row", 1), ("any_rows", -1)])
def test_the_model_has_the_inputs_of_the_guide(
    name: str, rows: int, request: pytest.FixtureRequest
) -> None:
    with built(request.getfixturevalue(name)) as model:
        inputs = {tensor.name: tensor for tensor in model.get_inputs()}
    assert {name: tensor.shape for name, tensor in inputs.items()} == {
        "sample": [rows, 4, 64, 64],
        "timestep": [1],
        "encoder_hidden_states": [rows, 77, 1024],
    }
    assert {tensor.dtype.name for tensor in inputs.values()} == {"FLOAT32"}


def test_rows_one_by_one_are_those_of_the_whole_batch(one_row: Path, any_rows: Path) -> None:
    rng = np.random.default_rng(2)
    sample = rng.standard_normal((2, 4, 64, 64), np.float32)
    states = rng.standard_normal((2, 77, 1024), np.float32)
    time = np.array([50], np.float32)
    with built(any_rows) as model:
        (wanted,) = arrays(model.predict([sample, time, states]))
    with built(one_row) as model:
        rows = [arrays(model.predict([sample[i], time, states[i]]))[0] for i in range(2)]
    assert_close(np.concatenate(rows), wanted)


# --- the programs ---------------------------------------------------------------------------------


def run(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a program of the example, which must end by itself."""
    return subprocess.run(
        [sys.executable, str(EXAMPLE / name), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=2 * LIMIT_S,
        env={**os.environ, "PYTHONPATH": str(ROOT), "MSLITE_ASCEND": "emulate:2"},
        check=False,
    )


def assert_lines_of_the_guide(printed: str) -> None:
    lines = printed.splitlines()
    assert re.fullmatch(r"Total predict time =  \d+\.\d+(e-\d+)?", lines.pop(2))
    assert lines == [
        "Success to build model 0",
        "Success to build model 1",
        EXIT_LINE,
        EXIT_LINE,
        "=========== success ===========",
    ]


@pytest.mark.parametrize("target", TARGETS)
def test_rows_of_two_devices_are_those_of_the_unsplit_model(target: str, tmp_path: Path) -> None:
    model = written(tmp_path / "unet.mindir", small_unet(rows=1))
    done = run("main.py", model, "--target", target, "--save", tmp_path / "found.npz")
    assert (done.returncode, done.stderr) == (0, NOTICE if target == "ascend" else "")
    assert_lines_of_the_guide(done.stdout)
    rng = np.random.default_rng(7)  # as main.py makes its batch up
    sample = rng.standard_normal((2, 4, 8, 8), np.float32)
    states = rng.standard_normal((2, 7, 16), np.float32)
    with built(written(tmp_path / "whole.mindir", small_unet(rows=2))) as whole:
        (wanted,) = arrays(whole.predict([sample, np.float32([50]), states]))
    with np.load(tmp_path / "found.npz") as found:
        assert_close(found["arr_0"], wanted)


def test_without_a_model_the_network_of_the_guide_is_made() -> None:
    done = run("main.py", "--target", "ascend", "--messages")
    assert done.returncode == 0
    assert_lines_of_the_guide(done.stdout)
    told = [line for line in done.stderr.splitlines() if "device 1: " in line]
    assert told == [
        "to device 1: BUILD",
        "from device 1: BUILD_FINISH",
        "to device 1: PREDICT",
        "from device 1: REPLY",
        "to device 1: EXIT",
        "from device 1: REPLY",
    ]


@pytest.mark.parametrize("target", TARGETS)
def test_the_runner_does_the_same_in_one_call(target: str) -> None:
    done = run("with_runner.py", "--target", target)
    assert done.returncode == 0, done.stderr
    *devices, last = done.stdout.splitlines()
    assert devices == ["device 0 computed 1 part", "device 1 computed 1 part"]
    found = re.fullmatch(r"3 rows, at most (\S+) from those of the unsplit model", last)
    assert found is not None, last
    assert float(found[1]) < 1e-3


def test_a_device_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    model = written(tmp_path / "unet.mindir", small_unet(rows=1))
    done = run("main.py", model, "--target", "ascend", "--devices", "0,2")
    assert (done.returncode, done.stdout) == (1, "")
    assert "target 'ascend' asks for device 2, but MSLITE_ASCEND emulates" in done.stderr


# --- what goes wrong ------------------------------------------------------------------------------


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module of ParallelPredictUtils."""
    monkeypatch.syspath_prepend(EXAMPLE)
    monkeypatch.setenv("MSLITE_ASCEND", "emulate:2")
    yield importlib.import_module("parallel_predict_utils")
    for name in ("parallel_predict_utils", "mslite_engine"):
        del sys.modules[name]


@pytest.fixture
def model(tmp_path: Path) -> str:
    return str(written(tmp_path / "unet.mindir", small_unet(rows=1)))


PART = [
    np.zeros((1, 4, 8, 8), np.float32),
    np.zeros(1, np.float32),
    np.zeros((1, 7, 16), np.float32),
]


def is_running(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_the_messages_have_the_numbers_of_the_guide(example: ModuleType) -> None:
    names = ("ERROR", "PREDICT", "REPLY", "BUILD_FINISH", "EXIT")
    assert [int(getattr(example, name)) for name in names] == [0, 1, 2, 3, 4]


def test_a_dead_worker_is_an_error_and_nothing_is_left(
    example: ModuleType,
    model: str,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    parallel = example.ParallelPredictUtils(model, 2, target="ascend")
    parallel.build_model()
    dead, alive = (engine.pid for engine in parallel.engines)
    os.kill(dead, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="Failed to call predict, exception occur: ") as caught:
        parallel.run_predict([PART, PART])
    reason = caught.value.__cause__
    assert isinstance(reason, WorkerDiedError)
    assert (reason.device, reason.signal) == (0, signal.SIGKILL)
    assert is_running(alive)
    caplog.set_level("DEBUG", "messages")
    parallel.finalize()
    assert {"from device 0: ERROR", "from device 1: REPLY"} < set(caplog.messages)
    assert not is_running(alive)
    assert capsys.readouterr().out.splitlines()[2:] == [EXIT_LINE]


def test_a_hung_worker_is_an_error_at_the_deadline(
    example: ModuleType, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["mslite_engine"], "PATIENCE_S", 0.1)
    parallel = example.ParallelPredictUtils(model, 2, target="ascend", timeout_s=0.2)
    parallel.build_model()
    pids = [engine.pid for engine in parallel.engines]
    stop_process(pids[1])
    try:
        with pytest.raises(RuntimeError, match=r"Failed to call predict, .*did not answer"):
            parallel.run_predict([PART, PART])
    finally:  # a stopped process would not notice the end of this one
        parallel.finalize()
    assert not any(is_running(pid) for pid in pids)


def test_one_build_that_fails_ends_the_other_worker(
    example: ModuleType, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parallel = example.ParallelPredictUtils(model, device_ids=[1, 0], target="ascend")
    parallel._builds[1] = 0, partial(example.MSLitePredict, "missing.mindir", 0)
    with pytest.raises(RuntimeError, match=r"Failed to build model 0, .*missing\.mindir"):
        parallel.build_model()
    assert capsys.readouterr().out.splitlines() == ["Success to build model 1", EXIT_LINE]


def test_parts_that_do_not_fit_are_told(example: ModuleType, model: str) -> None:
    parallel = example.ParallelPredictUtils(model, 2, target="ascend")
    with pytest.raises(RuntimeError, match=r"call build_model\(\) first"):
        parallel.run_predict([PART, PART])
    parallel.build_model()
    try:
        with pytest.raises(ValueError, match="there are inputs for 1 of 2 devices"):
            parallel.run_predict([PART])
        with pytest.raises(RuntimeError, match=r"Failed to call predict, .*float64"):
            parallel.run_predict([PART, [PART[0].astype(np.float64), *PART[1:]]])
        assert len(parallel.run_predict([PART, PART])) == 2
    finally:
        parallel.finalize()
