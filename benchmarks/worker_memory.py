"""What a further worker costs in memory: a BERT-base-sized model with 1 and with 8 workers.

Run: python benchmarks/worker_memory.py [--workers 1 8] [--threads 1 2] [--layers 12]
     [--json FILE] [--quick]

Every measurement is a fresh process that answers 8 requests per worker of the larger pool, all sent
at once, and then reads its own memory: what it wrote, and apart from that the mapped files, which
are mostly the weights. The activations of a request are what a further thread adds that calls the
same plain Model at the same time. Target: a further worker costs at most 1 % of the weights beyond
them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import load
import networks
import numpy as np
import record

import mindspore_lite as mslite

MIB = 2**20


def context(threads: int, workers: int) -> mslite.Context:
    """A context with both numbers given."""
    made = mslite.Context()
    made.cpu.thread_num = threads
    made.parallel.workers_num = workers
    return made


def of_pool(mindir: str, threads: int, workers: int, requests: int) -> dict[str, int]:
    """Own memory of this process after all requests came at once to a pool."""
    with mslite.ModelParallelRunner() as runner:
        runner.build_from_file(mindir, context(threads, workers))
        return after(runner.predict, requests, requests)


def of_model(mindir: str, threads: int, callers: int, requests: int) -> dict[str, int]:
    """Own memory of this process after so many threads shared a Model."""
    with mslite.Model() as model:
        model.build_from_file(mindir, mslite.ModelType.MINDIR, context(threads, 0))
        return after(model.predict, callers, requests)


def after(predict: Callable[..., object], callers: int, requests: int) -> dict[str, int]:
    """Own memory of this process after some threads sent requests together."""
    ids = np.zeros((1, 128), np.int32)
    with ThreadPoolExecutor(callers) as pool:
        list(pool.map(lambda _: predict([ids]), range(requests)))
    written, mapped = load.own_memory()
    return {"written": written, "mapped": mapped}


MEASURES = {"pool": of_pool, "model": of_model}


def measured(kind: str, mindir: Path, *numbers: int) -> dict[str, int]:
    """A measurement in a process of its own, which is this script again."""
    command = [sys.executable, __file__, "--measure", kind, str(mindir), *map(str, numbers)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return found


def report(mindir: Path, threads: int, workers: list[int]) -> list[str]:
    """Print the cost of a worker at one number of threads; returns the row of it."""
    weights, (few, many) = mindir.stat().st_size, sorted(workers)
    further, sizes = {}, {}
    for kind, what in [("pool", "workers"), ("model", "callers of a Model")]:
        written = {}
        for count in (few, many):
            found = measured(kind, mindir, threads, count, 8 * many)
            written[count] = found["written"]
            print(
                f"{threads} threads, {count} {what}: own memory {found['written'] / MIB:.1f} MiB, "
                f"and {found['mapped'] / MIB:.1f} MiB of mapped files, after {8 * many} requests"
            )
        further[kind] = (written[many] - written[few]) / (many - few)
        sizes[kind] = [f"{written[count] / MIB:.0f} MiB" for count in (few, many)]
    print(
        f"{threads} threads: a further worker costs {further['pool'] / MIB:.2f} MiB = "
        f"{further['pool'] / weights:.2%} of the weights, its activations "
        f"{further['model'] / MIB:.2f} MiB = {further['model'] / weights:.2%}"
    )
    costs = [f"{further[kind] / weights * 100:.2f} %" for kind in ("pool", "model")]
    what = f"own memory, {threads} thread{'s'[: threads > 1]} each"
    return [what, *sizes["pool"], *costs, "activations and 1 %"]


def main() -> None:
    """Measure and print."""
    if sys.argv[1:2] == ["--measure"]:
        kind, mindir, *numbers = sys.argv[2:]
        print(json.dumps(MEASURES[kind](mindir, *map(int, numbers))))
        return
    parser = load.parser(__doc__)
    parser.add_argument("--workers", nargs=2, type=int, default=[1, 8])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--quick", action="store_true", help="a tiny model and 1 against 2 workers")
    args = parser.parse_args()
    sizes = {"layers": args.layers}
    if args.quick:
        sizes = {"layers": 1, "hidden": 48, "vocabulary": 100}
        args.workers, args.threads = [1, 2], [1]
    few, many = sorted(args.workers)
    table = record.Table(
        "",
        f"{few} worker{'s'[: few > 1]}",
        f"{many} workers",
        "a further worker / weights",
        "activations / weights",
        "target",
    )
    with load.scratch() as folder:
        mindir = networks.bert(folder / "bert.mindir", **sizes)
        print(f"weights {mindir.stat().st_size / MIB:.1f} MiB")
        measured("model", mindir, args.threads[0], 1, 1)  # compiles into the cache
        for threads in args.threads:
            table.add(*report(mindir, threads, args.workers))
    record.write(args.json, {"workers": table})


if __name__ == "__main__":
    main()
