from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from support.java import Program, needs_jdk
from support.shared import DIGITS, ROOT, SEVEN, run

from mindspore_lite.version import __version__

pytestmark = needs_jdk

EXAMPLES = ROOT / "examples/java"
MAIN = "src/main/java/com/mindspore/lite/demo/Main.java"
CLASS = "com.mindspore.lite.demo.Main"
MODEL = ROOT / "tests/data/models/mobilenet_v3_mini.mindir"
VERSION = f"MindSpore Lite {__version__}"


@pytest.fixture(scope="module")
def quick_start(tmp_path_factory: pytest.TempPathFactory, java_sdk: Path) -> Program:
    source = EXAMPLES / "quick_start" / MAIN
    return Program([source], tmp_path_factory.mktemp("quick_start"), java_sdk)


@pytest.fixture(scope="module")
def parallel(tmp_path_factory: pytest.TempPathFactory, java_sdk: Path) -> Program:
    source = EXAMPLES / "quick_start_parallel" / MAIN
    return Program([source], tmp_path_factory.mktemp("parallel"), java_sdk)


def output_of(program: Program, *arguments: object) -> list[str]:
    done = program.run(CLASS, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    version, *lines = done.stdout.splitlines()
    assert version == VERSION
    return lines


def numbers(line: str, shape: str) -> np.ndarray:
    label = f"out tensor shape: [{shape}] and out data: "
    assert line.startswith(label)
    return np.array(line.removeprefix(label).split(), np.float32)


def own_model(tmp_path: Path) -> tuple[Path, np.ndarray, str]:
    """The input of a model as a file, and what comes out of it, and in which shape."""
    with np.load(MODEL.with_suffix(".npz")) as file:
        file["in0"].tofile(tmp_path / "input.bin")
        wanted = file["out0"]
    return tmp_path / "input.bin", wanted.reshape(-1), "".join(f"{dim}," for dim in wanted.shape)


def test_the_quick_start_prints_the_originals_labels_and_a_seven(quick_start: Program) -> None:
    (line,) = output_of(quick_start, DIGITS, SEVEN)
    assert numbers(line, "1,10,").shape == (10,)
    assert numbers(line, "1,10,").argmax() == 7


def test_the_quick_start_gives_a_model_of_fixed_shape_random_values(
    tmp_path: Path, quick_start: Program
) -> None:
    (line,) = output_of(quick_start, MODEL)
    _, wanted, shape = own_model(tmp_path)
    assert numbers(line, shape).shape == wanted[:50].shape


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "Usage: "),
        (["/no/such.mindir"], 1, "/no/such.mindir"),
        ([DIGITS, MODEL], 1, "256"),
    ],
)
def test_the_quick_start_says_what_is_wrong(
    arguments: list[object], code: int, words: str, quick_start: Program
) -> None:
    done = quick_start.run(CLASS, *arguments)
    assert (done.returncode, done.stdout) == (code, f"{VERSION}\n")
    assert words in done.stderr


def test_five_threads_get_the_same_answer_twice(tmp_path: Path, parallel: Program) -> None:
    input_file, wanted, shape = own_model(tmp_path)
    *lines, last = output_of(parallel, MODEL, input_file)
    assert last == "========== model parallel runner predict success =========="
    assert len(lines) == 10
    for line in lines:
        got = numbers(line, shape)
        np.testing.assert_allclose(got, wanted[:5], atol=1e-4 * np.abs(wanted).max())
    *lines, _ = output_of(parallel, DIGITS)  # random values, the same for all
    assert len(set(lines)) == 1
    assert numbers(lines[0], "1,10,").shape == (5,)


def test_maven_builds_an_example_with_lite_home(tmp_path: Path, java_sdk: Path) -> None:
    if shutil.which("mvn") is None:
        pytest.skip("no Maven; install it to run this test")
    project = tmp_path / "quick_start"
    shutil.copytree(EXAMPLES / "quick_start", project)
    done = run(["mvn", "--offline", "--quiet", "package"], project, LITE_HOME=str(java_sdk))
    if "in offline mode" in done.stdout:
        pytest.skip("Maven lacks its plugins, and tests use no network")
    assert done.returncode == 0, done.stdout
    assert (project / "target/quick_start_java.jar").is_file()


def test_the_examples_are_built_alike() -> None:
    one, other = (
        (EXAMPLES / name / "pom.xml").read_text()
        for name in ("quick_start", "quick_start_parallel")
    )
    assert one.replace("quick_start_java", "quick_start_parallel_java") == other
