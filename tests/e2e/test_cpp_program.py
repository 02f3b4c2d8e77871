from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.cpp import ROOT, compiled, run_program

import mindspore_lite as mslite

PROGRAMS = Path(__file__).parent / "programs"
SOURCE = PROGRAMS / "concurrent.cc"
MODEL = ROOT / "tests/data/models/mobilenet_v3_mini.mindir"


@pytest.mark.parametrize("string_abi", [0, 1])
def test_a_program_of_the_originals_tutorial_runs_with_either_string_abi(
    string_abi: int, tmp_path: Path, cpp_sdk: Path
) -> None:
    program = compiled(SOURCE, tmp_path / "main", cpp_sdk, f"-D_GLIBCXX_USE_CXX11_ABI={string_abi}")
    done = run_program(program, MODEL)
    assert done.returncode == 0, done.stderr
    model = mslite.Model()
    model.build_from_file(str(MODEL), mslite.ModelType.MINDIR)
    (tensor,) = model.get_inputs()
    (output,) = model.predict([mslite.Tensor(np.full(tensor.shape, 0.5, np.float32))])
    wanted = output.get_data_to_numpy().reshape(-1)
    first, second = done.stdout.splitlines()
    assert first == (
        f"tensor name is:{output.name} tensor size is:{output.data_size} "
        f"tensor elements num is:{output.element_num}"
    )
    got = np.array(second.removeprefix("output data is:").split(), np.float32)
    np.testing.assert_allclose(got, wanted[:51], atol=1e-4 * np.abs(wanted).max())


def test_a_model_that_is_not_there_is_an_error_with_its_name(tmp_path: Path, cpp_sdk: Path) -> None:
    program = compiled(SOURCE, tmp_path / "main", cpp_sdk)
    done = run_program(program, tmp_path / "missing.mindir")
    assert done.returncode == 255
    assert done.stdout == ""
    assert done.stderr.startswith("Build model error ")
    assert "missing.mindir" in done.stderr


@pytest.mark.skipif(shutil.which("nm") is None, reason="no nm; install binutils")
def test_the_library_shows_its_own_names_alone(cpp_sdk: Path) -> None:
    library = cpp_sdk / "runtime/lib/libmindspore-lite.so"
    command = ["nm", "--dynamic", "--demangle", "--defined-only", str(library)]
    lines = subprocess.check_output(command, text=True).splitlines()
    names = [line.split(maxsplit=2)[2] for line in lines]
    assert "mindspore::Model::Model()" in names
    assert "typeinfo for mindspore::DeviceInfoContext" in names
    assert [name for name in names if not name.split(" for ")[-1].startswith("mindspore::")] == []


@pytest.mark.skipif(shutil.which("readelf") is None, reason="no readelf; install binutils")
def test_the_library_stays_loaded_as_a_thread_of_it_looks_after_the_worker(cpp_sdk: Path) -> None:
    library = cpp_sdk / "runtime/lib/libmindspore-lite.so"
    facts = subprocess.check_output(["readelf", "--dynamic", "--wide", str(library)], text=True)
    assert "NODELETE" in facts


@pytest.fixture(scope="module")
def exiting(tmp_path_factory: pytest.TempPathFactory, cpp_sdk: Path) -> Path:
    target = tmp_path_factory.mktemp("exiting") / "main"
    return compiled(PROGRAMS / "exiting.cc", target, cpp_sdk)


@pytest.mark.parametrize(
    ("way", "code"), [("return", 0), ("exit", 0), ("quick_exit", 0), ("abort", -signal.SIGABRT)]
)
def test_a_program_may_end_while_it_predicts_and_its_worker_ends_with_it(
    way: str, code: int, exiting: Path
) -> None:
    done = run_program(exiting, MODEL, way)
    assert done.returncode == code, done.stderr
    # its pipes were the worker's, too: that they are at their end says that it is gone
    assert not Path(f"/proc/{int(done.stdout)}").exists() or zombie(int(done.stdout))


def zombie(pid: int) -> bool:
    """Whether a process has ended, and nobody asked how."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
