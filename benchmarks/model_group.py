"""What a group saves: two BERT-base-sized models of different input length, with each flag.

Run: python benchmarks/model_group.py [--tokens 384 128] [--layers 12] [--rounds 10]
     [--json FILE] [--quick]

Every measurement of memory is a fresh process that builds both models, runs them in turn, and asks
the kernel: for the pages of weights that it has mapped, each counted once however often it is
mapped (nobody else maps them, so their Pss is that), and for what the runs wrote. Speed is compared
in one process, in interleaved rounds, one caller that runs both models in turn. Targets: two models
of equal weights take the memory of one, at the speed of before.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import load
import networks
import numpy as np
import record

import mindspore_lite as mslite

MIB = 2**20
FLAGS = [None, *mslite.ModelGroupFlag]
RUNS = 5  # of each model; the second writes more than the first, for its memory is planned by then


def name_of(flag: mslite.ModelGroupFlag | None) -> str:
    """What the output calls it."""
    return "no group" if flag is None else flag.name


class Pair:
    """Both models, in a group or not."""

    def __init__(self, mindirs: list[str], flag: mslite.ModelGroupFlag | None) -> None:
        self.models = [mslite.Model() for _ in mindirs]
        if flag is not None:
            self.group = mslite.ModelGroup(flag)
            if flag is mslite.ModelGroupFlag.SHARE_WORKSPACE:
                self.group.add_model(mindirs)
            else:
                self.group.add_model(self.models)
        context = mslite.Context()
        context.cpu.thread_num = 1
        for model, mindir in zip(self.models, mindirs, strict=True):
            model.build_from_file(mindir, mslite.ModelType.MINDIR, context)
        shapes = [model.get_inputs()[0].shape for model in self.models]
        self.inputs = [np.arange(np.prod(s), dtype=np.int32).reshape(s) % 100 for s in shapes]

    def run(self) -> list[np.ndarray]:
        """One request to each."""
        pairs = zip(self.models, self.inputs, strict=True)
        return [model.predict([ids])[0].get_data_to_numpy() for model, ids in pairs]


def mapped_weights() -> int:
    """Bytes of compiled weights that are in memory."""
    total, ours = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-", line):
            ours = line.endswith("/weights.bin")
        elif ours and line.startswith("Pss:"):
            total += int(line.split()[1]) * 1024
    return total


def memory(flag: mslite.ModelGroupFlag | None, mindirs: list[str]) -> dict[str, int]:
    """Of this process."""
    pair = Pair(mindirs, flag)
    before, _ = load.own_memory()
    for _ in range(RUNS):
        pair.run()
    written, _ = load.own_memory()
    return {"weights": mapped_weights(), "scratch": written - before}


def measured(flag: mslite.ModelGroupFlag | None, mindirs: list[str]) -> dict[str, int]:
    """Memory in a process of its own, which is this script again."""
    command = [sys.executable, __file__, "--measure", str(FLAGS.index(flag)), *mindirs]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return found


def report_memory(mindirs: list[str]) -> dict[str, list[str]]:
    """Print what each flag takes; returns it as cells."""
    measured(None, mindirs)  # compiles into the cache
    cells = {}
    for flag in FLAGS:
        found = measured(flag, mindirs)
        cells[name_of(flag)] = [f"{found[what] / MIB:.1f} MiB" for what in ("weights", "scratch")]
        print(
            f"{name_of(flag)}: weights {found['weights'] / MIB:.1f} MiB in memory, "
            f"scratch {found['scratch'] / MIB:.1f} MiB"
        )
    sizing = mslite.ModelGroup()
    sizing.add_model(mindirs)
    sizing.cal_max_size_of_workspace(mslite.ModelType.MINDIR, mslite.Context())
    print(f"workspace_size says {sizing.workspace_size / MIB:.1f} MiB")
    return cells


def report_speed(mindirs: list[str], rounds: int, seconds: float) -> dict[str, str]:
    """Print how fast models of a group are against others, having compared their results.

    Returns it as cells.
    """
    pairs = {name_of(flag): Pair(mindirs, flag) for flag in FLAGS}
    wanted = pairs["no group"].run()
    for pair in pairs.values():
        for found, want in zip(pair.run(), wanted, strict=True):
            np.testing.assert_array_equal(found, want)
    sides = {
        name: partial(load.closed_loop, pair.run, clients=1, seconds=seconds)
        for name, pair in pairs.items()
    }
    rates = {
        name: [burst.per_second for burst in bursts]
        for name, bursts in load.interleaved(sides, rounds).items()
    }
    base = rates.pop("no group")
    cells = {}
    for name, rate in rates.items():
        ratio = load.ratio(rate, base)
        print(f"{name} / no group: throughput {ratio}, results are equal")
        cells[name] = f"{ratio.middle:.3f} ({ratio.quartiles(3)})"
    return cells


def main() -> None:
    """Measure and print."""
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(memory(FLAGS[int(sys.argv[2])], sys.argv[3:])))
        return
    parser = load.parser(__doc__)
    parser.add_argument("--tokens", nargs=2, type=int, default=[384, 128])
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=3.0, help="of one burst")
    parser.add_argument("--quick", action="store_true", help="tiny models and one short round")
    args = parser.parse_args()
    sizes = {"layers": args.layers}
    if args.quick:
        sizes = {"layers": 1, "hidden": 48, "vocabulary": 1000}
        args.tokens, args.rounds, args.seconds = [64, 16], 1, 0.05
    with load.scratch() as folder:
        mindirs = [
            networks.bert(folder / f"bert{tokens}.mindir", tokens=tokens, **sizes)
            for tokens in args.tokens
        ]
        for tokens, mindir in zip(args.tokens, mindirs, strict=True):
            print(f"{tokens} tokens: a file of {mindir.stat().st_size / MIB:.1f} MiB")
        sizes = report_memory([str(mindir) for mindir in mindirs])
        speeds = report_speed([str(mindir) for mindir in mindirs], args.rounds, args.seconds)
    table = record.Table("", "weights in memory", "scratch memory", "throughput / no group")
    for name, cells in sizes.items():
        table.add(name if name == "no group" else f"`{name}`", *cells, speeds.get(name, ""))
    record.write(args.json, {"flags": table})


if __name__ == "__main__":
    main()
