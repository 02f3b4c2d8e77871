"""Runs cases in child processes, watches what each costs, and ends those that cost too much.

A seed stands for a batch of cases, which one child runs. A child that dies, or is ended, is
followed by another that begins after the case that was its last.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from fuzzing.case import CPU_S, MEMORY, memory_now
from fuzzing.findings import Findings
from fuzzing.trouble import Trouble, of_dump

ROOT = Path(__file__).resolve().parent.parent.parent
BATCH = 1000  # cases of a seed
_WAIT_S = 180.0  # of a case that takes no time of the processor: it waits for what never comes
_START_S = 600.0  # until the first case, on a busy machine
_LOOK_S = 0.05
_TICKS = os.sysconf("SC_CLK_TCK")


class Child:
    """A process that runs the cases of a seed from a number on."""

    def __init__(self, entry: str, seed: int, first: int, count: int) -> None:
        self.entry, self.seed, self.count = entry, seed, count
        self.first = first
        self.case = first  # the one under way
        self.done = 0
        self.cpu_s = 0.0  # of the process, with what making the cases took
        self._started = False
        self._since_s = time.monotonic()
        self._cpu_s = self._memory = 0.0  # when the case began
        self.folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
        self._errors = (self.folder / "stderr").open("a+b")
        command = [sys.executable, "-m", "fuzzing.child", entry, *map(str, (seed, first, count))]
        self._process = subprocess.Popen(
            [*command, str(self.folder)],
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"},
        )
        assert self._process.stdout is not None
        self._pipe = self._process.stdout
        os.set_blocking(self._pipe.fileno(), False)
        self._rest = b""

    def look(self, found: Callable[[int, Trouble, Path], None]) -> bool:
        """Hear what it reports; true when it has ended, or was ended because of its case."""
        ended = self._process.poll() is not None
        self._hear(found)
        if ended:
            self._judge_end(found)
        elif why := self._too_much():
            text = self._end()
            found(self.case, of_dump(why[0], f"{why[1]}\n{text}"), self.folder / "case")
        else:
            return False
        return True

    def close(self) -> None:
        """End it, if it still runs, and remove its files."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._pipe.close()
        self._errors.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _hear(self, found: Callable[[int, Trouble, Path], None]) -> None:
        *lines, self._rest = (self._rest + (self._pipe.read() or b"")).split(b"\n")
        for line in lines:
            told = json.loads(line)
            if "case" in told:
                self.case, self._started = told["case"], True
                self._cpu_s, self._memory = told["cpu_s"], told["memory"]
                self._since_s = time.monotonic()
                continue
            self.done += 1
            self.cpu_s = told["cpu_s"]
            for record in told["troubles"]:
                found(told["done"], Trouble(**record), self.folder / "kept" / str(told["done"]))

    def _judge_end(self, found: Callable[[int, Trouble, Path], None]) -> None:
        code = self._process.returncode
        if code == 0:
            self.case = self.count
            return
        if not self._started:
            raise RuntimeError(f"{self.entry}: no case could be begun\n{self._printed()}")
        what = signal.Signals(-code).name if code < 0 else f"exit {code}"
        found(self.case, of_dump(what, self._printed()), self.folder / "case")

    def _too_much(self) -> tuple[str, str] | None:
        """Which limit the case is over."""
        waited_s = time.monotonic() - self._since_s
        if not self._started:
            return ("wait", "the first case did not begin") if waited_s > _START_S else None
        try:
            stat = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
            cpu_s = (int(stat[11]) + int(stat[12])) / _TICKS - self._cpu_s
            memory = memory_now(self._process.pid) - self._memory
        except (OSError, IndexError):  # it ends just now
            return None
        if cpu_s > CPU_S:
            return "cpu", f"more than {CPU_S:g} s of CPU time"
        if memory > MEMORY:
            return "memory", f"{int(memory) >> 20} MiB more than before"
        return ("wait", f"no end after {waited_s:.0f} s") if waited_s > _WAIT_S else None

    def _end(self) -> str:
        """End it; what faulthandler says of the threads it had."""
        self._process.send_signal(signal.SIGABRT)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self.cpu_s += CPU_S
        return self._printed()

    def _printed(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")[-50_000:]


class Campaign:
    """Seeds of one entry, one after the other, in some children at once."""

    def __init__(self, entry: str, seed: int, findings: Findings) -> None:
        self.entry, self.findings = entry, findings
        self.seeds = range(seed, seed)
        self.cases, self.cpu_s = 0, 0.0

    def run(self, end_s: float, cases: int, jobs: int, say: Callable[[str], None]) -> None:
        """Go on until a time of time.monotonic(), or a number of cases."""
        running: list[Child] = []
        left = cases
        try:
            while time.monotonic() < end_s and (running or left > 0):
                while len(running) < jobs and left > 0:
                    count = min(BATCH, left)
                    running.append(Child(self.entry, self.seeds.stop, 0, count))
                    self.seeds = range(self.seeds.start, self.seeds.stop + 1)
                    left -= count
                time.sleep(_LOOK_S)
                running = [after for child in running for after in self._looked_at(child, say)]
        finally:
            for child in running:
                self._over(child)

    def _looked_at(self, child: Child, say: Callable[[str], None]) -> list[Child]:
        """The child, or the one that goes on after its last case, if any is left."""

        def found(case: int, trouble: Trouble, files: Path) -> None:
            where = f"{child.seed}:{case}"
            if trouble.what.startswith("SIG"):  # an earlier case may have damaged its memory
                where = f"{child.seed}:{child.first}-{case}"
            if self.findings.add(self.entry, where, trouble, files):
                say(f"{self.entry} {where} {trouble.what} in {trouble.place}")

        if not child.look(found):
            return [child]
        after, count = child.case + 1, child.count
        self._over(child)
        return [Child(self.entry, child.seed, after, count)] if after < count else []

    def _over(self, child: Child) -> None:
        self.cases += child.done
        self.cpu_s += child.cpu_s
        child.close()
