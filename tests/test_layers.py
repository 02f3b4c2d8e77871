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
    "errors", "version", "core", "context", "settings", "mindir", "ops", "passes", "graph",
    "weights", "engines", "tensor", "serving", "remote.wire", "remote.devices", "remote.service",
    "remote.worker", "weight_files", "faces", "model_group", "runner", "model", "lite_infer",
    "llm_engine", "multi_device", "worker", "server", "cluster", "ray",
    "conversion", "converter", "inspection", "bench", "sdk", "cli", "__main__", "__init__",
]  # fmt: skip
FILES = sorted(PACKAGE.rglob("*.py"))


def part_of(module: str) -> str:
    """The part of the order that a module belongs to, written without the package's name."""
    parts = module.split(".")
    for count in range(len(parts), 0, -1):
        if (part := ".".join(parts[:count])) in ORDER:
            return part
    return ""


def module_of(path: Path) -> str:
    """What a file is called by those who import it."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def imports(text: str) -> Iterator[tuple[int, str]]:
    """(line, module) of every import, inside of functions too; a relative one begins with dots."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            for alias in node.names:  # which may be a module, or a folder with parts of its own
                yield node.lineno, f"{base}.{alias.name}" if base.startswith(NAME) else base


def problems(part: str, text: str) -> list[str]:
    found = []
    for line, module in imports(text):
        if module.startswith("."):
            found.append(f"line {line}: relative import {module}")
        elif module == NAME:
            found.append(f"line {line}: imports the package's root")
        elif module.startswith(f"{NAME}."):
            name = module.removeprefix(f"{NAME}.")
            other = part_of(name)
            if not other:
                found.append(f"line {line}: {name} is not in the order, or is no module")
            elif ORDER.index(other) > ORDER.index(part):
                found.append(f"line {line}: {part} imports {other}, which stands after it")
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_file_imports_only_from_above(path: Path) -> None:
    if path.name == "__init__.py" and not path.read_text(encoding="utf-8"):
        return  # marks a folder
    part = part_of(module_of(path))
    assert part, f"{path} belongs to no part of the order"
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
        ("remote.wire", "from mindspore_lite.remote.devices import split", "stands after"),
        ("remote.wire", "from mindspore_lite.remote import devices", "stands after"),
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
        "from mindspore_lite import core, errors",
        "from mindspore_lite.ops.table import OPS",
    ],
)
def test_a_right_import_is_no_problem(text: str) -> None:
    assert problems("ops", text) == []
