"""Target gpu beside its peers, on one card, in one run. Needs an NVIDIA card and torchvision.

Run: python benchmarks/gpu.py [--parts latency clients start memory update] [--models ResNet-50 ...]
     [--batches 1 8 64] [--precisions fp16 fp32] [--rounds 7] [--ahead-s 2400] [--json FILE]

latency   one call after the other on images that lie on the card, sides taking turns in each round;
          targets: at least 0.95 of torch.compile max-autotune everywhere, and 1.5 x ONNX Runtime in
          the geometric mean
clients   ModelParallelRunner, ResNet-50 fp16: 64 threads that send single images of the host,
          beside the best fixed batch in a plain loop (target 0.85); one thread, beside a bare
          replay with the same copies (target 1.10 of its latency)
start     the same build in two processes, with an empty compile cache and with the one that the
          first has filled; target 0.25
memory    what 4 workers take on the card; target: weights + 4 x activations
update    200 MB of weights, under load; target 20 ms on the card, and no failed request

torch.compile is given --ahead-s to compile before anything is measured (gpu_ahead.py); lines that
it leaves out are named as such. The JSON file is written after every line; benchmarks/gpu_plot.py
makes table and picture of it.
"""

from __future__ import annotations

import datetime
import json
import statistics
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gpu_ahead
import gpu_models
import gpu_parts
import gpu_sides
import load
import torch

OURS, EAGER, COMPILED, ORT = "mslite", "eager", "max-autotune", "onnxruntime"
PARTS = ("latency", "clients", "start", "memory", "update")


def sides(
    path: Path, case: gpu_ahead.Line, is_compiled: bool
) -> tuple[dict[str, gpu_sides.Call], dict[str, str]]:
    """All sides of one line of the table, and why others are missing."""
    name, precision, batch = case
    found = {
        OURS: gpu_sides.ours(path, precision, batch),
        EAGER: gpu_sides.eager(name, precision, batch),
    }
    missing = {}
    try:
        found[ORT] = gpu_sides.onnxruntime_cuda(path, precision, batch)
    except Exception as exc:  # noqa: BLE001 - whatever keeps a peer away is reported
        missing[ORT] = f"{type(exc).__name__}: {exc}"[:200]
    if is_compiled:
        found[COMPILED] = gpu_sides.max_autotune(name, precision, batch)
    else:
        missing[COMPILED] = "no time was left to compile it"
    return found, missing


def check(found: dict[str, gpu_sides.Call], precision: str) -> float:
    """How far our answer is from eager's, relative to the largest score; raises if it is wrong."""
    wanted = found[EAGER]().float()
    for side, call in found.items():
        error = float((call().float() - wanted).abs().max() / wanted.abs().max())
        assert error < (2e-2 if precision == "fp16" else 5e-3), f"{side} is off by {error}"
    return float((found[OURS]().float() - wanted).abs().max() / wanted.abs().max())


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


def latency(args: Any, folder: Path) -> Iterator[dict[str, Any]]:
    """The table, line by line."""
    cases = [(m, p, b) for b in args.batches for p in args.precisions for m in args.models]
    for name in args.models:
        gpu_models.mindir(name, folder)
    compiled = gpu_ahead.compiled(cases, args.ahead_s, folder) if args.ahead_s else set()
    for case in sorted(cases, key=lambda case: case not in compiled):
        name, precision, batch = case
        path = gpu_models.mindir(name, folder)
        found, missing = sides(path, case, case in compiled)
        error = check(found, precision)
        times = rounds_of(found, args.rounds)
        middles = {side: statistics.median(one) for side, one in times.items()}
        ratios = {
            side: vars(load.ratio(times[side], times[OURS])) for side in times if side != OURS
        }
        print(f"{name} {precision} batch {batch}: " + ", ".join(
            f"{side} {middle:.3f} ms" for side, middle in middles.items()
        ) + "; " + ", ".join(
            f"{side} / mslite {ratio['middle']:.2f}" for side, ratio in ratios.items()
        ), flush=True)  # fmt: skip
        yield {"model": name, "precision": precision, "batch": batch, "ms": middles,
               "ratio": ratios, "missing": missing, "error": error}  # fmt: skip
        del found
        torch.cuda.empty_cache()


def main() -> None:
    """Run the parts that are asked for."""
    parser = load.parser(__doc__)
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    parser.add_argument("--models", nargs="+", default=list(gpu_models.MODELS))
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 8, 64])
    parser.add_argument("--precisions", nargs="+", default=["fp16", "fp32"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--ahead-s", type=float, default=2400.0)
    parser.add_argument("--folder", type=Path)
    args = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    results: dict[str, Any] = {
        "measured": datetime.date.today().isoformat(),
        "machine": gpu_parts.machine(),
    }
    print(results["machine"], flush=True)

    def save() -> None:
        if args.json:
            args.json.write_text(json.dumps(results, indent=1) + "\n")

    with load.scratch() as scratch:
        folder = args.folder or scratch
        folder.mkdir(parents=True, exist_ok=True)
        for part in args.parts:
            if part == "latency":
                results[part] = []
                for row in latency(args, folder):
                    results[part].append(row)
                    save()
            else:
                results[part] = getattr(gpu_parts, part)(folder)
                save()


if __name__ == "__main__":
    main()
