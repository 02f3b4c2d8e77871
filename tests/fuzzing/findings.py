"""Findings in a folder, each kind once, with a reproducer, and the log of all runs."""

from __future__ import annotations

import json
import shutil
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from fuzzing.trouble import Trouble


class Findings:
    """Keeps one folder per kind of finding: note.txt, the files of the case, a list of the others.

    Findings of earlier runs are known again, so that a folder can be filled over days.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0
        self.fresh: list[str] = []  # those that were not there before

    def add(self, entry: str, where: str, trouble: Trouble, files: Path) -> bool:
        """Record one, with the seed and the cases that show it; whether it is of a new kind."""
        self.count += 1
        name = f"{entry}-{trouble.key}"
        home = self.folder / name
        is_new = not home.exists()
        home.mkdir(parents=True, exist_ok=True)
        if is_new:
            self.fresh.append(name)
            (home / "note.txt").write_text(
                f"{trouble.what} in {trouble.place}\n"
                f"scripts/fuzz {entry} --again {where}\n\n{trouble.text[-20_000:]}\n",
                errors="replace",
            )
            if files.is_dir():
                shutil.copytree(files, home / "case", ignore=_only_plain, dirs_exist_ok=True)
        with (home / "seen.txt").open("a") as seen:
            seen.write(f"{where}\n")
        return is_new


def _only_plain(folder: str, names: list[str]) -> set[str]:
    """Links and pipes are bait of the harness, and no part of a case."""
    paths = [Path(folder) / name for name in names]
    return {path.name for path in paths if path.is_symlink() or path.is_fifo()}


def write_log(
    log: Path, entry: str, seeds: range, cases: int, cpu_s: float, findings: Findings
) -> None:
    """Append one line about a run."""
    line = {
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "entry": entry,
        "seeds": [seeds.start, seeds.stop - 1],
        "cases": cases,
        "cpu_s": round(cpu_s, 1),
        "findings": findings.count,
        "new": findings.fresh,
    }
    with log.open("a") as file:
        file.write(json.dumps(line) + "\n")


def summed(logs: Iterable[Path]) -> str:
    """A table of cases, CPU time and findings of each entry."""
    cases: dict[str, int] = defaultdict(int)
    cpu_s: dict[str, float] = defaultdict(float)
    found: dict[str, int] = defaultdict(int)
    for log in logs:
        for line in log.read_text().splitlines():
            run = json.loads(line)
            for entry in (run["entry"], "all"):
                cases[entry] += run["cases"]
                cpu_s[entry] += run["cpu_s"]
                found[entry] += len(run["new"])
    rows = [f"{'entry':16} {'cases':>9} {'CPU h':>7} {'kinds of findings':>18}"]
    for entry in sorted(cases, key=lambda name: (name == "all", name)):
        rows.append(f"{entry:16} {cases[entry]:9} {cpu_s[entry] / 3600:7.2f} {found[entry]:18}")
    return "\n".join(rows)
