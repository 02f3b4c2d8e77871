"""Programs for Ascend on a machine without it: MSLITE_ASCEND=emulate, from Context to Tensor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.models import MINDIR, MOBILENET, arrays, dense_net, dense_values, written

import mindspore_lite as mslite
from mindspore_lite.core import cores
from mindspore_lite.engines import ascend
from mindspore_lite.errors import EngineUnavailableError, LiteError

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def dense(tmp_path: Path) -> str:
    return str(written(tmp_path / "dense.mindir", dense_net()))


@pytest.fixture
def two_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSLITE_ASCEND", "emulate:2")
    monkeypatch.setattr(ascend, "_untold", [True])


def context(target: str = "ascend", **settings: Any) -> mslite.Context:
    made = mslite.Context()
    made.target = [target]
    for name, value in settings.items():
        setattr(made.ascend, name, value)
    return made


def run(path: str, wanted: mslite.Context, x: np.ndarray) -> np.ndarray:
    with mslite.Model() as model:
        model.build_from_file(path, MINDIR, wanted)
        (found,) = arrays(model.predict([x]))
        return found


@pytest.mark.parametrize("target", ["ascend", "Ascend"])
@pytest.mark.parametrize("device", [0, 1])
def test_a_model_runs_on_each_device(
    target: str, device: int, dense: str, two_devices: None, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        found = run(dense, context(target, device_id=device), X)
        np.testing.assert_array_equal(found, dense_values(X))
    assert capsys.readouterr().err == (
        "mslite: target 'ascend' is emulated on the CPU with 2 devices (MSLITE_ASCEND)\n"
    )


def test_what_only_ascend_knows_changes_nothing(dense: str, two_devices: None) -> None:
    wanted = context(precision_mode="enforce_fp16", rank_id=3, provider="ge")
    wanted.target = ["ascend", "cpu"]
    wanted.group_info_file = "nowhere.pb"
    settings = {
        "ascend_context": {"provider": "ge", "input_shape": "x:[2,3]"},
        "ge_session_options": {"ge.externalWeight": "1"},
        "acl_build_options": {"input_format": "ND"},
    }
    with mslite.Model() as model:
        model.build_from_file(dense, MINDIR, wanted, config_dict=settings)
        np.testing.assert_array_equal(arrays(model.predict([X]))[0], dense_values(X))


def test_the_numbers_are_those_of_the_cpu_and_come_from_the_same_compiled_file(
    two_devices: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSLITE_CACHE_DIR", str(tmp_path))
    x = np.random.default_rng(1).random((1, 3, 64, 64), np.float32)
    wanted = run(str(MOBILENET), context("cpu"), x)
    before = sorted(path.name for path in tmp_path.iterdir())
    np.testing.assert_array_equal(run(str(MOBILENET), context(device_id=1), x), wanted)
    assert before
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_threads_are_those_of_the_cpus_settings(dense: str, two_devices: None) -> None:
    wanted = context()
    wanted.cpu.thread_num, wanted.cpu.inter_op_parallel_num = 2, 3
    with pytest.raises(LiteError, match="inter_op_parallel_num is 3, wanted at most thread_num"):
        run(dense, wanted, X)


def test_a_device_that_is_not_there_fails_the_build(dense: str, two_devices: None) -> None:
    with pytest.raises(EngineUnavailableError) as caught:
        run(dense, context(device_id=2), X)
    assert str(caught.value).startswith(
        "build_from_file failed! Error is context.ascend.device_id asks for device 2, but "
        "MSLITE_ASCEND emulates devices 0 to 1;"
    )


def test_a_wrong_setting_fails_the_build(dense: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSLITE_ASCEND", "on")
    with pytest.raises(LiteError, match="MSLITE_ASCEND is 'on', wanted 'emulate'"):
        run(dense, context(), X)
    np.testing.assert_array_equal(run(dense, context("cpu"), X), dense_values(X))


# --- ModelParallelRunner --------------------------------------------------------------------------


def test_a_runner_runs_on_several_devices(dense: str, two_devices: None) -> None:
    wanted = context()
    wanted.cpu.thread_num = 1
    wanted.parallel.workers_num = min(2, cores.usable().limit)
    wanted.parallel.device_ids = [0, 1]
    with mslite.ModelParallelRunner() as runner:
        runner.build_from_file(dense, wanted)
        np.testing.assert_array_equal(arrays(runner.predict([X]))[0], dense_values(X))


@pytest.mark.parametrize("name", ["parallel.device_ids", "ascend.device_id"])
def test_a_runner_refuses_devices_that_are_not_there(
    name: str, dense: str, two_devices: None
) -> None:
    wanted = context()
    if name == "ascend.device_id":
        wanted.ascend.device_id = 2
    else:
        wanted.parallel.device_ids = [0, 2]
    words = f"context.{name} asks for device 2, but MSLITE_ASCEND emulates devices 0 to 1"
    with pytest.raises(EngineUnavailableError, match=words):
        mslite.ModelParallelRunner().build_from_file(dense, wanted)


def test_a_runner_without_devices_is_told_both_ways_out(dense: str) -> None:
    wanted = context()
    wanted.parallel.device_ids = [0]
    with pytest.raises(EngineUnavailableError, match=r"torch_npu.* set MSLITE_ASCEND=emulate"):
        mslite.ModelParallelRunner().build_from_file(dense, wanted)


# --- Tensor ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("device", "told"), [("ascend:1", "ascend:1"), ("ascend", "ascend:0"), ("Ascend:0", "ascend:0")]
)
def test_a_tensor_tells_its_device(device: str, told: str, two_devices: None) -> None:
    tensor = mslite.Tensor(shape=[2, 3], dtype=mslite.DataType.FLOAT32, device=device)
    assert tensor.device == told
    assert str(tensor).endswith(f"device: {told}.")
    assert mslite.Tensor(tensor).device == "None:-1"


def test_a_tensor_on_a_device_shares_no_memory_with_the_host(two_devices: None) -> None:
    """As on a card: there, a program that relied on sharing would compute something else."""
    given, later = X.copy(), X + 1
    tensor = mslite.Tensor(given, device="ascend:0")
    given[:] = tensor.get_data_to_numpy()[:] = -1
    np.testing.assert_array_equal(tensor.get_data_to_numpy(), X)
    tensor.set_data_from_numpy(later)
    later[:] = -1
    np.testing.assert_array_equal(tensor.get_data_to_numpy(), X + 1)


def test_tensors_on_a_device_go_into_a_model_and_come_out(dense: str, two_devices: None) -> None:
    given = mslite.Tensor(X, device="ascend:0")
    wanted = mslite.Tensor(shape=[2, 4], dtype=mslite.DataType.FLOAT32, device="ascend:0")
    with mslite.Model() as model:
        model.build_from_file(dense, MINDIR, context())
        (found,) = model.predict([given], [wanted])
        assert [output.device for output in model.predict([given])] == ["None:-1"]
    assert found is wanted
    assert wanted.device == "ascend:0"
    np.testing.assert_array_equal(wanted.get_data_to_numpy(), dense_values(X))


def test_a_tensor_on_a_device_that_is_not_there_is_refused(two_devices: None) -> None:
    words = "a tensor on 'ascend:2' asks for device 2, but MSLITE_ASCEND emulates devices 0 to 1"
    with pytest.raises(EngineUnavailableError, match=words):
        mslite.Tensor(X, device="ascend:2")
