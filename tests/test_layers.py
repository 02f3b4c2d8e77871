"""The order of the package: a file imports from its own folder and from what stands before it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import mindspore_lite

PACKAGE = Path(mindspore_lite.__file__).parent
NAME = "mindspore_lite"
ORDER = [
    "errors", "version", "core", "dtypes", "checks", "context", "settings", "mindir", "ops",
    "graph", "weights", "kernels", "engines", "pool", "wire", "devices", "tensor", "weight_files",
    "feeds", "build", "updating", "placing", "card_placing", "base_model",
    "model_group", "base_runner", "runner", "model", "multi_device", "conversion",
    "converter", "worker", "inspection", "bench", "sdk", "cli", "__main__", "__init__",
]  # fmt: skip
FILES = sorted(PACKAGE.rglob("*.py"))


def part_of(path: Path) -> str:
    """The folder of a file, or its own name at the root."""
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imports(text: str) -> Iterator[tuple[int, str]]:
    """(line, module) of every import, inside of functions too; a relative one begins with dots."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            if base == NAME:  # from mindspore_lite.core import checks: the names are the modules
                for alias in node.names:
                    yield node.lineno, f"{NAME}.{alias.name}"
            else:
                yield node.lineno, base


def problems(part: str, text: str) -> list[str]:
    found = []
    for line, module in imports(text):
        if module.startswith("."):
            found.append(f"line {line}: relative import {module}")
        elif module == NAME:
            found.append(f"line {line}: imports the package's root")
        elif module.startswith(f"{NAME}."):
            other = module.split(".")[1]
            if other not in ORDER:
                found.append(f"line {line}: {other} is not in the order, or is no module")
            elif other != part and ORDER.index(other) > ORDER.index(part):
                found.append(f"line {line}: {part} imports {other}, which stands after it")
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_file_imports_only_from_above(path: Path) -> None:
    part = part_of(path)
    assert part in ORDER, f"{path} belongs to no part of the order"
    assert problems(part, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("part", "text", "words"),
    [
        ("ops", "from mindspore_lite.graph import source", "stands after"),
        (
            "ops",
            "def f():\n    from mindspore_lite.graph.source import ModelSource",
            "stands after",
        ),
        ("ops", "from . import table", "relative"),
        ("ops", "from .table import OPS", "relative"),
        ("cli", "import mindspore_lite", "root"),
        ("cli", "from mindspore_lite import Model", "no module"),
        ("errors", "import mindspore_lite.core.dtypes", "stands after"),
        ("tensor", "if True:\n    import mindspore_lite.model as m", "stands after"),
    ],
)
def test_a_wrong_import_is_found(part: str, text: str, words: str) -> None:
    (found,) = problems(part, text)
    assert words in found


@pytest.mark.parametrize(
    "text",
    [
        "import numpy",
        "from mindspore_lite import checks, errors",
        "from mindspore_lite.ops.table import OPS",
    ],
)
def test_a_right_import_is_no_problem(text: str) -> None:
    assert problems("ops", text) == []
