from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
MAIN = ROOT / "examples/gpu/main.py"


def test_the_sample_for_cards_says_where_it_runs_and_finds_a_seven() -> None:
    command = [sys.executable, str(MAIN)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    first, *answers = done.stdout.splitlines()
    assert first == "running on gpu 0" or first.startswith("running on the CPU, because: ")
    wanted = "client {}: the highest of 10 values is number 7"
    assert answers == [wanted.format(number) for number in range(3)]
