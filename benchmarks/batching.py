"""What joining requests brings: MiniLM on short texts, batching on against off, in one run.

Run: python benchmarks/batching.py [--clients 1 16 64] [--rounds 7] [--seconds 1] [--rows 16]
     [--wait-us 0] [--json FILE] [--quick]

Both sides are our own runner with 16 tokens a request, one row each, and differ in max_batch_rows
alone. Beside them the bare engine computes on every core, with as many rows a run as the clients
can give each, against one row: no pool can gain more than that. All take turns in every round.
Target: at least 1.5 times the throughput at 16 clients.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
from collections import Counter
from functools import partial
from pathlib import Path

import load
import networks
import numpy as np
import onnxruntime as ort
import record

import mindspore_lite as mslite

TOKENS, VOCABULARY = 16, 100
HEAD = (
    "clients",
    "throughput, batched / plain",
    "quartiles",
    "p99 latency",
    "batch of the median request",
    "the engine alone",
    "target",
)


def built(mindir: Path, rows: int, wait_us: int) -> mslite.ModelParallelRunner:
    """A runner with a default context but for batching."""
    context = mslite.Context()
    context.parallel.max_batch_rows = rows
    context.parallel.max_batch_wait_us = wait_us
    runner = mslite.ModelParallelRunner()
    runner.build_from_file(str(mindir), context)
    return runner


def same_answers(
    plain: mslite.ModelParallelRunner, batched: mslite.ModelParallelRunner, texts: list[np.ndarray]
) -> None:
    """Every text, alone and with others, gives the same."""
    futures = [batched.submit([text]) for text in texts]
    for text, future in zip(texts, futures, strict=True):
        alone = plain.predict([text])[0].get_data_to_numpy()
        joined = future.result()[0].get_data_to_numpy()
        np.testing.assert_allclose(joined, alone, rtol=1e-3, atol=1e-4)


def median_size(runs: Counter[int]) -> float:
    """Of the batch that a request was in; a median of runs would count the small ones too much."""
    return statistics.median(Counter({rows: rows * n for rows, n in runs.items()}).elements())


def bare_session(onnx: Path) -> ort.InferenceSession:
    """The engine alone, one thread a call."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    return ort.InferenceSession(onnx, options, providers=["CPUExecutionProvider"])


def measure(
    runners: dict[str, mslite.ModelParallelRunner],
    session: ort.InferenceSession,
    texts: list[np.ndarray],
    clients: int,
    args: argparse.Namespace,
) -> list[str]:
    """Print one number of clients; returns the row of it."""
    cores = runners["plain"].statistics().layout.usable
    share = max(1, min(args.rows, clients // cores))

    def burst(runner: mslite.ModelParallelRunner) -> load.Burst:
        turn = itertools.cycle(texts)
        return load.closed_loop(lambda: runner.predict([next(turn)]), clients, args.seconds)

    def bare(rows: int) -> load.Burst:
        feed = {session.get_inputs()[0].name: np.concatenate(texts[:rows])}
        return load.closed_loop(lambda: session.run(None, feed), cores, args.seconds)

    before = Counter(runners["batched"].statistics().batches)
    sides = {name: partial(burst, runner) for name, runner in runners.items()}
    sides |= {"bare rows": partial(bare, share), "bare row": partial(bare, 1)}
    bursts = load.interleaved(sides, args.rounds)
    sizes = Counter(runners["batched"].statistics().batches) - before
    rates = {name: [b.per_second for b in found] for name, found in bursts.items()}
    middle = {name: load.spread(found).middle for name, found in rates.items()}
    slower = load.p99_ms(bursts["batched"]) / load.p99_ms(bursts["plain"])
    gain, size = load.ratio(rates["batched"], rates["plain"]), f"{median_size(sizes):g}"
    print(
        f"{clients} clients: batched / plain {gain}, "
        f"p99 latency {slower:.2f}, {middle['batched']:.0f} against {middle['plain']:.0f} /s, "
        f"the median request in a batch of {size} rows"
    )
    bound = load.ratio([share * rate for rate in rates["bare rows"]], rates["bare row"])
    print(f"  the engine alone, {cores} runs of {share} rows at a time against 1 row: {bound}")
    ratios = [f"{gain.middle:.2f}", gain.quartiles(), f"{slower:.2f}", size, f"{bound.middle:.2f}"]
    return [str(clients), *ratios, "at least 1.5" if clients == 16 else ""]


def main() -> None:
    """Measure and print."""
    parser = load.parser(__doc__)
    parser.add_argument("--clients", nargs="+", type=int, default=[1, 16, 64])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0, help="of one burst of one side")
    parser.add_argument("--rows", type=int, default=16, help="max_batch_rows")
    parser.add_argument("--wait-us", type=int, default=0, help="max_batch_wait_us")
    parser.add_argument("--quick", action="store_true", help="a tiny model and tiny bursts")
    args = parser.parse_args()
    write = partial(networks.minilm, tokens=TOKENS)
    if args.quick:
        args.clients, args.rounds, args.seconds = [4], 1, 0.02
        write = partial(networks.bert, layers=1, hidden=48, tokens=TOKENS, vocabulary=VOCABULARY)
    rng = np.random.default_rng(0)
    texts = [rng.integers(0, VOCABULARY, (1, TOKENS)).astype(np.int32) for _ in range(64)]
    table = record.Table(*HEAD)
    with load.scratch() as folder:
        mindir = write(folder / "model.mindir", open_batch=True)
        with built(mindir, 0, 0) as plain, built(mindir, args.rows, args.wait_us) as batched:
            same_answers(plain, batched, texts)
            session = bare_session(networks.equivalent_onnx(mindir, folder / "model.onnx"))
            for clients in args.clients:
                runners = {"plain": plain, "batched": batched}
                table.add(*measure(runners, session, texts, clients, args))
    record.write(args.json, {"clients": table})


if __name__ == "__main__":
    main()
