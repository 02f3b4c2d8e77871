from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support.cpp import needs_cmake, needs_compiler
from support.cpp_stand_in import PROGRAM, stand_in, write
from support.shared import as_in_wheel, files

from mindspore_lite.errors import LiteError
from mindspore_lite.sdk.compiler import Compiler, find_compiler
from mindspore_lite.sdk.cpp import find_sources, make_sdk
from mindspore_lite.version import __version__

LAYOUT = {
    "runtime/include/api/where.h",
    "runtime/lib/libmindspore-lite.so",
    "runtime/lib/pkgconfig/mindspore-lite.pc",
    "runtime/mslite-cpp.files",
    "share/cmake/mindspore-lite/mindspore-lite-config.cmake",
    "share/cmake/mindspore-lite/mindspore-lite-config-version.cmake",
}


def made(folder: Path, root: Path) -> Path:
    make_sdk(folder, find_compiler(None), 2, lambda what: None, root)
    return folder


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    return stand_in(tmp_path / "root")


@needs_compiler
def test_the_layout_is_the_originals(tmp_path: Path, sources: Path) -> None:
    sdk = made(tmp_path / "sdk", sources)
    assert files(sdk).keys() == LAYOUT
    assert (sdk / "tools/converter/lib").is_dir()


@needs_compiler
def test_no_file_knows_where_it_was_made(tmp_path: Path, sources: Path) -> None:
    for name, content in files(made(tmp_path / "sdk", sources)).items():
        assert os.fsencode(tmp_path) not in content, name


@needs_compiler
def test_making_it_again_replaces_it(tmp_path: Path, sources: Path) -> None:
    sdk = made(tmp_path / "sdk", sources)
    before = files(sdk)
    (sources / "include/api/where.h").rename(sources / "include/api/there.h")
    write(sources / "src/deep/where.cc", "int other = 1;\n")
    made(sdk, sources)
    after = files(sdk)
    gone, new = "runtime/include/api/where.h", "runtime/include/api/there.h"
    assert after.keys() == LAYOUT - {gone} | {new}
    assert after["runtime/lib/libmindspore-lite.so"] != before["runtime/lib/libmindspore-lite.so"]


@needs_compiler
def test_a_failed_compile_leaves_all_as_it_was(tmp_path: Path, sources: Path) -> None:
    sdk = made(tmp_path / "sdk", sources)
    before = files(sdk)
    write(sources / "src/bad.cc", "#error no\n")
    write(sources / "include/api/new.h", "")
    with pytest.raises(LiteError, match=r"src/bad\.cc"):
        made(sdk, sources)
    assert files(sdk) == before
    with pytest.raises(LiteError, match=r"src/bad\.cc"):
        made(tmp_path / "another", sources)
    assert not (tmp_path / "another").exists()


def test_a_directory_of_someone_else_is_refused_before_anything_is_compiled(
    tmp_path: Path, sources: Path
) -> None:
    write(tmp_path / "sdk/runtime/lib/libmindspore-lite.so", "the original's")
    with pytest.raises(LiteError, match="is there already"):
        make_sdk(tmp_path / "sdk", Compiler(("/no/compiler",)), 1, str, sources)


@needs_cmake
def test_find_package_gives_a_target_also_after_a_move(tmp_path: Path, sources: Path) -> None:
    sdk = made(tmp_path / "sdk", sources).rename(tmp_path / "moved")
    write(tmp_path / "app/main.cc", PROGRAM)
    write(
        tmp_path / "app/CMakeLists.txt",
        f"""cmake_minimum_required(VERSION 3.16)
project(app LANGUAGES CXX)
find_package(mindspore-lite {__version__} REQUIRED)
find_package(mindspore-lite 99 QUIET)
if(mindspore-lite_FOUND)
  message(FATAL_ERROR "took a version that it is not")
endif()
add_executable(app main.cc)
target_link_libraries(app mindspore-lite::mindspore-lite)
""",
    )
    build = tmp_path / "build"
    configure = ["cmake", "-S", str(tmp_path / "app"), "-B", str(build)]
    subprocess.run([*configure, f"-DCMAKE_PREFIX_PATH={sdk}"], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", str(build)], check=True, capture_output=True)
    assert subprocess.check_output([build / "app"], text=True) == "./src/deep/where.cc\n"


@needs_compiler
@pytest.mark.skipif(shutil.which("pkg-config") is None, reason="no pkg-config; install it")
def test_pkg_config_tells_the_flags_also_after_a_move(tmp_path: Path, sources: Path) -> None:
    sdk = made(tmp_path / "sdk", sources).rename(tmp_path / "moved")
    command = ["pkg-config", "--cflags", "--libs", "--modversion", "mindspore-lite"]
    environment = {**os.environ, "PKG_CONFIG_PATH": str(sdk / "runtime/lib/pkgconfig")}
    version = subprocess.check_output([*command[:1], *command[3:]], env=environment, text=True)
    assert version.strip() == __version__
    flags = subprocess.check_output([*command[:3], command[-1]], env=environment, text=True).split()
    write(tmp_path / "main.cc", PROGRAM)
    compiler = find_compiler(None).command
    program = str(tmp_path / "main")
    subprocess.run([*compiler, str(tmp_path / "main.cc"), *flags, "-o", program], check=True)
    found = {**os.environ, "LD_LIBRARY_PATH": str(sdk / "runtime/lib")}
    assert subprocess.check_output([program], env=found, text=True) == "./src/deep/where.cc\n"


def test_sources_are_found_in_the_package_before_the_clone(tmp_path: Path) -> None:
    package = tmp_path / "mindspore_lite"
    write(tmp_path / "bindings/cpp/src/a.cc", "")
    assert find_sources(package) == tmp_path / "bindings/cpp"
    write(package / "bindings/cpp/src/a.cc", "")
    assert find_sources(package) == package / "bindings/cpp"


def test_a_package_without_sources_says_so(tmp_path: Path) -> None:
    with pytest.raises(LiteError, match=r"sources of the C\+\+ library are not in"):
        find_sources(tmp_path / "mindspore_lite")


def test_the_wheel_has_what_is_needed_where_it_is_looked_for(tmp_path: Path) -> None:
    found = find_sources(as_in_wheel(tmp_path))
    assert found.is_relative_to(tmp_path)
    for part in ("include", "src", "cmake"):
        assert files(found / part) == files(find_sources() / part)
    assert {path.name for path in found.iterdir()} == {"include", "src", "cmake"}  # no tests
