"""scripts/size.py: what is too long is found, and the repository passes."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "scripts/size.py"


@pytest.fixture(scope="module")
def size() -> ModuleType:
    spec = importlib.util.spec_from_file_location("size", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def function(lines: int, head: str = "def f():") -> str:
    return "\n".join([head, *["    x = 1"] * (lines - 1)]) + "\n"


def test_a_long_function_is_found_by_name_and_line(size: ModuleType) -> None:
    text = "\n\n" + function(size.MAX_FUNCTION_LINES + 1)
    assert list(size.too_long(Path("a.py"), text)) == ["a.py:3: f has 61 lines, at most 60"]


@pytest.mark.parametrize("head", ["async def f():", "class A:\n  def f():"])
def test_methods_and_coroutines_count_too(size: ModuleType, head: str) -> None:
    assert len(list(size.too_long(Path("a.py"), function(70, head)))) == 1


def test_what_is_just_short_enough_is_fine(size: ModuleType) -> None:
    text = function(size.MAX_FUNCTION_LINES)
    text += "x = 1\n" * (size.MAX_FILE_LINES - size.MAX_FUNCTION_LINES)
    assert list(size.too_long(Path("a.py"), text)) == []


def test_a_long_file_is_found(size: ModuleType) -> None:
    text = "x = 1\n" * (size.MAX_FILE_LINES + 1)
    assert list(size.too_long(Path("a.py"), text)) == ["a.py: 601 lines, at most 600; split it"]


def test_exceptions_are_files_that_are_there(size: ModuleType) -> None:
    assert [name for name in size.EXCEPTIONS if not (ROOT / name).is_file()] == []


def test_the_repository_passes() -> None:
    done = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", ["a.cc", "A.java"])
def test_a_long_file_of_another_language_is_found_and_its_functions_are_not_looked_at(
    size: ModuleType, name: str
) -> None:
    lines = list(size.too_long(Path(name), "int x;\n" * (size.MAX_FILE_LINES + 1)))
    assert lines == [f"{name}: 601 lines, at most 600; split it"]
