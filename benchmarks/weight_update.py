"""Weights that change while a model runs: what that costs, and whether anybody notices.

Run: python benchmarks/weight_update.py [--parts steady update versions memory] [--rounds 7]
     [--tokens 128 16] [--layers 12] [--threads 1] [--requests 10000] [--json FILE]
     [--quick]
Example: python benchmarks/weight_update.py --parts steady --tokens 16 --rounds 3

A BERT-base-sized model, the four attention projections of each layer variable: 48 matrices, 113 MB.

steady    a request after an update, against the same model with fixed weights, and against a plain
          ONNX Runtime session with fixed weights. The other design is measured as well: a session
          whose variable weights are inputs, bound once. Target: at most 1.05 times the fixed model.
update    update_weights() of them all, against a fresh build of a model that was never seen, and
          against a build of one that is in the compile cache; and how long requests take beside
          updates. Target: at most 0.20 of a fresh build.
versions  16 threads send requests to a ModelParallelRunner, an update comes every 50 ms, and every
          answer tells with which weights it was computed. Target: none failed, mixed or stale.
memory    own memory of a process before and after 20 updates.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import load
import networks
import numpy as np
import onnx
import onnxruntime as ort
import record

import mindspore_lite as mslite
from mindspore_lite.core import machine

MIB = 2**20
PARTS = ("steady", "update", "versions", "memory")
CLIENTS, EVERY_S = 16, 0.05
ROWS, HIDDEN, PIECES = 64, 256, 8  # of the network that tells its version

Rows = list[list[str]]


def projections(layers: int) -> list[str]:
    """The weights that change."""
    return [f"layer.{i}.{part}.weight" for i in range(layers) for part in ("q", "k", "v", "mix")]


def tensors(names: Sequence[str], hidden: int, seed: int) -> list[mslite.Tensor]:
    """Other values for them."""
    rng = np.random.default_rng(seed)
    found = []
    for name in names:
        values = rng.standard_normal((hidden, hidden), np.float32) * np.float32(hidden**-0.5)
        found.append(mslite.Tensor(values))
        found[-1].name = name
    return found


def built(mindir: Path, threads: int, names: Sequence[str] = ()) -> mslite.Model:
    """A model; the weights of these names may change."""
    context = mslite.Context()
    context.cpu.thread_num = threads
    model = mslite.Model()
    listed = {"ascend_context": {"variable_weights_list": ",".join(names)}}
    model.build_from_file(str(mindir), mslite.ModelType.MINDIR, context, config_dict=listed)
    return model


# --- steady state ---------------------------------------------------------------------------------


def plain_session(path: Path, threads: int) -> ort.InferenceSession:
    """ONNX Runtime by itself."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def with_inputs(path: Path, names: Sequence[str]) -> Path:
    """The same ONNX file, with weights as inputs."""
    model = onnx.load(path)
    weights = {t.name: t for t in model.graph.initializer if t.name in names}
    for name in names:
        found = weights[name]
        info = onnx.helper.make_tensor_value_info(name, found.data_type, found.dims)
        model.graph.input.append(info)
        model.graph.initializer.remove(found)
    onnx.save(model, other := path.with_name("inputs.onnx"))
    return other


def bound(
    session: ort.InferenceSession, ids: np.ndarray, weights: list[mslite.Tensor]
) -> Callable[[], np.ndarray]:
    """A request to a session whose weights are inputs; all but the ids stay bound."""
    binding = session.io_binding()
    for weight in weights:
        value = ort.OrtValue.ortvalue_from_numpy(weight.get_data_to_numpy())
        binding.bind_ortvalue_input(weight.name, value)
    binding.bind_output(session.get_outputs()[0].name)

    def run() -> np.ndarray:
        binding.bind_cpu_input("ids", ids)
        session.run_with_iobinding(binding)
        return np.asarray(binding.copy_outputs_to_cpu()[0])

    return run


def steady(folder: Path, args: argparse.Namespace, tokens: int) -> Rows:
    """Print the latency of one caller, design by design; returns rows of the table."""
    names = projections(args.layers)
    weights = tensors(names, args.hidden, 1)
    mindir = networks.bert(folder / f"steady{tokens}.mindir", tokens=tokens, **args.sizes)
    path = networks.equivalent_onnx(mindir, folder / "steady.onnx")
    ids = np.arange(tokens, dtype=np.int32).reshape(1, -1)
    fixed, changed = built(mindir, args.threads), built(mindir, args.threads, names)
    changed.update_weights([weights])
    peer = plain_session(path, args.threads)
    inputs = bound(plain_session(with_inputs(path, names), args.threads), ids, weights)
    once = {
        "fixed": lambda: fixed.predict([ids])[0].get_data_to_numpy(),
        "changed": lambda: changed.predict([ids])[0].get_data_to_numpy(),
        "peer": lambda: peer.run(None, {"ids": ids})[0],
        "inputs": inputs,
    }
    np.testing.assert_allclose(once["changed"](), once["inputs"](), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(once["fixed"](), once["peer"](), rtol=1e-3, atol=1e-3)

    def side(call: Callable[[], np.ndarray]) -> Callable[[], float]:
        return lambda: statistics.median(load.closed_loop(call, 1, args.seconds).latencies_s)

    found = load.interleaved({name: side(call) for name, call in once.items()}, args.rounds)
    rows = []
    for ours, theirs, what, target in [
        ("changed", "fixed", "a request after an update / fixed weights", "at most 1.05"),
        ("changed", "peer", "a request after an update / ONNX Runtime, fixed weights", ""),
        ("inputs", "peer", "weights as inputs / ONNX Runtime, fixed weights", "(the other design)"),
    ]:
        ratio = load.ratio(found[ours], found[theirs])
        ms = [statistics.median(found[name]) * 1e3 for name in (ours, theirs)]
        print(f"{tokens} tokens: {what} {ratio}, {ms[0]:.2f} ms against {ms[1]:.2f} ms")
        rows.append([f"{tokens} tokens: {what}", f"{ratio.middle:.3f}", ratio.quartiles(3), target])
    for file in (mindir, path, path.with_name("inputs.onnx")):
        file.unlink()
    return rows


# --- an update ------------------------------------------------------------------------------------


def seconds(call: Callable[[], object]) -> float:
    """How long it takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def update(folder: Path, args: argparse.Namespace) -> Rows:
    """Print the time of an update against those of builds, and of requests beside updates.

    Returns rows of the table.
    """
    names = projections(args.layers)
    mindir = networks.bert(folder / "update.mindir", tokens=args.tokens[0], **args.sizes)
    sets = [tensors(names, args.hidden, seed) for seed in (1, 2)]
    nbytes = sum(tensor.data_size for tensor in sets[0])
    model, turn = built(mindir, args.threads, names), [0]

    def change() -> None:
        turn[0] += 1
        model.update_weights([sets[turn[0] % 2]])

    def fresh() -> float:
        """With a cache that has neither the model nor the digest of its file."""
        place = os.environ["MSLITE_CACHE_DIR"]
        os.environ["MSLITE_CACHE_DIR"] = f"{folder}/fresh"
        try:
            return seconds(lambda: built(mindir, args.threads).close())
        finally:
            os.environ["MSLITE_CACHE_DIR"] = place
            shutil.rmtree(folder / "fresh")

    sides = {
        "update": lambda: seconds(change),
        "fresh": fresh,
        "cached": lambda: seconds(lambda: built(mindir, args.threads).close()),
    }
    found = load.interleaved(sides, args.rounds)
    middle = {name: statistics.median(times) for name, times in found.items()}
    rows = []
    for other, what, target in (
        ("fresh", "fresh build", "at most 0.20"),
        ("cached", "build of a cached model", ""),
    ):
        ratio, label = load.ratio(found["update"], found[other]), f"update of {nbytes / 1e6:.0f} MB"
        times = [f"{middle[name]:.3f} s" for name in ("update", other)]
        print(f"{label} / {what} {ratio}, {' against '.join(times)}")
        label = f"{label} / {what} ({' / '.join(times)})"
        rows.append([label, f"{ratio.middle:.3f}", ratio.quartiles(3), target])
    ids = np.zeros((1, args.tokens[0]), np.int32)
    beside(lambda: model.predict([ids]), change, args)
    return rows


def beside(
    call: Callable[[], object], change: Callable[[], None], args: argparse.Namespace
) -> None:
    """Print how long requests of one caller take while another thread updates without a pause."""
    updates = []

    def disturbed() -> load.Burst:
        end = threading.Event()

        def keep_changing() -> None:
            while not end.is_set():
                change()
                updates.append(1)

        with ThreadPoolExecutor(1) as pool:
            other = pool.submit(keep_changing)
            try:
                return load.closed_loop(call, 1, 2 * args.seconds)
            finally:
                end.set()
                other.result()

    sides = {
        "without updates": lambda: load.closed_loop(call, 1, 2 * args.seconds),
        "beside updates": disturbed,
    }
    for name, bursts in load.interleaved(sides, args.rounds).items():
        times = [1e3 * s for burst in bursts for s in burst.latencies_s]
        p50, p99 = np.percentile(times, [50, 99])
        print(
            f"requests {name}: p50 {p50:.2f} ms, p99 {p99:.2f} ms, longest {max(times):.2f} ms, "
            f"of {len(times)}"
        )
    print(f"updates beside requests: {len(updates)}, with {args.threads} threads a request")


# --- which version a request sees -----------------------------------------------------------------


class Watch:
    """Requests go in, and what they tell about versions is counted."""

    def __init__(self, runner: mslite.ModelParallelRunner, requests: int) -> None:
        self.runner = runner
        self.updated = 0  # the version of the last update that returned
        self.counts: Counter[str] = Counter(failed=0, mixed=0, stale=0, backwards=0)
        self.left = iter(range(requests))  # next() of it is atomic
        self.seen: set[int] = set()

    def client(self) -> Counter[str]:
        """Send requests until there are none left; returns what was wrong with answers."""
        x, before, wrong = np.ones((ROWS, HIDDEN), np.float32), 0, Counter[str]()
        for _ in self.left:
            least = self.updated
            try:
                (y,) = self.runner.predict([x])
            except RuntimeError:
                wrong["failed"] += 1
                continue
            versions = np.unique(y.get_data_to_numpy())
            version = int(versions[0])
            self.seen.add(version)
            wrong["mixed"] += len(versions) > 1
            wrong["stale"] += version < least
            wrong["backwards"] += version < before
            before = version
        return wrong

    def change(self, version: int) -> None:
        """One update."""
        values = np.full((HIDDEN, HIDDEN), version / HIDDEN, np.float32)
        weights = [mslite.Tensor(values) for _ in range(PIECES)]
        self.runner.update_weights([weights])
        self.updated = version


def versions(folder: Path, args: argparse.Namespace) -> None:
    """Print what requests saw that were sent while weights changed."""
    mindir = networks.telling(folder / "telling.mindir", ROWS, HIDDEN, PIECES)
    context = mslite.Context()
    listed = ",".join(f"w{piece}" for piece in range(PIECES))
    context.parallel.config_info = {"ascend_context": {"variable_weights_list": listed}}
    with mslite.ModelParallelRunner() as runner, ThreadPoolExecutor(CLIENTS) as pool:
        runner.build_from_file(str(mindir), context)
        watch = Watch(runner, args.requests)
        start = time.perf_counter()
        clients = [pool.submit(watch.client) for _ in range(CLIENTS)]
        version = 0
        while not all(client.done() for client in clients):
            version += 1
            due = start + version * EVERY_S
            time.sleep(max(0.0, due - time.perf_counter()))
            watch.change(version)
        wall = time.perf_counter() - start
        for client in clients:
            watch.counts.update(client.result())
    print(
        f"{args.requests} requests of {CLIENTS} threads, {version} updates of "
        f"{PIECES * HIDDEN**2 * 4 / 1e6:.1f} MB in {wall:.1f} s: "
        + ", ".join(f"{what} {number}" for what, number in watch.counts.items())
        + f"; versions seen {len(watch.seen)}"
    )


# --- memory ---------------------------------------------------------------------------------------


def of_process(mindir: str, threads: int, layers: int, hidden: int, updates: int) -> list[int]:
    """Own memory of this process: built, after the first update, and after all of them."""
    names = projections(layers)
    model = built(Path(mindir), threads, names)
    ids = np.zeros(model.get_inputs()[0].shape, np.int32)
    found = []
    for number in range(updates + 1):
        if number:
            model.update_weights([tensors(names, hidden, number)])
        model.predict([ids])
        if number in (0, 1, updates):
            machine.trim_heap()  # the caller's own arrays, which malloc would keep
            found.append(load.own_memory()[0])
    return found


def memory(folder: Path, args: argparse.Namespace) -> None:
    """Print what updates leave behind, measured in a process of its own."""
    mindir = networks.bert(folder / "memory.mindir", tokens=args.tokens[0], **args.sizes)
    numbers = map(str, (args.threads, args.layers, args.hidden, args.updates))
    command = [sys.executable, __file__, "--measure", str(mindir), *numbers]
    for _ in range(2):  # the first one compiles
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    first, second, last = json.loads(done.stdout.splitlines()[-1])
    print(
        f"own memory: {first / MIB:.1f} MiB built, {second / MIB:.1f} MiB after one update, "
        f"{last / MIB:.1f} MiB after {args.updates}"
    )


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = load.parser(__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2.0, help="of a burst of requests")
    parser.add_argument("--tokens", nargs="+", type=int, default=[128, 16])
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--threads", type=int, default=1, help="of a request")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--quick", action="store_true", help="tiny models, and one round")
    args = parser.parse_args()
    args.hidden, args.updates = 768, 20
    vocabulary = 30522
    if args.quick:
        args.rounds, args.seconds, args.requests, args.updates = 1, 0.05, 1000, 3
        args.tokens, args.layers, args.hidden, vocabulary = [16], 1, 48, 100
    args.sizes = {"layers": args.layers, "hidden": args.hidden, "vocabulary": vocabulary}
    return args


def main() -> None:
    """Measure and print."""
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(of_process(sys.argv[2], *map(int, sys.argv[3:]))))
        return
    args = arguments()
    rows: Rows = []
    with load.scratch() as folder:
        if "steady" in args.parts:
            for tokens in args.tokens:
                rows += steady(folder, args, tokens)
        if "update" in args.parts:
            rows += update(folder, args)
        if "versions" in args.parts:
            versions(folder, args)
        if "memory" in args.parts:
            memory(folder, args)
    table = record.Table("", "median", "quartiles", "target")
    for row in rows:
        table.add(*row)
    record.write(args.json, {"updates": table})


if __name__ == "__main__":
    main()
