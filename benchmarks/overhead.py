"""What Model.predict costs over a bare ONNX Runtime session, side by side in one run.

Run: python benchmarks/overhead.py [--rounds 15]

Targets: one-op model at most 15 us more per call; MobileNetV2 at 1 and 2 threads at most 1.02 times
the bare session's time. Both sides get the same arrays and the same thread count, and alternate in
short rounds; printed are medians over rounds with the spread between quartiles.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import networks
import numpy as np
import onnxruntime as ort

import mindspore_lite as mslite


def seconds_per_call(call: Callable[[], object], count: int) -> float:
    """Median time of one call among count."""
    times = []
    for _ in range(count):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def interleaved(
    ours: Callable[[], object], bare: Callable[[], object], rounds: int, count: int
) -> tuple[list[float], list[float]]:
    """Medians per round, the two taking turns at going first."""
    mine, theirs = [], []
    for number in range(rounds + 1):
        pairs = [(ours, mine), (bare, theirs)]
        for call, into in pairs if number % 2 else pairs[::-1]:
            into.append(seconds_per_call(call, count))
    return mine[1:], theirs[1:]  # the first round warms up


def sides(
    mindir: Path, onnx: Path, threads: int
) -> tuple[mslite.Model, ort.InferenceSession, dict[str, np.ndarray]]:
    """Our model, the bare session, and inputs for both."""
    context = mslite.Context()
    context.cpu.thread_num = threads
    model = mslite.Model()
    model.build_from_file(str(mindir), mslite.ModelType.MINDIR, context)
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(onnx, options, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(0)
    feed = {i.name: rng.random(i.shape, np.float32) for i in session.get_inputs()}
    ours = model.predict(list(feed.values()))[0].get_data_to_numpy()
    np.testing.assert_allclose(ours, session.run(None, feed)[0], rtol=1e-3, atol=1e-4)
    return model, session, feed


def report(name: str, values: list[float], unit: str) -> None:
    """Median and quartiles."""
    low, middle, high = statistics.quantiles(values, n=4)
    print(f"{name}: {middle:.3f} {unit} (quartiles {low:.3f} to {high:.3f})")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for net, threads in [("one_op", 1), ("mobilenet_v2", 1), ("mobilenet_v2", 2)]:
            mindir = getattr(networks, net)(folder / f"{net}.mindir")
            onnx = networks.equivalent_onnx(mindir, folder / f"{net}.onnx")
            model, session, feed = sides(mindir, onnx, threads)
            arrays = list(feed.values())
            mine, theirs = interleaved(
                lambda model=model, arrays=arrays: model.predict(arrays),
                lambda session=session, feed=feed: session.run(None, feed),
                rounds,
                20000 if net == "one_op" else 40,
            )
            if net == "one_op":
                extra = [(a - b) * 1e6 for a, b in zip(mine, theirs, strict=True)]
                report("one op, predict minus bare run", extra, "us")
            else:
                ratios = [a / b for a, b in zip(mine, theirs, strict=True)]
                report(f"MobileNetV2, {threads} thread(s), predict / bare run", ratios, "x")


if __name__ == "__main__":
    main()
