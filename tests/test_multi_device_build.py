"""multi_device.py: runners are built, described and closed, and leave nothing behind."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.devices import context, device, on_devices, worker_pids
from support.fake_engine import LIMIT_S, wait_for
from support.fake_workers import begun
from support.models import (
    DIGITS,
    ENDLESS,
    arrays,
    built,
    dense_net,
    dense_values,
    looping,
    written,
)

import mindspore_lite as mslite
from mindspore_lite.errors import ClosedError, EngineError, LiteError, ModelFileError

X = np.array([3, 4], np.float32)
NEVER = [ENDLESS, X]


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """Every test here ends all the processes that it began."""
    before = worker_pids()
    yield
    wait_for(lambda: worker_pids() == before)


@pytest.fixture
def dense(tmp_path: Path) -> Path:
    return written(tmp_path / "dense.mindir", dense_net(-1))


def test_a_runner_that_is_not_built_says_so() -> None:
    runner = mslite.MultiDeviceRunner()
    for call in (
        lambda: runner.predict([]),
        lambda: runner.submit([]),
        lambda: runner.predict_parts([]),
        runner.statistics,
    ):
        with pytest.raises(EngineError, match="the runner is not built"):
            call()
    with pytest.warns(UserWarning, match="is empty: the model is not built"):
        assert (runner.get_inputs(), runner.get_outputs()) == ([], ())
    assert not runner.is_ready()
    runner.close()


def test_a_runner_can_be_built_again_after_it_was_closed(tmp_path: Path) -> None:
    x = np.ones((2, 3), np.float32)
    runner = mslite.MultiDeviceRunner()
    for factor in (1.0, 2.0):
        path = written(tmp_path / "m.mindir", dense_net(-1, factor))
        runner.build_from_file(str(path), context())
        with pytest.raises(EngineError, match=r"is built from .* already"):
            runner.build_from_file(str(path), context())
        np.testing.assert_array_equal(arrays(runner.predict([x]))[0], dense_values(x, factor))
        pids = [d.pid for d in runner.statistics().devices]
        runner.close()
        runner.close()
        assert not set(pids) & set(worker_pids())
        with pytest.raises(ClosedError, match="predict failed! the runner is closed"):
            runner.predict([x])
        with pytest.raises(ClosedError):
            runner.submit([x])
        assert not runner.is_ready()
        statistics = runner.statistics()
        assert (statistics.sent, statistics.done) == (1, 1)
        assert [d.state for d in statistics.devices] == ["closed", "closed"]


def test_what_was_submitted_is_answered_before_close(dense: Path) -> None:
    runner = mslite.MultiDeviceRunner()
    runner.build_from_file(str(dense), context())
    x = np.ones((4, 3), np.float32)
    futures = [runner.submit([x]) for _ in range(20)]
    runner.close(1e300)
    for future in futures:
        np.testing.assert_array_equal(arrays(future.result(0))[0], dense_values(x))


def test_what_does_not_end_is_ended_by_close(tmp_path: Path) -> None:
    runner = mslite.MultiDeviceRunner()
    runner.build_from_file(str(looping(tmp_path / "loop.onnx")), context())
    future = runner.submit(NEVER)
    waiting = begun(lambda: runner.predict(NEVER))
    wait_for(lambda: runner.statistics().running == 2)
    runner.close(0.01)
    for result in (lambda: future.result(LIMIT_S), waiting):
        with pytest.raises(ClosedError, match="predict failed! the runner was closed"):
            result()


@pytest.mark.parametrize("data", [b"no model", dense_net()[:100]], ids=["text", "torn"])
def test_a_model_that_cannot_be_loaded_is_refused_as_a_model_refuses_it(
    tmp_path: Path, data: bytes
) -> None:
    path = written(tmp_path / "m.mindir", data)
    with pytest.raises(LiteError) as plain:
        built(path)
    with pytest.raises(LiteError) as mine:
        mslite.MultiDeviceRunner().build_from_file(str(path), context([1]))
    assert type(mine.value) is type(plain.value)
    reason = str(plain.value).partition("Error is ")[2]
    doing = "MultiDeviceRunner's build from file failed! Error is device 1: "
    assert str(mine.value) == doing + reason


@pytest.mark.parametrize(
    ("target", "ids", "text"),
    [
        ("cpu", [0, 4096], r"cpu device ids \[0, 4096\] hold \[4096\]"),
        ("ascend", [0], "torch_npu|MSLITE_ASCEND"),
        ("gpu", [0], "device 0: .*gpu"),
    ],
)
def test_devices_that_do_not_exist_are_refused(target: str, ids: list[int], text: str) -> None:
    where = context(ids)
    where.target = [target]
    with pytest.raises(EngineError, match=text):
        mslite.MultiDeviceRunner().build_from_file(str(DIGITS), where)


def test_a_device_may_be_named_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSLITE_ASCEND", "emulate:1")
    where = context([0, 0])
    where.target = ["ascend"]
    with mslite.MultiDeviceRunner() as runner:
        runner.build_from_file(str(DIGITS), where)
        (output,) = runner.predict([np.zeros((4, 1, 8, 8), np.float32)])
        devices = runner.statistics().devices
    assert output.shape == [4, 10]
    assert [(device.device, device.done) for device in devices] == [(0, 1), (0, 1)]
    assert devices[0].pid != devices[1].pid


def test_a_file_that_is_not_there_is_refused() -> None:
    with pytest.raises(ModelFileError, match=r"model_path does not exist: 'no.mindir'"):
        mslite.MultiDeviceRunner().build_from_file("no.mindir")
    with pytest.raises(TypeError, match="model_path must be str"):
        mslite.MultiDeviceRunner().build_from_file(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="on_failure"):
        mslite.MultiDeviceRunner("perhaps")  # type: ignore[arg-type]


def test_warnings_of_the_build_reach_the_caller_once(dense: Path) -> None:
    where = context()
    where.target = ["cpu", "gpu"]
    runner = mslite.MultiDeviceRunner()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        runner.build_from_file(str(dense), where)
    runner.close()
    (warning,) = found
    assert "the first target decides" in str(warning.message)
    assert warning.filename == __file__


def test_a_warning_that_is_an_error_ends_the_build(dense: Path) -> None:
    where = context()
    where.target = ["cpu", "gpu"]
    with pytest.raises(UserWarning, match="the first target decides"):
        mslite.MultiDeviceRunner().build_from_file(str(dense), where)


def test_a_runner_cannot_be_pickled() -> None:
    with pytest.raises(TypeError, match="MultiDeviceRunner cannot be pickled"):
        pickle.dumps(mslite.MultiDeviceRunner())


def test_what_the_context_says_later_does_not_matter(dense: Path) -> None:
    """A device that starts again is built as it was."""
    info = {"batching": {"max_batch_rows": "0"}}
    where = context([0], config_info=info)
    runner = mslite.MultiDeviceRunner()
    runner.build_from_file(str(dense), where)
    info["batching"]["max_batch_rows"] = "x"
    where.parallel.device_ids = []
    where.target = ["gpu"]
    os.kill(device(runner, 0).pid, signal.SIGKILL)
    wait_for(lambda: device(runner, 0).restarts == 1 and runner.is_ready())
    runner.close()


def test_ends_and_statistics_are_described() -> None:
    with on_devices(DIGITS) as digits:
        (x,) = digits.get_inputs()
        (y,) = digits.get_outputs()
        assert (x.name, x.shape, y.shape) == ("x", [-1, 1, 8, 8], [-1, 10])
        assert str(digits) == f"model_path: {DIGITS}."
        assert digits.is_ready()
        digits.predict([np.zeros((4, 1, 8, 8), np.float32)])
        found = digits.statistics()
        assert (found.sent, found.done, found.running) == (1, 1, 0)
        one, other = found.devices
        assert (one.device, other.device, one.state, other.state) == (0, 1, "ready", "ready")
        assert set(one.cores).isdisjoint(other.cores)
        assert {one.pid, other.pid} <= set(worker_pids())
        assert (one.done, one.failed, one.restarts, one.error) == (1, 0, 0, "")
        assert (other.done, other.runner["done"]) == (1, 1)


def test_threads_that_watch_devices_end_with_the_runner(dense: Path) -> None:
    def watching() -> set[threading.Thread]:
        names = ("mslite-device", "mslite-log")
        return {t for t in threading.enumerate() if t.name.startswith(names)}

    before = watching()
    with on_devices(dense) as runner:
        runner.predict([np.ones((2, 3), np.float32)])
        assert len(watching() - before) == 4
    wait_for(lambda: not watching() - before)
