"""A build backend (PEP 517) for a wheel that holds metadata and nothing else."""

from __future__ import annotations

import base64
import hashlib
import re
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
_DATE = (1980, 1, 1, 0, 0, 0)  # the same bytes at every build
_VERSION = re.compile(r"[0-9]+(\.[0-9]+)*((a|b|rc)[0-9]+)?(\.post[0-9]+)?(\.dev[0-9]+)?")
_WHEEL = "Wheel-Version: 1.0\nGenerator: mslite\nRoot-Is-Purelib: true\nTag: py3-none-any\n"

Config = Mapping[str, Any] | None


def get_requires_for_build_wheel(config_settings: Config = None) -> list[str]:
    """Nothing: the standard library is enough."""
    return []


def build_wheel(
    wheel_directory: str, config_settings: Config = None, metadata_directory: str | None = None
) -> str:
    """Write the wheel and return its name; `version` in the settings stands in for another release.

    Raises:
        ValueError: That is no version.
    """
    project = _project(config_settings)
    stem = f"{project['name'].replace('-', '_')}-{project['version']}"
    files = {
        f"{stem}.dist-info/METADATA": _metadata(project),
        f"{stem}.dist-info/WHEEL": _WHEEL,
    }
    record = f"{stem}.dist-info/RECORD"
    lines = [f"{name},{_digest(text)},{len(text.encode())}" for name, text in files.items()]
    files[record] = "\n".join([*lines, f"{record},,", ""])
    name = f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, text in files.items():
            wheel.writestr(zipfile.ZipInfo(path, _DATE), text)
    return name


def _project(config_settings: Config) -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((HERE / "pyproject.toml").read_text("utf-8"))["project"]
    version = (config_settings or {}).get("version")
    if version is not None:
        if not _VERSION.fullmatch(version):
            raise ValueError(f"version is {version!r}, wanted one like 2.3.1, without +")
        project["version"] = f"{version}+{project['version'].partition('+')[2]}"
    return project


def _metadata(project: Mapping[str, Any]) -> str:
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"License-Expression: {project['license']}",
        f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {one}" for one in project["dependencies"]),
        "",
        "MindSpore Lite itself is not in here: mslite provides the package `mindspore_lite`.",
        "",
    ]
    return "\n".join(lines)


def _digest(text: str) -> str:
    value = hashlib.sha256(text.encode()).digest()
    return "sha256=" + base64.urlsafe_b64encode(value).rstrip(b"=").decode()
