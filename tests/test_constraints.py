"""constraints.txt and pyproject.toml: what is tested is what a fresh machine gets."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
lowest = runpy.run_path(str(ROOT / "scripts/lowest.py"))["lowest"]


def pinned() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    rows = (line.split("==") for line in lines if not line.startswith("#"))
    return {_plain(name): version for name, version in rows}


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def test_every_package_of_the_set_up_has_a_tested_release() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    names = ("crypto", "images", "openvino", "otel", "ray", "serve", "test")
    wanted = project["dependencies"] + [row for name in names for row in extras[name]]
    found = pinned()
    for requirement in wanted:
        match = re.match(r"([A-Za-z0-9._-]+)(?:\[.*\])?(?:>=([0-9.]+))?", requirement)
        assert match is not None
        if _plain(match[1]) != "mslite":
            assert _numbers(found[_plain(match[1])]) >= _numbers(match[2]), requirement


def test_lower_bounds_become_constraints() -> None:
    text = (
        '[project]\ndependencies = ["a>=1.2"]\n[project.optional-dependencies]\n'
        'crypto = ["b-c>=3"]\nimages = []\nopenvino = []\n'
    )
    assert lowest(text) == ["a==1.2", "b-c==3"]


def test_a_package_without_a_lower_bound_is_an_error() -> None:
    with pytest.raises(SystemExit, match="'a' has no lower bound"):
        lowest(
            '[project]\ndependencies = ["a"]\n[project.optional-dependencies]\n'
            "crypto = []\nimages = []\nopenvino = []\n"
        )
