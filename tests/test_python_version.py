"""A Python that is too old gets a sentence: from make, from a build, from an import."""

from __future__ import annotations

import ast
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "scripts/python_version.py"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 13, "final", 0))


def test_the_script_names_the_version_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    old(monkeypatch)
    with pytest.raises(SystemExit, match=r"needs Python 3\.11 or newer, this is 3\.10.*PYTHON="):
        runpy.run_path(str(SCRIPT), run_name="__main__")


def test_this_python_passes() -> None:
    done = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_a_build_says_it_before_anything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    assert PROJECT["build-system"]["build-backend"] == "build_backend"
    monkeypatch.syspath_prepend(str(ROOT / PROJECT["build-system"]["backend-path"][0]))
    monkeypatch.delitem(sys.modules, "python_version", raising=False)
    old(monkeypatch)
    with pytest.raises(SystemExit, match=r"mslite needs Python 3\.11"):
        runpy.run_path(str(ROOT / "scripts/build_backend.py"))
    monkeypatch.delitem(sys.modules, "python_version", raising=False)


def test_an_import_says_it(monkeypatch: pytest.MonkeyPatch) -> None:
    old(monkeypatch)
    with pytest.raises(ImportError, match=r"needs Python 3\.11 or newer, this is 3\.10: make"):
        runpy.run_path(str(ROOT / "mindspore_lite/__init__.py"))


def test_all_places_mean_the_same_version() -> None:
    wanted = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert runpy.run_path(str(SCRIPT))["WANTED"] == tuple(map(int, wanted.split(".")))
    text = (ROOT / "mindspore_lite/__init__.py").read_text(encoding="utf-8")
    assert re.findall(r"needs Python (\S+) or", text) == [wanted]
    assert f"version_info < ({wanted.replace('.', ', ')})" in text
    make = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert make.count("@$(PYTHON) scripts/python_version.py\n") == make.count("$(PYTHON) -m venv")


@pytest.mark.parametrize(
    "file", ["scripts/python_version.py", "scripts/build_backend.py", "mindspore_lite/__init__.py"]
)
def test_old_pythons_can_read_what_says_it(file: str) -> None:
    ast.parse((ROOT / file).read_text(encoding="utf-8"), feature_version=(3, 6))
