"""benchmarks/gpu_lines.py: who is late or fails costs no other line, and nobody is left running."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

# a line that says which way it was measured; the model's name says how it goes wrong
LINE = """
import json, os, pathlib, signal, sys
name, precision, batch, rounds, folder, way = sys.argv[1:]
pathlib.Path(folder, f"{name}-{way}").write_text(str(os.getpid()))
if name == "dead" or (name == "late" and way == "compiles"):
    (signal.pause if name == "late" else sys.exit)()
sys.stdin.readline()
assert pathlib.Path(folder, "made").exists()
print("ready", flush=True)
sys.stdin.readline()
print(json.dumps([name, int(batch), int(rounds), way]), flush=True)
signal.pause()
"""
MAIN = """
import json, pathlib, sys
import gpu_lines

gpu_lines._PROGRAM = pathlib.Path(sys.argv[1])
folder, seconds, way = pathlib.Path(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
lines = [(name, "fp32", batch) for batch, name in enumerate(sys.argv[5:])]
def broken():
    while len(list(folder.glob("*-*"))) < len(lines):  # until all have begun
        pass
    raise ValueError("no models")
make = broken if way == "broken" else (folder / "made").touch
for row in gpu_lines.rows(lines, 3, folder, seconds, make):
    print(json.dumps(row), flush=True)
"""


def ran(
    tmp_path: Path, seconds: float, *names: str, make: str = ""
) -> tuple[list[list[object]], str]:
    program = tmp_path / "line.py"
    program.write_text(LINE)
    path = os.pathsep.join([str(ROOT / "benchmarks"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", MAIN, str(program), str(tmp_path), str(seconds), make, *names],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    for number in tmp_path.glob("*-*"):
        text = number.read_text()  # empty: it was ended before it could write
        assert not text or not is_running(int(text)), number
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def is_running(number: int) -> bool:
    """Whether there is such a process; one that has ended may still be waited for."""
    try:
        stat = Path(f"/proc/{number}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def test_lines_are_measured_one_by_one_when_all_are_ready(tmp_path: Path) -> None:
    found, errors = ran(tmp_path, 60, "a", "b")
    assert found == [["a", 0, 3, "compiles"], ["b", 1, 3, "compiles"]]
    assert "Error" not in errors


def test_who_is_late_is_measured_without_that_peer_and_who_fails_is_named(tmp_path: Path) -> None:
    found, errors = ran(tmp_path, 5, "dead", "late", "b")
    assert found == [["b", 2, 3, "compiles"], ["late", 1, 3, "as-is"]]
    assert "these lines failed: [('dead', 'fp32', 0)]" in errors


def test_a_line_that_failed_is_not_taken_for_a_late_one(tmp_path: Path) -> None:
    ran(tmp_path, 60, "dead")
    assert not (tmp_path / "dead-as-is").exists()


def test_all_end_when_the_models_cannot_be_made(tmp_path: Path) -> None:
    found, errors = ran(tmp_path, 3600, "late", "a", make="broken")
    assert found == []
    assert "ValueError: no models" in errors


def test_without_time_nothing_is_compiled(tmp_path: Path) -> None:
    assert ran(tmp_path, 0, "a")[0] == [["a", 0, 3, "as-is"]]
