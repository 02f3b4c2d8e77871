"""examples/stable_diffusion: text to picture on three models, with a LoRA swapped in between."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.fake_engine import LIMIT_S

pytest.importorskip("torch", exc_type=ImportError)

from mindspore_lite.core import cores

ROOT = Path(__file__).parents[2]
LINE = re.compile(r"(.+): mean ([-+][\d.]+), at most (\S+) from PyTorch", re.ASCII)
HAS_DIFFUSERS = all(importlib.util.find_spec(name) for name in ("diffusers", "transformers"))


@pytest.mark.skipif(len(cores.usable().ids) < 2, reason="a cpu device needs a core of its own")
@pytest.mark.parametrize(
    "kind",
    [
        "torch",
        pytest.param(
            "diffusers",
            marks=pytest.mark.skipif(
                not HAS_DIFFUSERS,
                reason="diffusers and transformers are not installed: 250 MB that no other test "
                "needs; the same UNet of plain PyTorch runs instead",
            ),
        ),
    ],
)
def test_every_picture_is_that_of_the_merged_weights(kind: str, tmp_path: Path) -> None:
    script = str(ROOT / "examples/stable_diffusion/main.py")
    done = subprocess.run(
        [sys.executable, script, "--small", "--networks", kind],
        capture_output=True,
        text=True,
        timeout=4 * LIMIT_S,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = [LINE.fullmatch(line) for line in done.stdout.splitlines()]
    lines = [line.groups() for line in found if line is not None]
    assert len(lines) == len(found)
    assert [what for what, *_ in lines] == ["without a LoRA", "sketch", "photo", "without a LoRA"]
    assert len({mean for _, mean, _ in lines}) == 3  # the first and the last are alike
    assert all(float(apart) < 1e-4 for *_, apart in lines)
    assert not list(tmp_path.iterdir())
