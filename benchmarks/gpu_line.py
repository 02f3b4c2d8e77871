"""One line of gpu.py's table, in a process of its own: its times come out, as JSON.

Started by gpu_lines.py with MODEL PRECISION BATCH ROUNDS FOLDER and the word "compiles" or "as-is".
The peer that takes minutes to compile comes first. Then the process waits, for a line of its
standard input, until the MindIR files lie in the folder, and says that it is ready when all sides
are; at the next line it is its turn to measure.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import gpu_lines
import gpu_models
import gpu_sides
import load

OURS, EAGER, COMPILED, ORT = "mslite", "eager", "max-autotune", "onnxruntime"


def sides(
    path: Path, name: str, precision: str, batch: int
) -> tuple[dict[str, gpu_sides.Call], dict[str, str]]:
    """All sides of a line but for max-autotune, and why others are missing."""
    found = {
        OURS: gpu_sides.ours(path, precision, batch),
        EAGER: gpu_sides.eager(name, precision, batch),
    }
    missing = {}
    try:
        found[ORT] = gpu_sides.onnxruntime_cuda(path, precision, batch)
    except Exception as exc:  # noqa: BLE001 - whatever keeps a peer away is reported
        missing[ORT] = f"{type(exc).__name__}: {exc}"[:200]
    return found, missing


def check(found: dict[str, gpu_sides.Call], precision: str) -> float:
    """How far our answer is from eager's, relative to the largest score; raises if it is wrong."""
    wanted = found[EAGER]().float()
    errors = {
        side: float((call().float() - wanted).abs().max() / wanted.abs().max())
        for side, call in found.items()
    }
    for side, error in errors.items():  # max-autotune of ResNet-50 was off by 1.3 % in TF32
        limit = 2e-2 if precision == "fp16" or side == COMPILED else 5e-3
        assert error < limit, f"{side} is off by {error}"
    return errors[OURS]


def rounds_of(found: dict[str, gpu_sides.Call], rounds: int) -> dict[str, list[float]]:
    """The median time of a call in ms, of every side in every round."""

    def burst(call: gpu_sides.Call) -> float:
        times = []
        end = time.perf_counter() + 0.15
        while len(times) < 20 or (time.perf_counter() < end and len(times) < 300):
            begin = time.perf_counter()
            call()
            times.append(time.perf_counter() - begin)
        return statistics.median(times) * 1e3

    for call in found.values():
        for _ in range(5):
            call()
    return load.interleaved({side: partial(burst, call) for side, call in found.items()}, rounds)


def row(name: str, precision: str, batch: int, times: dict[str, list[float]]) -> dict[str, Any]:
    """What the table needs of the rounds."""
    return {
        "model": name,
        "precision": precision,
        "batch": batch,
        "ms": {side: statistics.median(one) for side, one in times.items()},
        "ratio": {
            side: vars(load.ratio(one, times[OURS])) for side, one in times.items() if side != OURS
        },
    }


def main() -> None:
    """Prepare, wait for our turn, measure."""
    name, precision, batch, rounds, folder, compiles = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what others print is no answer
    gpu_sides.allow_tf32()
    compiled = {}
    if compiles == gpu_lines.COMPILES:
        compiled[COMPILED] = gpu_sides.max_autotune(name, precision, int(batch))
    sys.stdin.readline()
    path = gpu_models.mindir(name, Path(folder))
    found, missing = sides(path, name, precision, int(batch))
    if not compiled:
        missing[COMPILED] = "it was not compiled in time"
    found |= compiled
    error = check(found, precision)
    print(gpu_lines.READY, file=answers)
    sys.stdin.readline()
    times = rounds_of(found, int(rounds))
    measured = row(name, precision, int(batch), times) | {"missing": missing, "error": error}
    print(json.dumps(measured), file=answers)


if __name__ == "__main__":
    main()
