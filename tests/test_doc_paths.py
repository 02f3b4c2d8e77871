"""Every file that a page, a docstring or a comment names is there."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.doc_blocks import ROOT

PACKAGE = ROOT / "mindspore_lite"
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")])
MODULES = sorted(PACKAGE.rglob("*.py"))

# below the package; files that docs/design.md describes and that are about to come

_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
# not a part of a pattern such as ops/<family>.py or entries_*.py, nor of an address
_FILE = re.compile(r"(?<![\w./<>*~:-])((?:[\w-]+/)*[\w-]+\.(?:py|cc|h|java|proto|md))(?![\w(/])")
_FOLDER = re.compile(r"`((?:[\w-]+/)+)`")


def named(text: str) -> list[str]:
    """The files in a text, and the folders between backticks that end with a slash."""
    return [*_FILE.findall(text), *_FOLDER.findall(text)]


def docstrings(text: str) -> Iterator[str]:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, kinds):
            yield ast.get_docstring(node) or ""


def comments(text: str) -> Iterator[str]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def is_there(name: str, *folders: Path) -> bool:
    return any((folder / name).exists() for folder in folders)


@pytest.fixture(scope="module")
def base_names() -> set[str]:
    """What the files and folders of the repository are called, wherever they are."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode:  # no clone
        paths = [path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file()]
    else:
        paths = [Path(line) for line in listed.stdout.splitlines()]
    folders = {f"{part}/" for path in paths for part in path.parts[:-1]}
    return {path.name for path in paths} | folders


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_are_there(page: Path, base_names: set[str]) -> None:
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    folders = (ROOT, PACKAGE, page.parent, ROOT / "bindings/cpp")
    missing = [name for name in named(text) if not is_there(name, *folders)]
    assert [name for name in missing if name not in base_names] == []


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_that_a_module_names_are_there(module: Path) -> None:
    text = module.read_text(encoding="utf-8")
    names = [name for part in (*docstrings(text), *comments(text)) for name in named(part)]
    assert [name for name in names if not is_there(name, ROOT, PACKAGE, module.parent)] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see `serving/pool.py` and core/no.py.", ["serving/pool.py", "core/no.py"]),
        ("(desk.py), as docs/wire.md says", ["desk.py", "docs/wire.md"]),
        ("read `pool/`", ["pool/"]),
        ("`ops/<family>.py`, `entries_*.py`, `~/x.py`, https://a.b/c.md, a/b", []),
    ],
)
def test_names_are_found_in_a_text(text: str, found: list[str]) -> None:
    assert named(text) == found


def anchors(text: str) -> set[str]:
    """What the headings of a page are linked by: GitHub's rule."""
    headings = re.findall(r"^#+ (.+)$", _FENCED.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_headings_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", text):
        other = page.parent / target if target else page
        assert anchor in anchors(other.read_text(encoding="utf-8")), f"{target}#{anchor}"
