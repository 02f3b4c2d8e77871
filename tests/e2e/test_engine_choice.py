"""Models and runners on the PyTorch engine of the CPU, which a configuration asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.models import DIGITS, MINDIR, written
from support.updates import filled, telling_net, told, update, variable, versions

import mindspore_lite as mslite
from mindspore_lite.errors import EngineError

BY_TORCH = {"common_context": {"engine": "torch"}}
ROWS = np.random.default_rng(1).random((4, 1, 8, 8), np.float32)


def engine_of(model: Any) -> str:
    return str(model._usable("")._placed.built.engine.name)


@pytest.fixture(scope="module")
def wanted() -> np.ndarray:
    with mslite.Model() as model:
        model.build_from_file(str(DIGITS), MINDIR)
        return model.predict([ROWS])[0].get_data_to_numpy()


def test_a_file_can_name_the_engine(wanted: np.ndarray, tmp_path: Path) -> None:
    config = tmp_path / "torch.ini"
    config.write_text("[common_context]\nengine = torch\n")
    with mslite.Model() as model:
        model.build_from_file(str(DIGITS), MINDIR, config_path=str(config))
        assert model._usable("").built.engine.name == "torch"
        (output,) = model.predict([ROWS])
        np.testing.assert_allclose(output.get_data_to_numpy(), wanted, atol=1e-5)
        model.resize(model.get_inputs(), [[2, 1, 8, 8]])
        (output,) = model.predict([ROWS[:2]])
        np.testing.assert_allclose(output.get_data_to_numpy(), wanted[:2], atol=1e-5)


@pytest.mark.parametrize("max_rows", [0, 4])
def test_a_runner_takes_the_same_configuration(wanted: np.ndarray, max_rows: int) -> None:
    context = mslite.Context()
    context.parallel.workers_num = 2
    context.parallel.max_batch_rows = max_rows
    context.parallel.config_info = BY_TORCH
    with mslite.ModelParallelRunner() as runner:
        runner.build_from_file(str(DIGITS), context)
        assert engine_of(runner) == "torch"
        futures = [runner.submit([row[None]]) for row in ROWS]
        found = np.concatenate([future.result(120)[0].get_data_to_numpy() for future in futures])
        np.testing.assert_allclose(found, wanted, atol=1e-5)
        assert {worker.device for worker in runner.statistics().workers} == {"cpu"}


def test_precisions_are_close_to_each_other(wanted: np.ndarray) -> None:
    for precision in ("preferred_fp16", "preferred_bf16"):
        config = {**BY_TORCH, "cpu_context": {"precision_mode": precision}}
        with mslite.Model() as model:
            model.build_from_file(str(DIGITS), MINDIR, config_dict=config)
            (output,) = model.predict([ROWS])
            assert output.dtype is mslite.DataType.FLOAT32
            np.testing.assert_allclose(output.get_data_to_numpy(), wanted, atol=0.05)


def test_weights_change_for_all_workers(tmp_path: Path) -> None:
    path = written(tmp_path / "telling.mindir", telling_net())
    context = mslite.Context()
    context.parallel.workers_num = 2
    context.parallel.config_info = {**BY_TORCH, **variable("a", "b")}
    with mslite.ModelParallelRunner() as runner:
        runner.build_from_file(str(path), context)
        update(runner, versions(2))
        assert told(runner) == told(runner, rows=3) == 2
        update(runner, {"a": filled(3), "b": filled(3)})
        assert told(runner) == 3


@pytest.mark.parametrize("flag", list(mslite.ModelGroupFlag))
def test_a_group_on_torch_says_that_it_shares_nothing(
    flag: mslite.ModelGroupFlag, wanted: np.ndarray
) -> None:
    model = mslite.Model()
    group = mslite.ModelGroup(flag)
    group.add_model([str(DIGITS)] if flag is mslite.ModelGroupFlag.SHARE_WORKSPACE else [model])
    with pytest.warns(RuntimeWarning, match="shares neither weights nor scratch memory"):
        model.build_from_file(str(DIGITS), MINDIR, config_dict=BY_TORCH)
    (output,) = model.predict([ROWS])
    np.testing.assert_allclose(output.get_data_to_numpy(), wanted, atol=1e-5)


def test_an_engine_that_is_not_known_is_refused() -> None:
    with pytest.raises(EngineError, match="wanted one of onnxruntime, openvino, torch, auto"):
        mslite.Model().build_from_file(
            str(DIGITS), MINDIR, config_dict={"common_context": {"engine": "tvm"}}
        )
