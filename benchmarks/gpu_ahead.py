"""Compiles the peers of gpu.py ahead: models and lines go in, files of torch's own cache come out.

torch.compile max-autotune takes one to two minutes for a line, most of it on the host. So each
model has a process of its own for each precision, which compiles its lines one after the other
until the time is up. What is compiled here is found again by the process that measures, and costs
it seconds. Ours are compiled beside, which is short.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

Line = tuple[str, str, int]  # model, precision, batch

_ONE = """
import json, pathlib, sys
import torch
import gpu_models, gpu_sides

torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
for line in json.loads(sys.argv[1]):
    name, precision, batch = line
    path = gpu_models.mindir(name, pathlib.Path(sys.argv[2]))
    gpu_sides.built(path, precision, batch)
    _, seconds = gpu_sides.max_autotune(*line)
    print(json.dumps([line, seconds]), flush=True)
"""


def compiled(lines: Sequence[Line], seconds: float, mindirs: Path) -> set[Line]:
    """Compile as many lines as the time allows; returns those that are done.

    mindirs: where our models lie, which are there already.
    """
    groups = list(dict.fromkeys(line[:2] for line in lines))
    threads = max(1, (os.cpu_count() or 1) // len(groups))
    env = os.environ | {
        "TORCHINDUCTOR_COMPILE_THREADS": str(threads),
        "PYTHONPATH": f"{Path(__file__).parent}:{os.environ.get('PYTHONPATH', '')}",
    }
    until = time.monotonic() + seconds
    done: set[Line] = set()
    with tempfile.TemporaryDirectory() as folder:
        running = []
        for number, group in enumerate(groups):
            own = [line for line in lines if line[:2] == group]
            with open(Path(folder) / str(number), "w") as told:
                command = [sys.executable, "-c", _ONE, json.dumps(own), str(mindirs)]
                running.append(
                    subprocess.Popen(command, stdout=told, env=env, start_new_session=True)
                )
        for process in running:
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)  # with the compilers that it has started
                process.wait()
        for number in range(len(groups)):
            for text in (Path(folder) / str(number)).read_text().splitlines():
                line, took_s = json.loads(text)
                print(f"max-autotune of {line}: {took_s:.0f} s", flush=True)
                done.add((line[0], line[1], line[2]))
    return done
