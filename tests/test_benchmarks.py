"""Runs each benchmark in its smallest setting, and reads what it prints and what it records."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RATIO = r"\d+\.\d{3} \(quartiles \d+\.\d{3} to \d+\.\d{3}\)"


def printed(script: str, *arguments: object) -> str:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder, "results.json")
        done = subprocess.run(
            [sys.executable, "-W", "error", str(ROOT / "benchmarks" / script), "--quick"]
            + [str(argument) for argument in (*arguments, "--json", results)],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stderr == ""
        assert_recorded(Path(script).stem, json.loads(results.read_text(encoding="utf-8")))
    return done.stdout


def assert_recorded(name: str, found: dict[str, object]) -> None:
    """The committed results have the same tables, but for numbers in their heads."""
    committed = json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text("utf-8"))
    assert found["name"] == name
    assert re.fullmatch(rf"python benchmarks/{name}\.py --quick( --sdk \S+)?", found["command"])
    assert found["machine"].keys() == committed["machine"].keys()
    wanted, heads = (
        {
            table: [re.sub(r"\d+", "N", cell) for cell in parts["head"]]
            for table, parts in each["tables"].items()
        }
        for each in (committed, found)
    )
    assert heads == wanted
    assert all(table["rows"] for table in found["tables"].values())


@pytest.mark.parametrize(
    ("script", "wanted"),
    [
        ("overhead.py", r"one op, predict minus bare run in us: .*\nMobileNetV2, 1 .*\nMobileN"),
        (
            "server_limits.py",
            rf"2 clients: CPU over in-process {RATIO}\np99 next to a flood .*{RATIO}\n20 idle .*\n"
            r"own memory over the bare runner: .*\n400 requests: \d+/s, growth",
        ),
        ("server.py", rf"602 KB, mslite: \d.*\n(.*\n)*2 clients: http / inside: CPU {RATIO}"),
        ("fairness.py", r"shares off: .*; p99 ratio \d.*\nflooded model alone,.* on / off: thr"),
        ("startup.py", r"build: mslite \d\.\d{3} s, ONNX Runtime .*\npeak .*\nfirst run, .* ratio"),
        ("parallel.py", rf"mslite / \(b\) .*thread.*: throughput {RATIO}, p99 latency \d"),
        ("engines.py", rf"mslite / the better of \(b\) and \(c\): throughput {RATIO}"),
        ("openvino_parts.py", rf"ahead {RATIO}\ntiny, 3 clients: with / without huge .* {RATIO}"),
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
        ("metrics.py", r"models 50  text ms \d+\.\d\d  OpenMetrics ms .* KiB \d+"),
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
