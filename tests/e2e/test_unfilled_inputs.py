"""Inputs that were never filled: zeros on target ascend, as in the original; else an error."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.models import MINDIR, dense_net, dense_values, written

import mindspore_lite as mslite
from mindspore_lite.errors import InputError, ShapeError

ZEROS = dense_values(np.zeros((2, 3), np.float32))


def context(target: str) -> mslite.Context:
    found = mslite.Context()
    found.target = [target]
    found.cpu.thread_num = 1
    found.ascend.provider = "ge"
    found.parallel.workers_num = 1
    return found


@pytest.fixture
def dense(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MSLITE_ASCEND", "emulate:1")
    return written(tmp_path / "dense.mindir", dense_net())


def test_a_model_runs_on_zeros(dense: Path) -> None:
    with mslite.Model() as model:
        model.build_from_file(str(dense), MINDIR, context("ascend"))
        np.testing.assert_array_equal(np.asarray(model.predict(model.get_inputs())[0]), ZEROS)
        model.resize(model.get_inputs(), [[5, 3]])
        assert model.predict(model.get_inputs())[0].shape == [5, 4]


@pytest.mark.parametrize("kind", [mslite.ModelParallelRunner, mslite.MultiDeviceRunner])
def test_a_runner_runs_on_zeros(dense: Path, kind: type[mslite.ModelParallelRunner]) -> None:
    with kind() as runner:
        runner.build_from_file(str(dense), context("ascend"))
        np.testing.assert_array_equal(np.asarray(runner.predict(runner.get_inputs())[0]), ZEROS)


def test_open_sizes_have_no_zeros(tmp_path: Path, dense: Path) -> None:
    with mslite.Model() as model:
        path = written(tmp_path / "free.mindir", dense_net(-1))
        model.build_from_file(str(path), MINDIR, context("ascend"))
        with pytest.raises(ShapeError, match=r"no data yet; call Model\.resize"):
            model.predict(model.get_inputs())


def test_elsewhere_it_is_an_error(dense: Path) -> None:
    with mslite.Model() as model:
        model.build_from_file(str(dense), MINDIR, context("cpu"))
        with pytest.raises(InputError, match="input 'x' has no data; fill it"):
            model.predict(model.get_inputs())
