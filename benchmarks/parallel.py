"""Throughput and latency of ModelParallelRunner under many clients, beside its peers, in one run.

Run: python benchmarks/parallel.py [--models MobileNetV2 ...] [--clients 1 2 5 16 64] [--rounds 7]
     [--seconds 0.7] [--json FILE] [--quick]

Clients are threads that send their next request when the last one is answered. The peers run the
same graph with the same inputs: (a) one default InferenceSession shared by the clients, (b) the
best of a grid of hand-tuned ONNX Runtime set-ups, chosen for each number of clients after the fact,
(c) OpenVINO's AsyncInferQueue with the THROUGHPUT hint fed from one thread, where it is installed.
All take turns in every round. Targets at every number of clients: throughput at least 1.05 x (a)
and no less than (b) within the spread; p99 latency at 64 clients no worse than (a) and (b).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import load
import networks
import numpy as np
import peers
import record

import mindspore_lite as mslite

OURS, DEFAULT, TUNED, OPENVINO = "mslite", "(a) default session", "best of (b)", "(c) OpenVINO"
HEAD = ("model", "clients", "/ (a), at least 1.05", "/ best of (b), at least 1", "/ (c)")
MODELS: dict[str, Callable[[Path], Path]] = {
    "MobileNetV2": networks.mobilenet_v2,
    "ResNet-50": networks.resnet50,
    "MiniLM": networks.minilm,
}
QUICK = {"tiny": partial(networks.bert, layers=1, hidden=48, tokens=16, vocabulary=100)}

Bursts = dict[str, list[load.Burst]]


def inputs_for(runner: mslite.ModelParallelRunner) -> dict[str, np.ndarray]:
    """Random numbers for images, small ones for words."""
    rng = np.random.default_rng(0)
    return {
        tensor.name: rng.integers(0, 100, tensor.shape).astype(np.int32)
        if tensor.dtype == mslite.DataType.INT32
        else rng.standard_normal(tensor.shape, np.float32)
        for tensor in runner.get_inputs()
    }


def sides_for(
    runner: mslite.ModelParallelRunner, onnx: Path, feed: dict[str, np.ndarray], cores: int
) -> dict[str, peers.Side]:
    """Our side and all peers, seen to give the same answer."""
    arrays = list(feed.values())
    sides = {
        OURS: peers.threaded(lambda: runner.predict(arrays)[0].get_data_to_numpy()),
        DEFAULT: peers.default_session(onnx, feed),
    }
    sides |= {f"(b) {how}": peers.tuned(onnx, feed, how) for how in peers.grid(cores)}
    openvino = peers.openvino(onnx, feed)
    if openvino is not None:
        sides[OPENVINO] = openvino
    wanted = sides[DEFAULT].once()
    for name, side in sides.items():
        np.testing.assert_allclose(side.once(), wanted, rtol=1e-2, atol=1e-3, err_msg=name)
    return sides


def rates(bursts: Sequence[load.Burst]) -> list[float]:
    """Requests per second in each round."""
    return [burst.per_second for burst in bursts]


def best_tuned(bursts: Bursts) -> str:
    """The set-up of (b) with the highest rate."""
    tuned = (name for name in bursts if name.startswith("(b)"))
    return max(tuned, key=lambda name: load.spread(rates(bursts[name])).middle)


def figures(model: str, clients: int, bursts: Bursts) -> dict[str, object]:
    """What the picture shows: requests per second."""
    shown = {OURS: OURS, DEFAULT: DEFAULT, TUNED: best_tuned(bursts), OPENVINO: OPENVINO}
    found = {
        label: vars(load.spread(rates(bursts[name])))
        for label, name in shown.items()
        if name in bursts
    }
    return {"model": model, "clients": clients, "per_second": found}


def report(model: str, clients: int, bursts: Bursts) -> list[str]:
    """Print all sides, and ours against each peer; returns the row of the table."""
    print(f"\n{model}, {clients} client{'s'[: clients > 1]}")
    middles = {name: load.spread(rates(found)).middle for name, found in bursts.items()}
    for name, found in bursts.items():
        print(f"  {name:44} {middles[name]:9.1f} /s   p99 {load.p99_ms(found):8.1f} ms")
    cells = [model, str(clients)]
    for name in (DEFAULT, best_tuned(bursts), OPENVINO):
        if name not in bursts:
            cells.append("-")
            continue
        times = load.ratio(rates(bursts[OURS]), rates(bursts[name]))
        slower = load.p99_ms(bursts[OURS]) / load.p99_ms(bursts[name])
        print(f"  mslite / {name}: throughput {times}, p99 latency {slower:.2f}")
        cells.append(f"{times.middle:.2f} ({times.quartiles()}), p99 {slower:.2f}")
    return cells


def measure(
    name: str, write: Callable[[Path], Path], args: argparse.Namespace
) -> Iterator[tuple[int, Bursts]]:
    """All client counts of one model, on one runner and one set of peers."""
    with load.scratch() as folder, mslite.ModelParallelRunner() as runner:
        mindir = write(folder / "model.mindir")
        runner.build_from_file(str(mindir), mslite.Context())
        onnx = networks.equivalent_onnx(mindir, folder / "model.onnx")
        layout = runner.statistics().layout
        print(f"\n{name}: {layout.workers} workers, {layout.threads} threads each")
        sides = sides_for(runner, onnx, inputs_for(runner), layout.usable)
        for clients in args.clients:
            bursts = load.interleaved(
                {key: partial(side.burst, clients, args.seconds) for key, side in sides.items()},
                args.rounds,
            )
            yield clients, bursts


def main() -> None:
    """Measure and print."""
    parser = load.parser(__doc__)
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--clients", nargs="+", type=int, default=[1, 2, 5, 16, 64])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.7, help="of one burst of one side")
    parser.add_argument("--quick", action="store_true", help="a tiny model and tiny bursts")
    args = parser.parse_args()
    models = {name: MODELS[name] for name in args.models}
    if args.quick:
        models, args.clients, args.rounds, args.seconds = QUICK, [3], 1, 0.02
    table, numbers = record.Table(*HEAD), []
    for name, write in models.items():
        for clients, bursts in measure(name, write, args):
            table.add(*report(name, clients, bursts))
            numbers.append(figures(name, clients, bursts))
    record.write(
        args.json, {"clients": table}, {"throughput": numbers}, ["onnxruntime", "openvino"]
    )
    print("\n| model | clients | / (a) | / best of (b) | / (c) |")
    for row in table.rows:
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
