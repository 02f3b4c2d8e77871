"""fuzzing/driver.py: what a case does wrong is found, saved once, and can be run again."""

from __future__ import annotations

import json
import math
from pathlib import Path
from random import Random

import pytest
from fuzzing import driver
from fuzzing.bad_entries import BAD
from fuzzing.case import run_case
from fuzzing.damage import Damage
from fuzzing.driver import Campaign
from fuzzing.entries import ENTRIES
from fuzzing.findings import Findings, summed, write_log
from fuzzing.ground import BAIT, Ground
from fuzzing.trouble import Trouble

SEED, CASES = 5, 6


def campaign(entry: str, folder: Path, cases: int = CASES) -> tuple[Campaign, Findings]:
    findings = Findings(folder / "findings")
    run = Campaign(entry, SEED, findings)
    run.run(math.inf, cases, 1, lambda text: None)
    return run, findings


@pytest.mark.parametrize(("entry", "what"), [("bad-signal", "SIGSEGV"), ("bad-cpu", "cpu")])
def test_a_case_that_ends_its_process_is_saved_and_the_others_still_run(
    entry: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "CPU_S", 0.2)
    run, findings = campaign(entry, tmp_path, 4)
    assert findings.count > 0 and run.cases > 0
    assert run.cases + findings.count == 4
    assert all(name.startswith(f"{entry}-{what}-") for name in findings.fresh)
    home = tmp_path / "findings" / findings.fresh[0]
    assert (home / "case/model").is_file()
    assert f"scripts/fuzz {entry} --again {SEED}:" in (home / "note.txt").read_text()


def test_equal_findings_are_saved_once(tmp_path: Path) -> None:
    run, findings = campaign("bad-exception", tmp_path)
    assert run.cases == CASES
    assert findings.count > len(findings.fresh) == 1
    home = tmp_path / "findings" / findings.fresh[0]
    assert len((home / "seen.txt").read_text().split()) == findings.count
    assert "KeyError: 'x'" in (home / "note.txt").read_text()
    again = Findings(tmp_path / "findings")
    assert not again.add("bad-exception", "9:9", _trouble_of("bad-exception", tmp_path), tmp_path)


def test_runs_are_summed_by_entry(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for name, cases, cpu_s in (("onnx", 100, 1800.0), ("onnx", 50, 1800.0), ("pt2", 7, 0.0)):
        write_log(log, name, range(3, 5), cases, cpu_s, Findings(tmp_path))
    assert json.loads(log.read_text().splitlines()[0])["seeds"] == [3, 4]
    rows = [line.split() for line in summed([log]).splitlines()[1:]]
    assert rows == [
        ["onnx", "150", "1.00", "0"],
        ["pt2", "7", "0.00", "0"],
        ["all", "157", "1.00", "0"],
    ]


@pytest.mark.parametrize(
    ("entry", "what"),
    [
        ("bad-exception", ["KeyError"]),
        ("bad-link", ["file"]),
        ("bad-working-directory", ["file"]),
        ("bad-memory", ["memory"]),
        ("bad-refusal", []),
        ("bad-own-file", []),
    ],
)
def test_a_case_is_judged(entry: str, what: list[str], tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    results = [run_case(BAD[entry], SEED, number, ground) for number in range(CASES)]
    kinds = [[trouble.what for trouble in result.troubles] for result in results]
    assert what in kinds and all(found in (what, []) for found in kinds)
    assert any(result.refused for result in results) == (entry == "bad-refusal")


@pytest.mark.parametrize("name", ENTRIES)
def test_a_case_comes_out_the_same_again(name: str, tmp_path: Path) -> None:
    made = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        ground = Ground(folder)
        ENTRIES[name].make(Damage(Random("1")), ground.case)
        paths = [p for p in ground.case.rglob("*") if p.is_file() and p.name not in BAIT]
        texts = {str(p.relative_to(ground.case)): p.read_bytes() for p in paths}
        # a setting may name the folder itself
        made.append({k: v.replace(str(ground.case).encode(), b"") for k, v in texts.items()})
    assert made[0] == made[1]
    assert made[0] or name == "wire-client"  # which has no files


def _trouble_of(entry: str, folder: Path) -> Trouble:
    ground = Ground(folder / "once")
    results = [run_case(BAD[entry], SEED, number, ground) for number in range(CASES)]
    return next(trouble for result in results for trouble in result.troubles)
