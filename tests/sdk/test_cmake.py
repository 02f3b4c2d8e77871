from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support.cpp import BINDINGS, ROOT, needs_cmake
from support.cpp_stand_in import stand_in, write

from mindspore_lite.sdk.compiler import find_compiler
from mindspore_lite.sdk.cpp import LIBRARY, make_sdk
from mindspore_lite.sdk.install import list_path

pytestmark = needs_cmake


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A clone whose library is small."""
    root = tmp_path / "clone"
    shutil.copy(BINDINGS / "CMakeLists.txt", stand_in(root / "bindings/cpp"))
    write(root / "mindspore_lite/version.py", (ROOT / "mindspore_lite/version.py").read_text())
    return root


def cmake(repository: Path, *options: str) -> Path:
    build = repository / "build"
    source = str(repository / "bindings/cpp")
    quiet = {"check": True, "stdout": subprocess.DEVNULL}
    subprocess.run(["cmake", "-S", source, "-B", str(build), *options], **quiet)
    subprocess.run(["cmake", "--build", str(build)], **quiet)
    return build


def texts(folder: Path) -> dict[str, bytes]:
    """Every file of an installed tree; of the library only that it is there."""
    found = {
        str(path.relative_to(folder)): b"" if path.name == LIBRARY else path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    found.pop(list_path("cpp"), None)
    return found


def test_cmake_installs_what_the_command_lays_out(repository: Path, tmp_path: Path) -> None:
    build = cmake(repository)
    installed, made = tmp_path / "installed", tmp_path / "made"
    install = ["cmake", "--install", str(build), "--prefix", str(installed)]
    subprocess.run(install, check=True, stdout=subprocess.DEVNULL)
    make_sdk(made, find_compiler(None), 2, lambda what: None, repository / "bindings/cpp")
    assert texts(installed) == texts(made)
    assert (installed / "tools/converter/lib").is_dir()


@pytest.mark.parametrize("sanitizers", ["", "address,undefined"])
def test_ctest_runs_the_test_program_on_the_objects(repository: Path, sanitizers: str) -> None:
    """The program sees what the library hides, and gets the places of its data."""
    write(
        repository / "bindings/cpp/tests/where_test.cc",
        """#include <cstdio>
#include <cstdlib>
int Hidden();
extern "C" void __asan_init() __attribute__((weak));
int main() {
  std::puts(std::getenv("MSLITE_MODEL"));
  std::puts(std::getenv("MSLITE_VECTORS"));
  std::puts(std::getenv("MSLITE_PYTHON"));
  if (&__asan_init != nullptr) std::puts("sanitized");
  return Hidden() - 3;
}
""",
    )
    build = cmake(repository, "-DMSLITE_TESTS=ON", f"-DMSLITE_SANITIZE={sanitizers}")
    done = subprocess.run(
        ["ctest", "-V"],
        cwd=build,
        env={**os.environ, "MSLITE_PYTHON": "the-interpreter"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert f"{repository}/mindspore_lite/cli/data/digits.mindir\n" in done.stdout
    assert f"{repository}/tests/remote/wire/vectors\n" in done.stdout
    assert "the-interpreter\n" in done.stdout
    assert ("sanitized\n" in done.stdout) == bool(sanitizers)
