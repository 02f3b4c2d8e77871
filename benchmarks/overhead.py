"""What Model.predict costs over a bare ONNX Runtime session, side by side in one run.

Run: python benchmarks/overhead.py [--rounds 15] [--json FILE] [--quick]

Targets: one-op model at most 15 us more per call; MobileNetV2 at 1 and 2 threads at most 1.02 times
the bare session's time. Both sides get the same arrays and the same thread count, and alternate in
short rounds; printed are medians over rounds with the spread between quartiles.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import load
import networks
import numpy as np
import onnxruntime as ort
import record

import mindspore_lite as mslite


def seconds_per_call(call: Callable[[], object], count: int) -> float:
    """Median time of one call among count."""
    times = []
    for _ in range(count):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


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


def measure(folder: Path, net: str, threads: int, rounds: int, count: int) -> list[str]:
    """Print what our side costs over the bare session, for one network; returns the row of it."""
    mindir = getattr(networks, net)(folder / f"{net}.mindir")
    onnx = networks.equivalent_onnx(mindir, folder / f"{net}.onnx")
    model, session, feed = sides(mindir, onnx, threads)
    arrays = list(feed.values())
    calls = {"ours": lambda: model.predict(arrays), "bare": lambda: session.run(None, feed)}
    found = load.interleaved(
        {name: partial(seconds_per_call, call, count) for name, call in calls.items()}, rounds
    )
    if net == "one_op":
        pairs = zip(found["ours"], found["bare"], strict=True)
        extra = load.spread([(ours - bare) * 1e6 for ours, bare in pairs])
        print(f"one op, predict minus bare run in us: {extra}")
        what = "one op, `Model.predict` minus bare `InferenceSession.run`"
        return [what, f"{extra.middle:.1f} µs", extra.quartiles(1), "at most 15 µs"]
    times = load.ratio(found["ours"], found["bare"])
    print(f"MobileNetV2, {threads} thread(s), predict / bare run: {times}")
    what = f"MobileNetV2, {threads} thread{'s'[: threads > 1]}, `predict` / bare run"
    return [what, f"{times.middle:.3f}", times.quartiles(3), "at most 1.02"]


def main() -> None:
    """Measure and print."""
    parser = load.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--quick", action="store_true", help="one round of few calls")
    args = parser.parse_args()
    counts = {"one_op": 20000, "mobilenet_v2": 40}
    if args.quick:
        counts, args.rounds = dict.fromkeys(counts, 2), 1
    table = record.Table("", "median", "quartiles", "target")
    with load.scratch() as folder:
        for net, threads in [("one_op", 1), ("mobilenet_v2", 1), ("mobilenet_v2", 2)]:
            table.add(*measure(folder, net, threads, args.rounds, counts[net]))
    record.write(args.json, {"calls": table})


if __name__ == "__main__":
    main()
