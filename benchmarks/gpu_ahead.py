"""Compiles the peers of gpu.py ahead: models and lines go in, files of torch's own cache come out.

torch.compile max-autotune takes two to nine minutes for a line, most of it on the host. So each
line has a process of its own, some at once, until the time is up. What is compiled here is found
again by the process that measures, and costs it seconds. Ours are compiled beside, which is short.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

Line = tuple[str, str, int]  # model, precision, batch
_AT_ONCE = 6  # they share the card, too, on which kernels are tried

_ONE = """
import json, pathlib, sys
import torch
import gpu_models, gpu_sides

torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
name, precision, batch = json.loads(sys.argv[1])
gpu_sides.built(gpu_models.mindir(name, pathlib.Path(sys.argv[2])), precision, batch)
gpu_sides.max_autotune(name, precision, batch)
"""


def compiled(lines: Sequence[Line], seconds: float, mindirs: Path) -> set[Line]:
    """Compile as many lines as the time allows; returns those that are done.

    mindirs: where our models lie, which are there already.
    """
    at_once = min(_AT_ONCE, len(lines))
    env = os.environ | {
        "TORCHINDUCTOR_COMPILE_THREADS": str(max(1, (os.cpu_count() or 1) // at_once)),
        "PYTHONPATH": f"{Path(__file__).parent}:{os.environ.get('PYTHONPATH', '')}",
    }
    until = time.monotonic() + seconds

    def done(line: Line) -> bool:
        begin = time.monotonic()
        if begin >= until:
            return False
        command = [sys.executable, "-c", _ONE, json.dumps(line), str(mindirs)]
        process = subprocess.Popen(command, env=env, start_new_session=True)
        try:
            if process.wait(until - begin):
                return False
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with the compilers that it has started
            process.wait()
            return False
        print(f"max-autotune of {line}: {time.monotonic() - begin:.0f} s", flush=True)
        return True

    with ThreadPoolExecutor(at_once) as pool:
        return {line for line, is_done in zip(lines, pool.map(done, lines), strict=True) if is_done}
