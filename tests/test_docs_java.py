"""Executes every Java block of the docs, and the commands about them, and compares what they print.

A ```java block is a whole program: it is written to Main.java, compiled, and run. An ```xml block
is a part of the examples' pom.xml, which is what the docs call Maven with;
tests/examples/test_java.py does.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.doc_blocks import PAGES, ROOT, assert_same_output, blocks, is_about_java
from support.doc_desk import Desk
from support.java import Program

POM = "examples/java/quick_start/pom.xml"
JAVA_PAGES = [
    page for page in PAGES if any(is_about_java(kind, code) for kind, code, _ in blocks(page))
]


def program(desk: Desk, code: str) -> str:
    (desk.folder / "Main.java").write_text(code)
    main = Program([desk.folder / "Main.java"], desk.folder / "classes", desk.sdk)
    done = main.run("Main", cwd=desk.folder)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("page", JAVA_PAGES, ids=lambda page: page.name)
def test_java_blocks_compile_run_and_print_what_they_say(
    page: Path, tmp_path: Path, java_sdk: Path
) -> None:
    desk = Desk(tmp_path, java_sdk, "java", ("javac", "java"))
    for language, code, wanted in blocks(page):
        if not is_about_java(language, code):
            continue
        printed = ""
        if language == "java":
            printed = program(desk, code)
        elif language == "xml":
            assert words(code) in words((ROOT / POM).read_text())
        elif code.startswith("mvn"):
            assert code == f"mvn -f {POM} package\n"
        else:
            printed = desk.shell(code)
        if wanted is not None:
            assert_same_output(printed, wanted)


def test_the_page_about_java_has_programs() -> None:
    languages = [language for language, _, _ in blocks(ROOT / "docs/java.md")]
    assert languages.count("java") >= 4
    assert "xml" in languages
