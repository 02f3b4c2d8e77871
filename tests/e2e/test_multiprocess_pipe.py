"""Users' own processes around Model: Process and Pipe, a model in each child, all start methods."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.fake_engine import LIMIT_S
from support.models import arrays, built, dense_net, small_unet, written

PROGRAMS = Path(__file__).parent / "programs"
ROOT = Path(__file__).parents[2]
# since Python 3.12 a fork beside threads, NumPy's own included, is worth a warning
WARNINGS = "error,ignore:This process:DeprecationWarning"
NOTICE = "mslite: target 'ascend' is emulated on the CPU with 2 devices (MSLITE_ASCEND)\n"


def run(*command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program, which must end by itself."""
    return subprocess.run(
        [sys.executable, *map(str, command)],
        capture_output=True,
        text=True,
        timeout=2 * LIMIT_S,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": WARNINGS, **environment},
        check=False,
    )


# --- the three files of the guide for several cards -----------------------------------------------


@pytest.fixture
def inputs() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    return {
        "sample": rng.standard_normal((2, 4, 8, 8), np.float32),
        "timestep": np.array(50.0, np.float32),
        "encoder_hidden_states": rng.standard_normal((2, 7, 16), np.float32),
    }


def run_pipes(
    folder: Path, inputs: dict[str, np.ndarray], devices: int, target: str, method: str
) -> subprocess.CompletedProcess[str]:
    model = written(folder / "unet.mindir", small_unet(rows=1))
    np.savez(folder / "inputs.npz", **inputs)
    files = model, folder / "inputs.npz", folder / "results.npz"
    main = PROGRAMS / "pipes/main.py"
    return run(main, *files, devices, target, method, MSLITE_ASCEND="emulate:2")


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("spawn", "cpu"),
        ("spawn", "ascend"),
        ("fork", "cpu"),
        ("fork", "ascend"),
        ("forkserver", "cpu"),  # the default of Python 3.14
    ],
)
def test_a_batch_in_two_processes_equals_the_unsplit_model(
    method: str, target: str, tmp_path: Path, inputs: dict[str, np.ndarray]
) -> None:
    done = run_pipes(tmp_path, inputs, 2, target, method)
    assert (done.returncode, done.stderr) == (0, NOTICE * 2 if target == "ascend" else "")
    lines = done.stdout.splitlines()
    assert re.fullmatch(r"Total predict time =  \d+\.\d+(e-\d+)?", lines.pop(2))
    assert lines == [
        "Success to build model 0",
        "Success to build model 1",
        "Receive exit message  and start to exit",
        "Receive exit message  and start to exit",
        "=========== success ===========",
    ]
    with np.load(tmp_path / "results.npz") as file:
        joined = np.concatenate([file[name] for name in file.files])
    with built(written(tmp_path / "whole.mindir", small_unet(rows=2))) as model:
        (wanted,) = arrays(model.predict({**inputs, "timestep": inputs["timestep"].reshape(1)}))
    assert joined.shape == (2, 4, 8, 8)
    np.testing.assert_allclose(joined, wanted, rtol=1e-5, atol=1e-5)


def test_a_device_that_is_not_there_is_told_by_its_process(
    tmp_path: Path, inputs: dict[str, np.ndarray]
) -> None:
    done = run_pipes(tmp_path, inputs, 3, "ascend", "fork")
    assert done.returncode == 1
    assert done.stdout.splitlines() == ["Success to build model 0", "Success to build model 1"]
    assert done.stderr.splitlines()[-1].startswith(
        "RuntimeError: Failed to build model 2, exception occur: build_from_file failed! Error is "
        "context.ascend.device_id asks for device 2, but MSLITE_ASCEND emulates devices 0 to 1;"
    )


# --- what a parent may have done before it forks --------------------------------------------------

WELL = ["child: [4.0, 13.0]", "exit code: 0"]


def fork_after(state: str, folder: Path) -> list[str]:
    model = written(folder / "dense.mindir", dense_net())
    done = run(PROGRAMS / "fork_after.py", model, state)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize("state", ["imported", "context", "closed"])
def test_a_child_builds_its_own_model(state: str, tmp_path: Path) -> None:
    assert fork_after(state, tmp_path) == WELL


def test_what_the_parent_has_open_is_a_clear_error_in_the_child(tmp_path: Path) -> None:
    model, runner, *well, parent = fork_after("open", tmp_path)
    assert model == (
        "child: predict failed! the session was made before this process was forked, and its "
        "threads stayed with the parent; build the model in the child, or use the spawn start "
        "method"
    )
    assert runner.startswith("child: predict failed! the runner was built before this process was")
    assert well == WELL
    assert parent == "parent: [4.0, 13.0] [4.0, 13.0]"
