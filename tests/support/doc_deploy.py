"""Commands of docs/scaling.md that need a cluster or an engine: checked as far as that goes."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from support.manifests import ROOT, built, has_kustomize, parsed_serve

from mindspore_lite.version import __version__

COMMANDS = ("docker", "kubectl", "scripts/image")


def check(command: Sequence[str]) -> None:
    """Fail if a command could not work."""
    {"docker": _docker, "kubectl": _kubectl, "scripts/image": _image}[command[0]](command)


def _docker(command: Sequence[str]) -> None:
    """The image is the one that is built, and what follows it is a command of ours."""
    (at,) = (at for at, one in enumerate(command) if one.startswith("mslite:"))
    assert command[at] == f"mslite:{__version__}"
    if given := command[at + 1 :]:
        parsed_serve(given)


def _kubectl(command: Sequence[str]) -> None:
    for flag, value in itertools.pairwise(command):
        if flag in ("-k", "-f"):
            assert (ROOT / value).exists(), value
        if flag == "-k" and has_kustomize():
            assert built(ROOT / value)


def _image(command: Sequence[str]) -> None:
    """The script itself runs, with a builder that does nothing."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("docker", "buildah"):
            program = Path(folder) / name
            program.write_text(f"#!{sys.executable}\n", encoding="utf-8")
            program.chmod(0o755)
        subprocess.run(
            [sys.executable, *command], cwd=ROOT, env={**os.environ, "PATH": folder},
            capture_output=True, check=True,
        )  # fmt: skip
