"""The guide's program for weights that processes share, with every way in which they can begin."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.fake_engine import LIMIT_S
from support.models import small_unet, written

PROGRAM = Path(__file__).parent / "programs/shared_weights.py"
ROOT = Path(__file__).parents[2]
# since Python 3.12 a fork beside threads, NumPy's own included, is worth a warning
WARNINGS = "error,ignore:This process:DeprecationWarning"


@pytest.mark.parametrize(
    ("method", "target"),
    [("spawn", "ascend"), ("fork", "cpu")],
)
def test_three_processes_build_on_one_handle_and_agree(
    method: str, target: str, tmp_path: Path
) -> None:
    model = written(tmp_path / "unet.mindir", small_unet(rows=3))
    more = {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": WARNINGS, "PYTHONUNBUFFERED": ""}
    emulated = {"MSLITE_ASCEND": "emulate", "MSLITE_ASCEND_QUIET": "1"}
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(model), target, method],
        capture_output=True,
        text=True,
        timeout=4 * LIMIT_S,
        env={**os.environ, **more, **emulated},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    (handle,) = re.findall(r"^share handle value: (\d+)$", done.stdout, re.M)
    assert 0 < int(handle) < 2**63
    results = dict(re.findall(r"^share  (\d)   ([-\d.]+)$", done.stdout, re.M))
    assert sorted(results) == ["0", "1", "2"]
    assert len(set(results.values())) == 1
