"""examples/lora: adapters change a small transformer between requests, and the answers follow."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from support.fake_engine import LIMIT_S

ROOT = Path(__file__).parents[2]
LINE = re.compile(
    r"  version (\d+), (\w+): next comes token (\d+); at most (\S+) from NumPy", re.ASCII
)


def test_the_answers_follow_the_adapters(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples/lora/main.py")],
        capture_output=True,
        text=True,
        timeout=2 * LIMIT_S,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "CONVERT RESULT SUCCESS:0\n")
    texts = done.stdout.splitlines()
    assert texts[0] == "the sum is given, which replaces a weight:"
    assert texts[5] == "the product is given, which is added to a weight:"
    found = [LINE.fullmatch(text) for text in texts if text.startswith(" ")]
    lines = [line.groups() for line in found if line is not None]
    assert len(lines) == len(texts) - 2
    assert [(int(version), adapter) for version, adapter, *_ in lines] == [
        (0, "base"),
        (1, "poetry"),
        (2, "law"),
        (3, "base"),
        (1, "poetry"),
        (2, "law"),
    ]
    tokens = [token for _, _, token, _ in lines]
    assert len(set(tokens[:3])) == 3  # each adapter has its own answer
    assert tokens[3] == tokens[0]
    assert tokens[4:] == tokens[1:3]  # a delta leads to the same weights as their sum
    assert all(float(apart) < 1e-4 for *_, apart in lines)
    assert not list(tmp_path.iterdir())
