"""Target gpu beside its peers, on one card, in one run. Needs an NVIDIA card and torchvision.

Run: python benchmarks/gpu.py [--parts latency one clients start memory update]
     [--models ResNet-50 ...] [--batches 1 8 64] [--precisions fp16 fp32]
     [--lines ResNet-50,fp32,8 ...] [--rounds 7] [--ahead-s 2400] [--json FILE]

latency   one call after the other on images that lie on the card, sides taking turns in each round;
          targets: at least 0.95 of torch.compile max-autotune everywhere, and 1.5 x ONNX Runtime in
          the geometric mean
one       ModelParallelRunner, ResNet-50 fp16: one thread that sends single images of the host,
          beside a bare replay with the same copies (target 1.10 of its latency)
clients   the same with 64 threads, beside the best fixed batch in a plain loop (target 0.85)
start     the same build in two processes, with an empty compile cache and with the one that the
          first has filled; target 0.25
memory    what 4 workers take on the card; target: weights + 4 x activations
update    200 MB of weights, under load; target 20 ms on the card, and no failed request

torch.compile is given --ahead-s to compile before anything is measured (gpu_lines.py); lines that
it leaves out are named as such. The JSON file is written after every line; benchmarks/gpu_plot.py
makes table and picture of it.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gpu_lines
import gpu_models
import gpu_parts
import gpu_sides
import load

PARTS = ("latency", "one", "clients", "start", "memory", "update")


def latency(args: Any, folder: Path) -> Iterator[dict[str, Any]]:
    """The table, line by line."""
    lines: list[gpu_lines.Line] = args.lines or [
        (m, p, b) for b in args.batches for p in args.precisions for m in args.models
    ]

    def make() -> None:
        for name in {name for name, _, _ in lines}:
            gpu_models.mindir(name, folder)

    for row in gpu_lines.rows(lines, args.rounds, folder, args.ahead_s, make):
        print(
            f"{row['model']} {row['precision']} batch {row['batch']}: "
            + ", ".join(f"{side} {ms:.3f} ms" for side, ms in row["ms"].items())
            + "; "
            + ", ".join(
                f"{side} / mslite {ratio['middle']:.2f}" for side, ratio in row["ratio"].items()
            ),
            flush=True,
        )
        yield row


def line(text: str) -> gpu_lines.Line:
    """The line that "ResNet-50,fp32,8" names."""
    name, precision, batch = text.split(",")
    return name, precision, int(batch)


def main() -> None:
    """Run the parts that are asked for."""
    parser = load.parser(__doc__)
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    parser.add_argument("--models", nargs="+", default=list(gpu_models.MODELS))
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 8, 64])
    parser.add_argument("--precisions", nargs="+", default=["fp16", "fp32"])
    parser.add_argument("--lines", nargs="+", type=line)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--ahead-s", type=float, default=2400.0)
    parser.add_argument("--folder", type=Path)
    args = parser.parse_args()
    gpu_sides.allow_tf32()
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
