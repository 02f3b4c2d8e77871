"""Throughput of ModelParallelRunner with engine=auto, beside OpenVINO and ONNX Runtime by hand.

Run: python benchmarks/engines.py [--models MobileNetV2 ...] [--clients 5 16] [--scouting 4]
     [--rounds 15] [--seconds 2] [--json FILE] [--quick]

First each engine of the CPU is measured under the runner, and the better one remembered for the
model, as `mslite bench --tune` does; the runner that is compared is built with engine=auto and
nothing else. Clients are threads that send their next request when the last one is answered. The
peers run the same graph with the same inputs: (b) the best of a grid of hand-tuned ONNX Runtime
set-ups, (c) OpenVINO's AsyncInferQueue with the THROUGHPUT hint, fed from one thread. Which of (b)
is the best, and whether (c) is better, is found out for each number of clients in rounds of their
own: the best of many in the rounds that are compared would be the luckiest of them. In those, all
take turns. Target: no less than the better of both.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import load
import networks
import parallel
import peers
import record

import mindspore_lite as mslite
from mindspore_lite.core.capabilities import named
from mindspore_lite.engines.choice import LEAST_REQUESTS, LEAST_ROUNDS, Choice, Evidence, remember
from mindspore_lite.graph.source import ModelInput, source_of

ENGINES = ("onnxruntime", "openvino")
OURS, BEST = "mslite, engine=auto", "the better of (b) and (c)"


def built(mindir: Path, engine: str) -> mslite.ModelParallelRunner:
    """A runner on an engine, and nothing else said."""
    context = mslite.Context()
    context.parallel.config_info = {"common_context": {"engine": engine}}
    runner = mslite.ModelParallelRunner()
    runner.build_from_file(str(mindir), context)
    return runner


def choose(mindir: Path, clients: int, args: argparse.Namespace) -> str:
    """Measure the engines under the runner, and remember the better one."""
    runners = {engine: built(mindir, engine) for engine in ENGINES}
    arrays = list(parallel.inputs_for(runners[ENGINES[0]]).values())
    bursts = load.interleaved(
        {
            engine: partial(
                load.closed_loop, partial(runner.predict, arrays), clients, args.seconds
            )
            for engine, runner in runners.items()
        },
        args.scouting,
    )
    middles = {name: load.spread(parallel.rates(found)).middle for name, found in bursts.items()}
    for engine, runner in runners.items():
        print(f"  {engine} under the runner: {middles[engine]:.1f} /s")
        runner.close()
    best = max(middles, key=middles.__getitem__)
    usual = middles[named("").name]
    gain = None if best == named("").name else max(middles[best] / usual, 1.0001)
    # a note for this run alone, in a cache of its own: how sure it is, the table below shows
    evidence = Evidence(LEAST_REQUESTS, LEAST_ROUNDS, gain)
    assert remember(source_of(ModelInput("MINDIR", mindir)), Choice(best), evidence)
    return best


def report(case: tuple[str, int], tuned: str, best: str, bursts: parallel.Bursts) -> list[str]:
    """Print all sides, and ours against the peers; returns the row of the table."""
    model, clients = case
    for name, found in bursts.items():
        middle = load.spread(parallel.rates(found)).middle
        print(f"  {name:44} {middle:9.1f} /s   p99 {load.p99_ms(found):8.1f} ms")
    cells = [model, str(clients)]
    for label, name in ((tuned, tuned), (parallel.OPENVINO, parallel.OPENVINO), (BEST, best)):
        times = load.ratio(parallel.rates(bursts[OURS]), parallel.rates(bursts[name]))
        print(f"  mslite / {label}: throughput {times}")
        cells.append(f"{times.middle:.2f} ({times.quartiles()})")
    return cells


def scout(there: Mapping[str, peers.Side], clients: int, args: argparse.Namespace) -> list[str]:
    """The best of (b), and the better of that and (c)."""
    bursts = load.interleaved(
        {name: partial(side.burst, clients, args.seconds) for name, side in there.items()},
        args.scouting,
    )
    middles = {name: load.spread(parallel.rates(found)).middle for name, found in bursts.items()}
    print("  " + ", ".join(f"{name} {middle:.1f} /s" for name, middle in middles.items()))
    tuned = parallel.best_tuned(bursts)
    return [tuned, max((tuned, parallel.OPENVINO), key=middles.__getitem__)]


def measure(name: str, write: Callable[[Path], Path], args: argparse.Namespace) -> list[list[str]]:
    """All client counts of one model, on one runner and one set of peers."""
    rows = []
    with load.scratch() as folder:
        mindir = write(folder / "model.mindir")
        onnx = networks.equivalent_onnx(mindir, folder / "model.onnx")
        print(f"\n{name}")
        chosen = choose(mindir, max(args.clients), args)
        with built(mindir, "auto") as runner:
            layout = runner.statistics().layout
            print(f"  chosen: {chosen}, {layout.workers} workers of {layout.threads} threads")
            sides = parallel.sides_for(runner, onnx, parallel.inputs_for(runner), layout.usable)
            ours = sides.pop(parallel.OURS)
            del sides[parallel.DEFAULT]
            for clients in args.clients:
                print(f"\n{name}, {clients} clients")
                tuned, best = scout(sides, clients, args)
                there = {
                    OURS: ours,
                    tuned: sides[tuned],
                    parallel.OPENVINO: sides[parallel.OPENVINO],
                }
                bursts = load.interleaved(
                    {key: partial(one.burst, clients, args.seconds) for key, one in there.items()},
                    args.rounds,
                )
                rows.append(report((name, clients), tuned, best, bursts))
    return rows


def main() -> None:
    """Measure and print."""
    parser = load.parser(__doc__)
    names = list(parallel.MODELS)
    parser.add_argument("--models", nargs="+", choices=names, default=names)
    parser.add_argument("--clients", nargs="+", type=int, default=[5, 16])
    parser.add_argument("--scouting", type=int, default=4, help="rounds of all peers alone")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=2.0, help="of one burst of one side")
    parser.add_argument("--quick", action="store_true", help="a tiny model and tiny bursts")
    args = parser.parse_args()
    models = {name: parallel.MODELS[name] for name in args.models}
    if args.quick:
        models, args.clients, args.seconds = parallel.QUICK, [3], 0.02
        args.scouting = args.rounds = 1
    table = record.Table("model", "clients", "/ best of (b)", "/ (c)", f"/ {BEST}, at least 1")
    for name, write in models.items():
        for row in measure(name, write, args):
            table.add(*row)
    record.write(args.json, {"clients": table}, packages=["onnxruntime", "openvino"])
    for row in (table.head, *table.rows):
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
