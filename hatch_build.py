"""A build hook: the metadata of the wheel says that it provides `mindspore-lite`.

pyproject.toml has no key for that field, so it is put into the wheel when that is complete.
"""

from __future__ import annotations

import base64
import hashlib
import os
import zipfile
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # the tests use what follows without hatchling
    BuildHookInterface = object  # type: ignore[misc, assignment]

FIELD = "Provides-Dist: mindspore-lite (2.7.0)"  # the release whose API is followed


class ProvidesHook(BuildHookInterface):  # type: ignore[misc, valid-type]
    """Runs when a wheel was written."""

    PLUGIN_NAME = "custom"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Add the field; other kinds of artefacts have no metadata of their own."""
        if artifact_path.endswith(".whl"):
            add_field(Path(artifact_path))


def add_field(wheel: Path) -> None:
    """Put the field into the METADATA of a wheel, and the new digest into its RECORD."""
    beside = wheel.with_suffix(".part")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(beside, "w") as new:
        (name,) = (one for one in old.namelist() if one.endswith(".dist-info/METADATA"))
        head, _, body = old.read(name).decode().partition("\n\n")
        metadata = f"{head}\n{FIELD}\n\n{body}".encode()
        for item in old.infolist():
            content = old.read(item)
            if item.filename == name:
                content = metadata
            elif item.filename.endswith(".dist-info/RECORD"):
                content = _renewed(content.decode(), name, metadata).encode()
            new.writestr(item, content, zipfile.ZIP_DEFLATED)
    os.replace(beside, wheel)


def _renewed(record: str, name: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    row = f"{name},sha256={digest},{len(content)}"
    return "\n".join(row if line.startswith(f"{name},") else line for line in record.split("\n"))
