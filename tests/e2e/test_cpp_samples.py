"""Programs with the calls and the habits of the original's samples, beyond the concurrent one."""

from __future__ import annotations

import shutil
from pathlib import Path

from support.cpp import DIGITS, ROOT, compiled, run_program

PROGRAMS = Path(__file__).parent / "programs"
NET = ROOT / "tests/data/models/mobilenet_v3_mini.mindir"


def test_two_threads_share_a_group_of_models_on_emulated_ascend(
    tmp_path: Path, cpp_sdk: Path
) -> None:
    program = compiled(PROGRAMS / "model_group.cc", tmp_path / "main", cpp_sdk)
    for name in ("path_to_model1", "path_to_model2"):
        shutil.copy(NET, tmp_path / name)
    done = run_program(program, cwd=tmp_path, MSLITE_ASCEND="emulate")
    assert (done.returncode, done.stderr.count("error")) == (0, 0), done.stderr
    first, second = done.stdout.splitlines()
    assert first == second
    assert " bytes, the first number is " in first


def test_a_model_runs_in_three_kinds_of_memory_and_is_its_own_configuration(
    tmp_path: Path, cpp_sdk: Path
) -> None:
    program = compiled(PROGRAMS / "three_runs.cc", tmp_path / "main", cpp_sdk)
    done = run_program(program, DIGITS, 3)
    assert done.stderr == ""
    results = [line.partition(" ") for line in done.stdout.splitlines()]
    assert [run for run, _, _ in results] == ["first", "second", "third"]
    assert len({result for _, _, result in results}) == 1
    assert results[0][2].startswith("Default/Softmax-op0 120 30 ")


def test_a_rank_of_a_distributed_model_runs_on_emulated_ascend(
    tmp_path: Path, cpp_sdk: Path
) -> None:
    program = compiled(PROGRAMS / "distributed.cc", tmp_path / "main", cpp_sdk)
    config = tmp_path / "config.ini"
    config.write_text("[ge_session_options]\nge.exec.precision_mode=must_keep_origin_dtype\n")
    done = run_program(program, NET, 0, 0, config, MSLITE_ASCEND="emulate")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(" bytes\n")
    assert "SetOutputType has no effect" in done.stderr


def test_a_rank_on_a_gpu_takes_its_own_file_and_says_what_is_missing(
    tmp_path: Path, cpp_sdk: Path
) -> None:
    program = compiled(PROGRAMS / "distributed.cc", tmp_path / "main", cpp_sdk)
    shutil.copy(NET, tmp_path / "net3.mindir")
    done = run_program(program, tmp_path / "net.mindir", OMPI_COMM_WORLD_RANK="3")
    assert done.stdout.splitlines()[0] == str(tmp_path / "net3.mindir")
    assert done.returncode == 255
    assert "Build error" in done.stderr
    assert "gpu" in done.stderr
