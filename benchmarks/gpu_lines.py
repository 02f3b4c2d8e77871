"""The lines of gpu.py's table: models, precisions and batches go in, rows come out.

torch.compile max-autotune takes minutes for a line, most of it on the host. So each line has a
process of its own (gpu_line.py), some prepare themselves at once, and when all are ready, or the
time is up, they measure one after the other. Lines that were not ready by then are measured
without that peer.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

Line = tuple[str, str, int]  # model, precision, batch
READY = "ready"  # what a process answers
COMPILES, AS_IS = "compiles", "as-is"  # with the peer that takes long, and without

_AT_ONCE = 6  # they share the card, too, on which kernels are tried
_PROGRAM = Path(__file__).parent / "gpu_line.py"


class Process:
    """One line that prepares itself, waits for its turn, and measures."""

    def __init__(self, line: Line, rounds: int, folder: Path, compiles: bool) -> None:
        command = [sys.executable, str(_PROGRAM), *map(str, line), str(rounds), str(folder)]
        command.append(COMPILES if compiles else AS_IS)
        threads = max(1, (os.cpu_count() or 1) // 2)  # of each; they seldom compile all at once
        self._line, self._ending = line, threading.Lock()
        self.is_late = False
        self._process = subprocess.Popen(
            command,
            env=os.environ | {"TORCHINDUCTOR_COMPILE_THREADS": str(threads)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # so that it ends with the compilers that it has started
        )

    def ready(self, models: threading.Event, seconds: float) -> None:
        """Wait until it can measure, has failed, or is late and therefore ended.

        models: set when the MindIR files lie in the folder.
        """
        begin = time.monotonic()
        timer = threading.Timer(seconds, self._expire)
        timer.start()
        try:
            models.wait()
            words = "is ready" if self._asked() == READY else "has ended"
        finally:
            timer.cancel()
        print(f"{self._line} {words} after {time.monotonic() - begin:.0f} s", file=sys.stderr)

    def row(self) -> dict[str, Any] | None:
        """Let it measure; None: it failed, and has said why."""
        answer = self._asked()
        self.end()
        return json.loads(answer) if answer else None

    def _expire(self) -> None:
        self.is_late = True
        self.end()

    def end(self) -> None:
        """End it, whatever it does; from any thread."""
        with self._ending:
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()

    def _asked(self) -> str:
        """What it answers to its next turn; nothing if it has ended."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write("\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return ""
        return self._process.stdout.readline().strip()


def rows(
    lines: Sequence[Line], rounds: int, folder: Path, seconds: float, make: Callable[[], object]
) -> Iterator[dict[str, Any]]:
    """Measure lines, those with the peer that takes long first; raises at the end if one failed.

    seconds: how long that peer may take to compile; 0: it is left out.
    make: puts the MindIR files into the folder.
    """
    until = time.monotonic() + seconds
    made = threading.Event()
    processes: dict[Line, Process] = {}

    def prepare(line: Line) -> None:
        left = until - time.monotonic()
        if left > 0:
            processes[line] = Process(line, rounds, folder, compiles=True)
            processes[line].ready(made, left)

    def without(line: Line) -> bool:
        return line not in processes or processes[line].is_late

    failed = []
    pool = ThreadPoolExecutor(_AT_ONCE)
    try:
        preparing = pool.map(prepare, lines)
        make()
        made.set()
        list(preparing)
        for line in sorted(lines, key=without):
            if without(line):
                processes[line] = Process(line, rounds, folder, compiles=False)
                processes[line].ready(made, threading.TIMEOUT_MAX)
            found = processes[line].row()
            if found is None:
                failed.append(line)
            else:
                yield found
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in list(processes.values()):
            process.end()
        made.set()  # nobody waits any longer
    if failed:
        raise RuntimeError(f"these lines failed: {failed}")
