"""The process in which cases run: reports each as a line of JSON, and dies where a case kills it.

Run by driver.py as `python -m fuzzing.child ENTRY SEED FIRST COUNT FOLDER`. The lines go to the
descriptor that was standard output; what cases and libraries print goes to standard error.
"""

from __future__ import annotations

import ctypes
import faulthandler
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path

from fuzzing.case import memory_now, run_case, warm_up
from fuzzing.entries import entry_of
from fuzzing.ground import Ground

_PR_SET_PDEATHSIG = 1  # of prctl: whoever kills the driver ends its children, too


def main(name: str, seed: int, first: int, count: int, folder: Path) -> None:
    """Run cases first to count - 1 of a seed."""
    faulthandler.enable()  # also for the SIGABRT by which the driver ends a case that hangs
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    report = os.dup(1)
    os.dup2(2, 1)
    entry, ground = entry_of(name), Ground(folder)
    warm_up(entry, ground)
    for number in range(first, count):
        os.ftruncate(2, 0)  # what was printed for the cases before
        _say(report, case=number, cpu_s=time.process_time(), memory=memory_now())
        result = run_case(entry, seed, number, ground)
        troubles = [trouble.record() for trouble in result.troubles]
        if troubles:
            ground.keep(folder / "kept" / str(number))
        _say(report, done=number, cpu_s=time.process_time(), troubles=troubles)
    # without the end of libraries and their threads: it is no part of a case, and may hang
    os._exit(0)


def _say(report: int, **facts: object) -> None:
    os.write(report, json.dumps(facts).encode() + b"\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
