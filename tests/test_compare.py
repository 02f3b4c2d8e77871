"""scripts/compare.py: models against the outputs beside them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
from support.running import DATA

ROOT = Path(__file__).parent.parent


def compare(*folders: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "scripts/compare.py", *map(str, folders)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_models_that_agree_are_listed_with_their_errors() -> None:
    done = compare(DATA / "models")
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 models, 0 above 1e-04" in done.stdout


def test_a_model_that_disagrees_fails(tmp_path: Path) -> None:
    shutil.copy(DATA / "models/mobilenet_v3_mini.mindir", tmp_path)
    with np.load(DATA / "models/mobilenet_v3_mini.npz") as held:
        changed = {k: held[k] * (1.01 if k.startswith("o") else 1) for k in held.files}
    np.savez(tmp_path / "mobilenet_v3_mini.npz", **changed)
    done = compare(tmp_path)
    assert done.returncode == 1
    assert "mobilenet_v3_mini  DISAGREES" in done.stdout


def test_a_folder_without_models_shows_how_to_call_it(tmp_path: Path) -> None:
    done = compare(tmp_path)
    assert done.returncode == 2
    assert "python scripts/compare.py FOLDER" in done.stdout
