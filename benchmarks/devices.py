"""What a worker process costs, against the usual Process and Pipe; what two devices bring.

Run: python benchmarks/devices.py [--rounds 9] [--seconds 1] [--cycles 1000] [--json FILE]
     [--quick]

Transfers: one input and one output of the same size, through the worker process of a one-device
MultiDeviceRunner and through a child that runs the same Model behind a multiprocessing.Pipe, which
pickles. Both sides compute the same one-op network, and take turns. Two devices: a batch of 2 of
a UNet-shaped network over two worker processes of half the cores each, against one process with
all of them. Cycles: a tiny model built and closed again and again in one worker.

Targets: 8 MB at least 3 times as fast as the Pipe; 1 KB at most 150 us in the median; two devices
at least 0.95 of the throughput of one process; no growth.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import runpy
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import growth
import load
import networks
import numpy as np
import record

import mindspore_lite as mslite
from mindspore_lite.remote.devices.process import WorkerProcess
from mindspore_lite.remote.wire.bodies import MODEL, Build

ROOT = Path(__file__).parents[1]


def child(pipe: Connection, path: str) -> None:
    """The usual way: a process with a Model that takes pickled arrays."""
    model = mslite.Model()
    model.build_from_file(path, mslite.ModelType.MINDIR)
    pipe.send("built")
    while (arrays := pipe.recv()) is not None:
        pipe.send([tensor.get_data_to_numpy() for tensor in model.predict(arrays)])


@contextmanager
def piped(path: Path) -> Iterator[Callable[[list[np.ndarray]], object]]:
    """Such a child, and how to call it."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=child, args=(theirs, str(path)))
    process.start()
    theirs.close()
    assert ours.recv() == "built"

    def call(arrays: list[np.ndarray]) -> object:
        ours.send(arrays)
        return ours.recv()

    yield call
    ours.send(None)
    process.join()


def median_us(call: Callable[[], object], seconds: float) -> float:
    """The median time of a call; at least three."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def transfers(folder: Path, rounds: int, seconds: float) -> record.Table:
    """Arrays there and back; returns the table."""
    table = record.Table("", "worker", "Pipe", "Pipe / worker", "quartiles", "target")
    for label, count, digits, target in (
        ("8 MB", 2 << 20, 1, "at least 3"),
        ("1 KB", 256, 2, "at most 150 us"),
    ):
        path = networks.relu(folder / f"relu{count}.mindir", count)
        arrays = [np.ones(count, np.float32)]
        context = mslite.Context()
        with mslite.MultiDeviceRunner() as runner, piped(path) as pipe:
            runner.build_from_file(str(path), context)
            sides = {
                "worker": partial(median_us, partial(runner.predict, arrays), seconds),
                "pipe": partial(median_us, partial(pipe, arrays), seconds),
            }
            times = load.interleaved(sides, rounds)
        middle = {name: load.spread(found).middle for name, found in times.items()}
        ratio = load.ratio(times["pipe"], times["worker"])
        worker, usual = f"{middle['worker']:.0f} us", f"{middle['pipe']:.0f} us"
        print(f"{label}: Pipe / worker {ratio}, round trip {worker} against {usual}")
        faster = [f"{ratio.middle:.{digits}f}", ratio.quartiles(digits)]
        table.add(label, worker, usual, *faster, target)
    return table


def two_devices(folder: Path, rounds: int, seconds: float) -> None:
    """A batch of two over two processes, against one process."""
    path = folder / "unet.mindir"
    make_model = runpy.run_path(str(ROOT / "examples/multi_device/make_model.py"))["make_model"]
    with redirect_stdout(io.StringIO()):  # the converter tells of its success
        make_model(path, open_batch=True)
    count = min(2, len(os.sched_getaffinity(0)))
    rng = np.random.default_rng(0)
    inputs = [
        rng.standard_normal((2, 4, 64, 64), np.float32),
        np.full(1, 50.0, np.float32),
        rng.standard_normal((2, 77, 1024), np.float32),
    ]
    context = mslite.Context()
    context.parallel.device_ids = list(range(count))
    one = mslite.Context()
    one.cpu.thread_num = len(os.sched_getaffinity(0))
    with mslite.MultiDeviceRunner() as runner, mslite.Model() as model:
        runner.build_from_file(str(path), context)
        model.build_from_file(str(path), mslite.ModelType.MINDIR, one)
        # the model's own tensors have open sizes: arrays are given as they are
        same = np.allclose(
            *(m.predict(inputs)[0].get_data_to_numpy() for m in (runner, model)), atol=1e-4
        )
        assert same, "the two sides do not agree"
        sides = {
            "devices": partial(load.closed_loop, lambda: runner.predict(inputs), 1, seconds),
            "process": partial(load.closed_loop, lambda: model.predict(inputs), 1, seconds),
        }
        bursts = load.interleaved(sides, rounds)
    rates = {name: [burst.per_second for burst in found] for name, found in bursts.items()}
    print(
        f"UNet-shaped, batch 2: {count} devices / one process of {one.cpu.thread_num} threads "
        f"{load.ratio(rates['devices'], rates['process'])}, "
        f"{load.spread(rates['devices']).middle:.1f} batches/s"
    )


def cycles(folder: Path, count: int) -> None:
    """Build and close, again and again."""
    build = Build(MODEL, 0, str(networks.one_op(folder / "one_op.mindir")))
    process = WorkerProcess(0, ())
    arrays = [np.ones(16, np.float32)] * 2
    try:
        cycle = partial(growth.build_and_close, process.session, build, arrays)
        found = growth.grown([process.pid, os.getpid()], cycle, count)
    finally:
        process.stop(10.0)
    for side, (first, last) in zip(("worker", "client"), found, strict=True):
        change = ", ".join(f"{name} {first[name]} -> {last[name]}" for name in first)
        print(f"{count} build/close cycles, {side}: {change}")


def main() -> None:
    """Measure and print."""
    parser = load.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=1.0, help="of one burst of one side")
    parser.add_argument("--cycles", type=int, default=1000)
    parser.add_argument("--quick", action="store_true", help="one tiny burst")
    args = parser.parse_args()
    if args.quick:
        args.rounds, args.seconds, args.cycles = 1, 0.02, 3
    with load.scratch() as folder:
        table = transfers(folder, args.rounds, args.seconds)
        two_devices(folder, args.rounds, args.seconds)
        cycles(folder, args.cycles)
    record.write(args.json, {"transfers": table})


if __name__ == "__main__":
    main()
