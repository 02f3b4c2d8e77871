"""benchmarks/run_all.py: what is committed is what it would make, and how it takes failures."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "benchmarks"
OTHERS = {"clients", "gpu_plot", "run_all"}  # programs that are no benchmarks
PAGE = """# Page

## Calls

Words.

<!-- table overhead.calls -->
<!-- end -->

## Start

<!-- table startup.calls -->
<!-- end -->
"""
# a benchmark that measured how it was called
GOOD = """
import json, sys
*rest, flag, path = sys.argv[1:]
table = {"head": ["", "called with"], "rows": [["it", " ".join(rest)]]}
machine = {"cpu": "a CPU", "cores": 3, "memory": "4 GiB", "python": "3.99"}
found = {"run": "", "measured": "2000-01-01", "machine": machine, "versions": {"onnx": "5"}}
json.dump(found | {"tables": {"calls": table}}, open(path, "w"))
"""
BAD = "print('words')\nraise ValueError('no luck')"
# one that never ends: it tells its number, and cleans up when it is interrupted
ENDLESS = """
import os, pathlib, signal
try:
    pathlib.Path({fifo!r}).write_text(str(os.getpid()))
    while True:
        signal.pause()
except KeyboardInterrupt:
    pathlib.Path({cleaned!r}).touch()
"""


def run_all(folder: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, str(folder / "run_all.py"), *arguments],
        env={**os.environ, "PYTHONPATH": path, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A benchmarks folder whose page has two tables, with old results for both."""
    folder = tmp_path / "benchmarks"
    shutil.copytree(SOURCE / "results", folder / "results")
    for name in ("run_all", "render", "pictures", "gpu_plot", "parallel_plot"):
        shutil.copy(SOURCE / f"{name}.py", folder)
    for name in ("overhead", "startup"):
        (folder / f"{name}.py").write_text(GOOD)
        results = folder / "results" / f"{name}.json"
        command = [sys.executable, folder / f"{name}.py", "--old", "--json", results]
        subprocess.run(command, check=True)
    (folder / "README.md").write_text(PAGE)
    return folder


def test_tables_and_pictures_are_those_of_the_committed_results(tmp_path: Path) -> None:
    folder = shutil.copytree(
        SOURCE, tmp_path / "benchmarks", ignore=shutil.ignore_patterns("__pycache__")
    )
    process = run_all(folder, "--render")
    assert process.communicate()[0] == ""
    assert process.returncode == 0
    assert (folder / "README.md").read_text() == (SOURCE / "README.md").read_text()


def test_every_benchmark_takes_part() -> None:
    code = (
        "import json, run_all as r; print(json.dumps({n: b.full for n, b in r.BENCHMARKS.items()}))"
    )
    path = os.pathsep.join([str(SOURCE), str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    entries = json.loads(done.stdout)
    programs = {
        path.stem
        for path in SOURCE.glob("*.py")
        if "\nRun: python" in (ast.get_docstring(ast.parse(path.read_text())) or "")
    }
    assert set(entries) == programs - OTHERS
    page = (SOURCE / "README.md").read_text()
    for name, full in entries.items():
        assert (SOURCE / "results" / f"{name}.json").exists()
        assert f"<!-- table {name}." in page
        assert f"python benchmarks/{name}.py {full}".strip() in page
    for results in (SOURCE / "results").glob("*.json"):
        assert f"<!-- table {results.stem}." in page


def test_results_become_tables_that_tell_their_origin(tree: Path) -> None:
    process = run_all(tree, "--short", "--only", "startup", "overhead")
    said = process.communicate()[0]
    assert process.returncode == 0
    assert re.match(r"overhead \(1 of 2\): \d+ s\nstartup \(2 of 2\): \d+ s\n", said)
    assert said.endswith("still hold:\n  Calls\n  Start\n")
    page = (tree / "README.md").read_text()
    table = "| | called with |\n| --- | --- |\n| it | --rounds 5 |\n"
    origin = "*short run, 2000-01-01: a CPU, 3 cores, 4 GiB, Python 3.99, onnx 5*\n"
    assert f"Words.\n\n<!-- table overhead.calls -->\n{table}\n{origin}<!-- end -->\n" in page


def test_a_failure_keeps_the_old_results_and_stops_no_other(tree: Path) -> None:
    (tree / "overhead.py").write_text(BAD)
    process = run_all(tree, "--full", "--only", "overhead", "startup")
    said = process.communicate()[0]
    assert process.returncode == 1
    log = "build/benchmarks/overhead.log"
    assert f"failed: overhead: exit code 1: ValueError: no luck (all of it: {log})\n" in said
    assert said.endswith("still hold:\n  Start\n")
    assert "words\n" in (tree.parent / log).read_text()
    page = (tree / "README.md").read_text()
    assert "| it | --old |" in page
    assert "*full run, 2000-01-01" in page


def test_what_cannot_run_here_is_named_and_no_failure(tree: Path) -> None:
    nowhere = {"PATH": "/nowhere", "JAVA_HOME": "", "CXX": ""}
    process = run_all(tree, "--short", "--only", "cpp", "java", "overhead", **nowhere)
    said = process.communicate()[0]
    assert process.returncode == 0
    assert "cannot run here: cpp: there is no C++ compiler" in said
    assert "cannot run here: java: there is no Java compiler" in said
    assert re.match(r"overhead \(1 of 3\): \d+ s\n", said)


def test_an_interrupt_ends_the_benchmark_and_keeps_what_was_finished(tree: Path) -> None:
    fifo, cleaned = tree / "fifo", tree / "cleaned"
    os.mkfifo(fifo)
    (tree / "startup.py").write_text(ENDLESS.format(fifo=str(fifo), cleaned=str(cleaned)))
    process = run_all(tree, "--short", "--only", "overhead", "startup")
    number = fifo.read_text()  # waits for it
    process.send_signal(signal.SIGINT)
    said = process.communicate()[0]
    assert process.returncode == 130
    assert "interrupted; what was finished is kept" in said
    assert cleaned.exists()
    assert not Path("/proc", number).exists()
    page = (tree / "README.md").read_text()
    assert "| it | --rounds 5 |" in page
    assert "| it | --old |" in page


def test_a_table_without_results_is_a_clear_error(tree: Path) -> None:
    (tree / "results" / "startup.json").unlink()
    process = run_all(tree, "--render")
    assert (
        "a table startup.calls, which results/startup.json does not give"
        in (process.communicate()[0])
    )
    assert process.returncode == 1
    assert (tree / "README.md").read_text() == PAGE


def test_a_table_without_an_end_is_a_clear_error(tree: Path) -> None:
    page = PAGE.replace("<!-- end -->", "", 1)
    (tree / "README.md").write_text(page)
    process = run_all(tree, "--render")
    assert (
        "failed: README.md: a table of the README has no <!-- end -->" in (process.communicate()[0])
    )
    assert process.returncode == 1
    assert (tree / "README.md").read_text() == page


def test_a_picture_of_other_figures_is_stale(tree: Path) -> None:
    path = tree / "results" / "parallel.json"
    found = json.loads(path.read_text(encoding="utf-8"))
    found["figures"]["throughput"][0]["per_second"]["mslite"]["middle"] += 1
    path.write_text(json.dumps(found))
    (tree / "matplotlib.py").write_text("raise ImportError")
    process = run_all(tree, "--render")
    assert (
        "failed: clients.svg: it shows other figures; needs matplotlib: pip install"
        in (process.communicate()[0])
    )
    assert process.returncode == 1


def test_a_picture_has_the_same_bytes_each_time(tree: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra bench")
    drawn = []
    for _ in range(2):
        process = run_all(tree, "--render")
        process.communicate()
        assert process.returncode == 0
        drawn.append((tree / "results" / "clients.svg").read_bytes())
    assert drawn[0] == drawn[1]
