"""Start of a BERT-base-sized model: our second build against ONNX Runtime's session creation.

Run: python benchmarks/startup.py [--rounds 7] [--layers 12] [--json FILE] [--quick]

Targets: the second build_from_file takes at most half of what ONNX Runtime takes to create a
session from the equivalent ONNX file, and its peak memory is at most 1.1 times the weights. Every
measurement is a fresh process and the two sides alternate; packages are imported before the clock
starts on both.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import load
import networks
import record

MEASURE = """
import json, sys, time
import numpy as np
import onnxruntime as ort
import mindspore_lite as mslite

def status(field):
    for line in open("/proc/self/status"):
        if line.startswith(field):
            return int(line.split()[1]) * 1024

side, path = sys.argv[1:3]
open("/proc/self/clear_refs", "w").write("5")  # the peak counts from here
before, start = status("VmRSS"), time.perf_counter()
if side == "mslite":
    model = mslite.Model()
    model.build_from_file(path, mslite.ModelType.MINDIR)
else:
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
seconds, peak = time.perf_counter() - start, status("VmHWM") - before
ids = np.arange(128, dtype=np.int32).reshape(1, 128)
start = time.perf_counter()
if side == "mslite":
    out = model.predict([ids])[0].get_data_to_numpy()
else:
    (out,) = session.run(None, {"ids": ids})
first = time.perf_counter() - start
print(json.dumps({"seconds": seconds, "peak": peak, "first": first, "sum": float(out.sum())}))
"""


def measured(side: str, path: Path, cache: Path) -> dict[str, float]:
    """One start in a process of its own."""
    environment = {**os.environ, "MSLITE_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", MEASURE, side, str(path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Measure and print."""
    parser = load.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--quick", action="store_true", help="a tiny model, one round")
    arguments = parser.parse_args()
    sizes = {"layers": arguments.layers}
    if arguments.quick:
        sizes, arguments.rounds = {"layers": 1, "hidden": 48, "vocabulary": 1000}, 1
    table = record.Table("", "mslite, second build", "ONNX Runtime, same graph", "ratio", "target")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        mindir = networks.bert(folder / "bert.mindir", **sizes)
        onnx = networks.equivalent_onnx(mindir, folder / "bert.onnx")
        weights = mindir.stat().st_size
        cold = measured("mslite", mindir, folder / "cache")
        print(f"weights {weights / 2**20:.0f} MiB")
        print(f"first build, compiling into the cache: {cold['seconds']:.2f} s")
        ours, theirs = [], []
        for _ in range(arguments.rounds):
            ours.append(measured("mslite", mindir, folder / "cache"))
            theirs.append(measured("onnxruntime", onnx, folder / "cache"))
        assert abs(ours[0]["sum"] - theirs[0]["sum"]) < 1e-2 * abs(theirs[0]["sum"]) + 1
        for key, label, scale, unit, target in [
            ("seconds", "build", 1.0, " s", "at most 0.5"),
            ("peak", "peak memory of the build / weights", 1 / weights, "", "at most 1.1"),
            ("first", "first run, which maps the weights", 1.0, " s", ""),
        ]:
            a, b = (statistics.median(row[key] for row in rows) * scale for rows in (ours, theirs))
            print(f"{label}: mslite {a:.3f}{unit}, ONNX Runtime {b:.3f}{unit}, ratio {a / b:.3f}")
            table.add(label, f"{a:.3f}{unit}", f"{b:.3f}{unit}", f"{a / b:.2f}", target)
    record.write(arguments.json, {"build": table})


if __name__ == "__main__":
    main()
