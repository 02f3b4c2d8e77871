"""Programs with the calls and the habits of the original's Java samples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.java import Program, needs_jdk
from support.shared import ROOT

import mindspore_lite as mslite

pytestmark = needs_jdk

PROGRAMS = Path(__file__).parent / "programs"
MODEL = ROOT / "tests/data/models/mobilenet_v3_mini.mindir"
SUCCESS = "========== model parallel runner predict success =========="


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory, java_sdk: Path) -> Program:
    return Program(sorted(PROGRAMS.glob("*.java")), tmp_path_factory.mktemp("programs"), java_sdk)


@pytest.fixture(scope="module")
def halves() -> mslite.Tensor:
    """What comes out of the model when all that goes in is 0.5."""
    model = mslite.Model()
    model.build_from_file(str(MODEL), mslite.ModelType.MINDIR)
    (tensor,) = model.get_inputs()
    (output,) = model.predict([mslite.Tensor(np.full(tensor.shape, 0.5, np.float32))])
    return output


def assert_close(got: list[str], wanted: mslite.Tensor) -> None:
    values = wanted.get_data_to_numpy().reshape(-1)[: len(got)]
    assert len(values) == len(got)
    np.testing.assert_allclose(np.array(got, np.float32), values, atol=1e-4 * np.abs(values).max())


def test_the_habits_of_the_quick_start_do_no_harm(programs: Program, halves: mslite.Tensor) -> None:
    done = programs.run("Habits", MODEL)
    assert (done.returncode, done.stderr) == (0, "")
    version, result = done.stdout.splitlines()
    assert version == f"MindSpore Lite {mslite.__version__}"
    shape, _, values = result.partition("] and out data: ")
    assert shape == "out tensor shape: [" + "".join(f"{dim}," for dim in halves.shape)
    assert_close(values.split(), halves)


def test_a_program_of_the_originals_tutorial_runs(
    tmp_path: Path, programs: Program, halves: mslite.Tensor
) -> None:
    done = programs.run("Concurrent", MODEL)
    assert (done.returncode, done.stderr) == (0, "")
    version, success, *values = done.stdout.splitlines()
    assert version == f"MindSpore Lite {mslite.__version__}"
    assert success == SUCCESS
    assert len(values) == halves.element_num
    assert_close(values, halves)
    missing = tmp_path / "größe.mindir"
    done = programs.run("Concurrent", missing, LC_ALL="C.UTF-8")
    assert (done.returncode, done.stdout) == (0, f"{version}\n")  # as the original's: it returns
    assert "ModelParallelRunner init failed." in done.stderr
    assert str(missing) in done.stderr


@pytest.mark.parametrize("how", ["Runner", "Ascend"])
def test_files_of_inputs_give_the_outputs_of_a_file(
    how: str, tmp_path: Path, programs: Program, halves: mslite.Tensor
) -> None:
    inputs, wanted = tmp_path / "input.bin", tmp_path / "wanted.txt"
    model = mslite.Model()
    model.build_from_file(str(MODEL), mslite.ModelType.MINDIR)
    np.full(model.get_inputs()[0].shape, 0.5, np.float32).tofile(inputs)
    values = halves.get_data_to_numpy().reshape(-1)
    wanted.write_text(f"{halves.name} 2 1 10\n{' '.join(map(str, values))}\n")
    limit = float(1e-4 * np.abs(values).max())
    done = programs.run("Accuracy", MODEL, inputs, wanted, limit, how, MSLITE_ASCEND="emulate")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        *([SUCCESS] if how == "Runner" else []),
        "MindSpore Lite infer success!",
        f"{halves.name} was compared: {values.size} values",
    ]
