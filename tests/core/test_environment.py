"""environment.py: one table of variables, and no way around it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import mindspore_lite
from mindspore_lite.core.environment import VARIABLES, for_child, preset, users_own, variables

PACKAGE = Path(mindspore_lite.__file__).parent
BINDINGS = PACKAGE.parent / "bindings"
# installation.py is loaded by its path, before the package can be
READERS = {"core/environment.py": set(), "core/installation.py": {"LD_LIBRARY_PATH"}}
NAMES = {variable.name for variable in VARIABLES}


def reads_environment(text: str) -> bool:
    words = {"environ", "environb", "getenv", "getenvb"}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and node.attr in words:
            return True
        if isinstance(node, ast.ImportFrom) and words & {alias.name for alias in node.names}:
            return True
    return False


def test_one_file_reads_the_environment() -> None:
    found = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if reads_environment(path.read_text(encoding="utf-8"))
    }
    assert found == READERS.keys()
    for file, names in READERS.items():
        assert names <= NAMES, file


@pytest.mark.parametrize("text", ["import os\nos.environ['X']", "from os import getenv"])
def test_the_check_sees_both_ways(text: str) -> None:
    assert reads_environment(text)


def test_our_variables_are_rows_and_rows_are_read() -> None:
    sources = [*PACKAGE.rglob("*.py"), *BINDINGS.glob("*/src/**/*.*")]
    texts = [path.read_text(encoding="utf-8") for path in sources if path.name != "environment.py"]
    texts.append((PACKAGE / "settings/environment.py").read_text(encoding="utf-8"))
    found = {name for text in texts for name in re.findall(r'"(MSLITE_[A-Z_]+)"', text)}
    assert found == {variable.name for variable in VARIABLES if variable.is_ours}
    everything = "\n".join(texts).replace('f"{device.upper()}_', '"GPU_DEVICE_ID ASCEND_')
    for name in NAMES:
        assert re.search(rf"\b{name}\b", everything), f"nothing reads {name}"


def test_variables_of_cpp_and_java_are_rows_that_say_so() -> None:
    calls = {
        "C++": r'(?:getenv|Setting)\(\s*"(\w+)"|FromLauncher\(\{([^}]*)\}',
        "Java": r'getenv\(\s*"(\w+)"|setting\(\s*"[\w.]+",\s*"(\w+)"',
    }
    files = {"C++": BINDINGS.glob("cpp/src/**/*.cc"), "Java": BINDINGS.glob("java/src/**/*.java")}
    for language, pattern in calls.items():
        texts = [path.read_text(encoding="utf-8") for path in files[language]]
        groups = [part for text in texts for match in re.findall(pattern, text) for part in match]
        found = {name for group in groups for name in re.findall(r"[A-Z][A-Z_]+", group)}
        rows = {variable.name for variable in VARIABLES if language in variable.reader}
        assert found == rows, language


def test_a_variable_without_a_row_cannot_be_read() -> None:
    with pytest.raises(LookupError, match="MSLITE_SECRET has no row"):
        variables.get("MSLITE_SECRET", "")


def test_variables_are_read_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    assert "CXX" not in variables and variables.get("CXX", "none") == "none"
    before = len(variables)
    monkeypatch.setenv("CXX", "g++")
    assert variables["CXX"] == "g++" and "CXX" in list(variables) and len(variables) == before + 1


def test_what_the_user_set_is_not_overwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", "mine")
    preset("TRITON_CACHE_DIR", "ours")
    assert variables["TRITON_CACHE_DIR"] == "mine"
    monkeypatch.setenv("TRITON_CACHE_DIR", "")
    monkeypatch.delenv("TRITON_CACHE_DIR")
    preset("TRITON_CACHE_DIR", "ours")
    assert variables["TRITON_CACHE_DIR"] == "ours"


def test_a_child_gets_everything_and_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANY_NAME", "1")
    assert for_child(MORE="2").items() >= {"ANY_NAME": "1", "MORE": "2"}.items()
    assert users_own("ANY_NAME") == "1" and users_own("NO_SUCH_NAME") == ""
