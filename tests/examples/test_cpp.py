from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.cpp import DIGITS, ROOT, SEVEN, compiled, environment, needs_cmake, run_program

EXAMPLES = ROOT / "examples/cpp"
PROGRAMS = {
    "quick_start": "mindspore_quick_start_cpp",
    "quick_start_parallel": "mindspore_quick_start_cpp",
    "runtime": "runtime_cpp",
}
MODEL = ROOT / "tests/data/models/mobilenet_v3_mini.mindir"
DIGITS_LINE = "tensor name is:Default/Softmax-op0 tensor size is:40 tensor elements num is:10"
_VALUES = "output data is:"


def built(example: str, tmp_path: Path, sdk: Path) -> Path:
    return compiled(EXAMPLES / example / "main.cc", tmp_path / PROGRAMS[example], sdk, "-Wpedantic")


def output_of(program: Path, *arguments: object) -> list[str]:
    done = run_program(program, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def numbers(line: str) -> np.ndarray:
    return np.array(line.removeprefix(_VALUES).split(), np.float32)


def own_model(tmp_path: Path) -> tuple[Path, np.ndarray]:
    """The input of a model as a file, and what comes out of it."""
    with np.load(MODEL.with_suffix(".npz")) as file:
        file["in0"].tofile(tmp_path / "input.bin")
        return tmp_path / "input.bin", file["out0"].reshape(-1)


def test_the_quick_start_prints_the_originals_labels_and_a_seven(
    tmp_path: Path, cpp_sdk: Path
) -> None:
    program = built("quick_start", tmp_path, cpp_sdk)
    first, second = output_of(program, DIGITS, SEVEN)
    assert first == DIGITS_LINE
    assert numbers(second).shape == (10,)
    assert numbers(second).argmax() == 7
    input_file, wanted = own_model(tmp_path)
    got = numbers(output_of(program, MODEL, input_file)[1])
    np.testing.assert_allclose(got, wanted[:50], atol=1e-4 * np.abs(wanted).max())
    assert numbers(output_of(program, MODEL)[1]).shape == got.shape  # random values


def test_the_quick_start_says_what_is_wrong(tmp_path: Path, cpp_sdk: Path) -> None:
    program = built("quick_start", tmp_path, cpp_sdk)
    for arguments, words in (
        ([], "Usage: "),
        (["/no/such.mindir"], "Build model error .*/no/such.mindir"),
        ([DIGITS, MODEL], "needs a file of 256 bytes"),
        ([DIGITS, "/no/such.bin"], "needs a file of 256 bytes"),
    ):
        done = run_program(program, *arguments)
        assert done.returncode == 255
        assert done.stdout == ""
        assert re.search(words, done.stderr), done.stderr


def test_five_threads_get_the_same_answer_twice(tmp_path: Path, cpp_sdk: Path) -> None:
    program = built("quick_start_parallel", tmp_path, cpp_sdk)
    lines = output_of(program, DIGITS, SEVEN)
    assert lines[::2] == [DIGITS_LINE] * 10
    assert len(set(lines[1::2])) == 1
    assert numbers(lines[1]).shape == (5,)
    input_file, wanted = own_model(tmp_path)
    for line in output_of(program, MODEL, input_file)[1::2]:
        np.testing.assert_allclose(numbers(line), wanted[:5], atol=1e-4 * np.abs(wanted).max())


def test_three_kinds_of_memory_give_the_same(tmp_path: Path, cpp_sdk: Path) -> None:
    program = built("runtime", tmp_path, cpp_sdk)
    (tmp_path / "config.ini").write_text("[common_context]\nmodel_cache_dir=nowhere\n")
    lines = output_of(
        program,
        f"--model_path={DIGITS}",
        "--batch_size=3",
        f"--config_file={tmp_path / 'config.ini'}",
    )
    wanted = "tensor name is:Default/Softmax-op0 tensor size is:120 tensor elements num is:30"
    assert lines[::2] == [wanted] * 3
    assert len(set(lines[1::2])) == 1
    rows = numbers(lines[1]).reshape(3, 10)
    np.testing.assert_allclose(rows.sum(axis=1), 1, atol=1e-4)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--device_type=TPU", "device_type is TPU, wanted CPU, GPU or Ascend"),
        ("--batch_size=0", "Resize error"),
        ("--config_file=/no/such.ini", "LoadConfig error"),
        ("--nonsense", "Got --nonsense, wanted"),
    ],
)
def test_a_wrong_option_of_the_runtime_example_is_told(
    option: str, words: str, runtime_program: Path
) -> None:
    done = run_program(runtime_program, f"--model_path={DIGITS}", option)
    assert done.returncode == 255
    assert words in done.stderr


@pytest.fixture(scope="module")
def runtime_program(tmp_path_factory: pytest.TempPathFactory, cpp_sdk: Path) -> Path:
    return built("runtime", tmp_path_factory.mktemp("runtime"), cpp_sdk)


@needs_cmake
@pytest.mark.parametrize("example", PROGRAMS)
def test_cmake_builds_an_example_with_lite_home(
    example: str, tmp_path: Path, cpp_sdk: Path
) -> None:
    build = tmp_path / "build"
    home = environment({"LITE_HOME": str(cpp_sdk)})
    for command in (
        ["cmake", "-S", str(EXAMPLES / example), "-B", str(build)],
        ["cmake", "--build", str(build)],
    ):
        subprocess.run(command, env=home, check=True, capture_output=True)
    arguments = [f"--model_path={DIGITS}"] if example == "runtime" else [DIGITS, SEVEN]
    assert output_of(build / PROGRAMS[example], *arguments)[0] == DIGITS_LINE


@needs_cmake
def test_cmake_without_lite_home_says_what_to_do(tmp_path: Path) -> None:
    home = {name: value for name, value in os.environ.items() if name != "LITE_HOME"}
    done = subprocess.run(
        ["cmake", "-S", str(EXAMPLES / "quick_start"), "-B", str(tmp_path)],
        env=home,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "LITE_HOME is not set" in done.stderr
