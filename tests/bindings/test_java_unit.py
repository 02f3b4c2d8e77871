"""The Java library's own tests: compiled with its sources, without a warning, and run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.binding_models import make_models
from support.java import BINDINGS, JAVA, JAVAC, NO_JDK, PUBLIC, QUICK, compiled, joined
from support.shared import DIGITS, ROOT, run

if JAVAC is None:
    pytest.skip(NO_JDK, allow_module_level=True)

# what users may call says what it does, in words that javadoc can read
DOCUMENTED = ("-Xdoclint:all/protected", f"-Xdoclint/package:{','.join(PUBLIC)}")
FAILED = r"{name} \.\.\. FAILED.*(?:\n(?!\S+ \.\.\. ).*)*"  # with all lines up to the next test
MAIN = "com.mindspore.check.Main"


def test_all_tests_of_the_library_pass(tmp_path: Path) -> None:
    library = compiled(sources("src"), tmp_path / "classes", flags=DOCUMENTED)
    tests = compiled(sources("tests"), tmp_path / "tests", library)
    done = run(
        [JAVA, *QUICK, "-ea", "-cp", joined(library, tests), MAIN],
        MSLITE_MODEL=str(DIGITS),
        MSLITE_MODELS=str(make_models(tmp_path / "models")),
        MSLITE_VECTORS=str(ROOT / "tests/remote/wire/vectors"),
    )
    failed = re.findall(FAILED.format(name=r"\S+"), done.stdout)
    assert done.returncode == 0, "\n".join([*failed, done.stdout[-1000:], done.stderr[-4000:]])
    assert re.findall(r"\S+ \.\.\. skipped: .*", done.stdout) == []


def sources(part: str) -> list[Path]:
    return sorted((BINDINGS / part).rglob("*.java"))


def test_a_test_that_fails_fails_the_program(tmp_path: Path) -> None:
    source = tmp_path / "SomeTest.java"
    source.write_text(SOME)
    classes = compiled([source, *sources("tests/com/mindspore/check")], tmp_path / "classes")

    def checked(*names: str) -> tuple[int, str]:
        done = run([JAVA, *QUICK, "-cp", classes, MAIN, *names])
        return done.returncode, done.stdout

    names = ["adds", "differs", "isFalse", "failsInAThread", "skips", "throwsNot"]
    assert sorted(checked("--list")[1].split()) == [f"SomeTest.{name}" for name in sorted(names)]
    assert checked("SomeTest.adds", "skips")[0] == 0
    assert checked("noSuchTest")[0] == 1
    code, said = checked()
    assert code == 1
    assert "SomeTest.adds ... ok" in said
    assert "SomeTest.skips ... skipped: it can" in said
    for name, words in {
        "differs": ("3", "2"),
        "isFalse": ("so it is",),
        "throwsNot": ("IllegalStateException",),
        "failsInAThread": ("b",),
    }.items():
        told = re.search(FAILED.format(name=f"SomeTest.{name}"), said)
        assert told is not None, said
        assert all(word in told[0] for word in words)


SOME = """\
import com.mindspore.check.Check;

public class SomeTest {
  public static void adds() {
    Check.equal(2, 1 + 1);
  }

  public static void differs() {
    Check.equal(3, 1 + 1);
  }

  public static void isFalse() {
    Check.that(false, "so it is");
  }

  public static void throwsNot() {
    Check.throwsA(IllegalStateException.class, () -> {});
  }

  public static void failsInAThread() {
    Check.threads(2, number -> Check.contains("a", "b"));
  }

  public static void skips() {
    Check.skip("it can");
  }

  static void isNoTest() {
    throw new AssertionError();
  }
}
"""
