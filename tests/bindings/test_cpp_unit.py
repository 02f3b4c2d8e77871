"""The C++ library's own tests, compiled with its sources and run: plain, and under sanitizers."""

from __future__ import annotations

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.binding_models import make_models
from support.cpp import BINDINGS, COMPILER, DIGITS, NO_COMPILER, ROOT, run_program

# All files of a folder are compiled as one, which takes a sixth of the time: each name that a file
# has for itself must be the only one of its folder.
PARTS = {"src": "src/**/*.cc", "tests": "tests/*.cc"}
STRICT = ("-std=c++14", "-Wall", "-Wextra", "-Wpedantic", "-Werror")
SANITIZERS = {
    "plain": (),
    "address": ("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
    "thread": ("-fsanitize=thread",),
}
# a thread that is started in the child of a process that has some is no error
THREAD_OPTIONS = "die_after_fork=0"


def compiled(command: list[str], *arguments: str) -> None:
    done = subprocess.run(
        [*command, *arguments], cwd=BINDINGS, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def built(folder: Path, flags: tuple[str, ...]) -> Path:
    """The test program; skips where this machine has no compiler, or none with such flags."""
    if COMPILER is None:
        pytest.skip(NO_COMPILER)
    command = [COMPILER, *flags]
    probe = [*command, "-xc++", "-", "-o", str(folder / "probe")]
    tried = subprocess.run(
        probe, input="int main() {}", capture_output=True, text=True, check=False
    )
    if tried.returncode:
        pytest.skip(f"{COMPILER} cannot do {' '.join(flags)}: {tried.stderr[:200]}")

    def object_of(part: str) -> str:
        names = sorted(str(path.relative_to(BINDINGS)) for path in BINDINGS.glob(PARTS[part]))
        source = folder / f"{part}.cc"
        source.write_text("".join(f'#include "{name}"\n' for name in names))
        target = str(folder / f"{part}.o")
        compiled(command, *STRICT, "-g1", "-I.", "-c", str(source), "-o", target)
        return target

    with ThreadPoolExecutor() as pool:
        objects = list(pool.map(object_of, PARTS))
    program = folder / "unit"
    compiled(command, *objects, "-pthread", "-o", str(program))
    return program


@pytest.mark.parametrize("kind", SANITIZERS)
def test_all_tests_of_the_library_pass(kind: str, tmp_path: Path) -> None:
    program = built(tmp_path, SANITIZERS[kind])
    done = run_program(
        program,
        MSLITE_MODEL=str(DIGITS),
        MSLITE_MODELS=str(make_models(tmp_path / "models")),
        MSLITE_VECTORS=str(ROOT / "tests/remote/wire/vectors"),
        TSAN_OPTIONS=THREAD_OPTIONS,
    )
    failed = re.findall(r"\w+ \.\.\. FAILED\n.*", done.stdout)
    assert done.returncode == 0, "\n".join([*failed, done.stderr[-4000:]])
    assert "Sanitizer" not in done.stderr, done.stderr[-4000:]
    skipped = re.findall(r"(\w+) \.\.\. skipped: (.*)", done.stdout)
    assert all("anitizer" in why for _, why in skipped), skipped
    assert kind != "plain" or not skipped


def test_a_test_that_fails_fails_the_program(tmp_path: Path) -> None:
    if COMPILER is None:
        pytest.skip(NO_COMPILER)
    source = tmp_path / "some_test.cc"
    source.write_text(SOME)
    program = tmp_path / "some"
    main = str(BINDINGS / "tests/main.cc")
    compiled([COMPILER, *STRICT, "-I."], str(source), main, "-pthread", "-o", str(program))
    listed = run_program(program, "--list").stdout.split()
    assert listed == ["Adds", "Differs", "IsFalse", "ThrowsNot", "FailsInAThread", "Skips"]
    assert run_program(program, "Adds", "Skips").returncode == 0
    assert run_program(program, "NoSuchTest").returncode == 1
    for name, words in {
        "Differs": f"{source}:4: CHECK_EQ(1 + 1, 3): 2 is not 3",
        "IsFalse": f"{source}:5: CHECK(false)",
        "ThrowsNot": "AsThisOne() threw no std::bad_alloc: this one",
        "FailsInAThread": "'b' does not stand in 'a'",
    }.items():
        done = run_program(program, name)
        assert done.returncode == 1
        assert f"{name} ... FAILED" in done.stdout
        assert words in done.stdout


SOME = """\
#include <stdexcept>
#include "tests/check.h"
TEST(Adds) { CHECK_EQ(1 + 1, 2); }
TEST(Differs) { CHECK_EQ(1 + 1, 3); }
TEST(IsFalse) { CHECK(false); }
static void AsThisOne() { throw std::runtime_error("this one"); }
TEST(ThrowsNot) { CHECK_THROWS(AsThisOne(), std::bad_alloc); }
TEST(FailsInAThread) {
  mslite_test::Threads threads;
  threads.Start([] { CHECK_CONTAINS("a", "b"); });
  threads.Join();
}
TEST(Skips) { SKIP("it can"); }
"""
