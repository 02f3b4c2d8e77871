"""Runs each benchmark of the runner in its smallest setting, and reads what it prints."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RATIO = r"\d+\.\d{3} \(quartiles \d+\.\d{3} to \d+\.\d{3}\)"


def printed(script: str, *arguments: object) -> str:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "benchmarks" / script), "--quick"]
        + [str(argument) for argument in arguments],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize(
    ("script", "wanted"),
    [
        ("parallel.py", rf"mslite / \(b\) .*thread.*: throughput {RATIO}, p99 latency \d"),
        ("engines.py", rf"mslite / the better of \(b\) and \(c\): throughput {RATIO}"),
        ("batching.py", rf"4 clients: batched / plain {RATIO}, .* a batch of [1-4]"),
        ("queue_overhead.py", rf"2 clients: runner / bare session {RATIO}"),
        ("card_pool.py", r"4 clients: \d+ rows/s, \d+% of the card's 23704; .* p99 \d+\.\d ms"),
        ("worker_memory.py", r"2 workers: own memory \d+\.\d MiB, .* after 16 requests"),
        ("devices.py", rf"8 MB: Pipe / worker {RATIO}, round trip .*\n1 KB: Pipe / worker {RATIO}"),
        (
            "weight_update.py",
            rf"after an update / fixed weights {RATIO}.*\n(.*\n)*update of .* / fresh build {RATIO}"
            r"(.*\n)*1000 requests of 16 threads, [1-9]\d* updates of .*: failed 0, mixed 0, "
            r"stale 0, backwards 0; .*\nown memory: .* after 3\n",
        ),
        ("model_group.py", rf"SHARE_WEIGHT / no group: throughput {RATIO}, results are equal"),
        (
            "weight_sharing.py",
            rf"each of the 2 others, at most: owns [\s\S]* shared / unshared process: {RATIO}",
        ),
        ("convert.py", rf"convert / onnx.load \+ onnx.save: time {RATIO}"),
    ],
)
def test_the_comparison_is_printed(script: str, wanted: str) -> None:
    assert re.search(wanted, printed(script))


def test_the_comparison_of_cpp_and_python_is_printed(cpp_sdk: Path) -> None:
    text = printed("cpp.py", "--sdk", cpp_sdk)
    assert re.search(rf"4 clients: C\+\+ / Python {RATIO}, .*\none op, 1 clients: .* \d+ us", text)


def test_the_comparison_of_java_and_python_is_printed(java_sdk: Path) -> None:
    text = printed("java.py", "--sdk", java_sdk)
    assert re.search(rf"4 clients: Java / Python {RATIO}, .*\none op, 1 clients: .* \d+ us", text)


def test_the_soak_counts_every_request_on_both_sides() -> None:
    text = printed("soak.py")
    sent, answered = (
        [int(number) for number in re.search(rf"^{row} +(\d+) +(\d+)$", text, re.M).groups()]
        for row in ("sent", r"answered, says statistics\(\)")
    )
    assert sent == answered
    assert min(sent) > 0
    assert text.endswith("all is well\n")


def test_the_table_of_a_card_is_made_of_the_committed_figures() -> None:
    script = ROOT / "benchmarks" / "gpu_plot.py"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    head, _, *rows = done.stdout.splitlines()
    assert head.startswith("| model | precision | batch | mslite, ms | eager |")
    page = (ROOT / "benchmarks" / "README.md").read_text()
    for row in rows:  # the page leaves out peers that nobody was compared with yet
        assert row.removesuffix("  |  |").rstrip() in page
