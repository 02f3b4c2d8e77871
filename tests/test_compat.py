"""compat/ and hatch_build.py: mslite under the name of the original."""

from __future__ import annotations

import base64
import hashlib
import os
import runpy
import subprocess
import sys
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
COMPAT = ROOT / "compat"
BACKEND = runpy.run_path(str(COMPAT / "backend.py"))
HOOK = runpy.run_path(str(ROOT / "hatch_build.py"))


def pip(*arguments: str, path: str = "") -> str:
    """What pip says, which may use no index."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    environment = {**os.environ, "PYTHONPATH": path, "PIP_NO_INDEX": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as file:
        (name,) = (one for one in file.namelist() if one.endswith(".dist-info/METADATA"))
        return Parser().parsestr(file.read(name).decode())


def assert_recorded(wheel: Path) -> None:
    """Every file is in RECORD with the digest that it has."""
    with zipfile.ZipFile(wheel) as file:
        (record,) = (one for one in file.namelist() if one.endswith(".dist-info/RECORD"))
        rows = {}
        for line in file.read(record).decode().splitlines():
            name, digest, size = line.rsplit(",", 2)
            rows[name] = digest, size
        assert set(rows) == set(file.namelist())
        for name in set(rows) - {record}:
            content = file.read(name)
            value = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
            assert rows[name] == (f"sha256={value.decode()}", str(len(content)))


def test_the_wheel_builds_without_a_network_and_answers_to_the_name(tmp_path: Path) -> None:
    pip("wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(COMPAT))
    (wheel,) = tmp_path.glob("*.whl")
    found = metadata(wheel)
    assert found["Name"] == "mindspore-lite"
    assert found["Requires-Dist"] == "mslite"
    assert_recorded(wheel)
    place = str(tmp_path / "site")
    pip("install", "--quiet", "--no-deps", "--target", place, str(wheel))
    assert [path.name for path in Path(place).iterdir()] == [
        "mindspore_lite-2.7.0+mslite.dist-info"
    ]
    shown = pip("show", "mindspore_lite", path=place)
    assert "Name: mindspore-lite\nVersion: 2.7.0+mslite\n" in shown
    for wanted in ("mindspore-lite", "mindspore_lite>=2.3,<3", "mindspore-lite==2.7.0"):
        said = pip("install", "--no-deps", "--dry-run", wanted, path=place)
        assert "already satisfied" in said


def test_another_release_may_be_named(tmp_path: Path) -> None:
    name = BACKEND["build_wheel"](str(tmp_path), {"version": "2.3.1"})
    assert name == "mindspore_lite-2.3.1+mslite-py3-none-any.whl"
    assert metadata(tmp_path / name)["Version"] == "2.3.1+mslite"
    with pytest.raises(ValueError, match="wanted one like"):
        BACKEND["build_wheel"](str(tmp_path), {"version": "2.3.1+mine"})


def test_the_same_wheel_comes_out_every_time(tmp_path: Path) -> None:
    built = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        built.append((folder / BACKEND["build_wheel"](str(folder))).read_bytes())
    assert built[0] == built[1]


def test_the_wheel_of_mslite_says_what_it_provides(tmp_path: Path) -> None:
    """The hook works on a wheel that is complete; any will do."""
    wheel = tmp_path / BACKEND["build_wheel"](str(tmp_path))
    before = metadata(wheel)
    HOOK["add_field"](wheel)
    found = metadata(wheel)
    assert found["Provides-Dist"] == "mindspore-lite (2.7.0)"
    assert found.get_payload() == before.get_payload()
    assert [key for key in found.keys() if key != "Provides-Dist"] == before.keys()  # noqa: SIM118
    assert_recorded(wheel)
    assert [path.name for path in tmp_path.iterdir()] == [wheel.name]


def test_both_name_the_same_release() -> None:
    version = BACKEND["_project"](None)["version"].partition("+")[0]
    assert HOOK["FIELD"] == f"Provides-Dist: mindspore-lite ({version})"
