"""examples/multi_device: the model that the guide for several cards runs, made by its script."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.models import arrays, built
from support.running import assert_close

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples/multi_device/make_model.py"


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
