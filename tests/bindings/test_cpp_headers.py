"""The public headers of the C++ library: they compile, and say what programs rely on."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from mindspore_lite.version import __version__

ROOT = Path(__file__).parent.parent.parent / "bindings/cpp"
HEADERS = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "include").rglob("*.h"))
PROGRAMS = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests/compile").glob("*.cc"))
COMPILERS = ("g++", "clang++")
STANDARDS = ("c++14", "c++17", "c++20")
STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")


def compiled(compiler: str, *arguments: str, text: str = "") -> None:
    """Runs a compiler where the headers are; skips where it is not installed."""
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} here; install it to run this test")
    done = subprocess.run(
        [compiler, *STRICT, "-I.", *arguments],
        cwd=ROOT,
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


# The oldest standard sees most of what headers include in passing, the newest least: whatever
# else a header needs is missed in one of these two.
@pytest.mark.parametrize(("compiler", "standard"), [("g++", "c++14"), ("clang++", "c++20")])
def test_every_header_compiles_alone(compiler: str, standard: str, tmp_path: Path) -> None:
    assert "include/api/model.h" in HEADERS
    programs = [tmp_path / f"{number}.cc" for number in range(len(HEADERS))]
    for program, header in zip(programs, HEADERS, strict=True):
        program.write_text(f'#include "{header}"\n')
    compiled(compiler, f"-std={standard}", "-fsyntax-only", *map(str, programs))


@pytest.mark.parametrize("standard", STANDARDS)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_headers_have_the_names_the_types_and_the_numbers_of_the_interface(
    compiler: str, standard: str
) -> None:
    assert len(PROGRAMS) == 3
    compiled(compiler, f"-std={standard}", "-fsyntax-only", *PROGRAMS)


def test_a_program_may_have_the_include_folder_itself_on_its_path() -> None:
    compiled("g++", "-std=c++14", "-fsyntax-only", "-Iinclude", "-xc++", "-", text=FROM_WITHIN)


FROM_WITHIN = """
#include "mindapi/base/format.h"
#include "mindapi/base/type_id.h"
#include "mindapi/base/types.h"
#include "ir/dtype/type_id.h"
static_assert(mindspore::kNumberTypeFloat32 == 43 && mindspore::NHWC == 1, "");
"""


def needed_symbols(folder: Path, abi: int) -> set[str]:
    """What a program wants of the library, built with one of the two forms of std::string."""
    target = folder / f"calls{abi}.o"
    flags = (f"-D_GLIBCXX_USE_CXX11_ABI={abi}", "-std=c++14", "-O1", "-c", "tests/compile/calls.cc")
    compiled("g++", *flags, "-o", str(target))
    listed = subprocess.run(
        ["nm", "-uC", str(target)], capture_output=True, text=True, check=True
    ).stdout
    names = {line.split("U ", 1)[1] for line in listed.splitlines() if "U " in line}
    return {name for name in names if name.startswith("mindspore::")}


@pytest.mark.skipif(shutil.which("nm") is None, reason="no nm here; install binutils")
def test_one_library_serves_both_forms_of_strings(tmp_path: Path) -> None:
    new, old = needed_symbols(tmp_path, 1), needed_symbols(tmp_path, 0)
    assert any(name.startswith("mindspore::Model::Build(") for name in new)
    assert new == old
    assert not [name for name in new if "string" in name]


def test_the_library_has_the_version_of_the_package() -> None:
    text = (ROOT / "src/version.h").read_text()
    assert re.findall(r'kVersion\[\] = "(.*)"', text) == [__version__]
