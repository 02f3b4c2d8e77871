"""What the runner's queue costs: predict of a one-op model against the same threads on a session.

Run: python benchmarks/queue_overhead.py [--clients 1 8] [--rounds 9] [--seconds 1] [--json FILE]
     [--quick]

The network adds two vectors of 16, so nearly all of a call is what surrounds it. The two sides take
turns in every round. Target: at 8 clients at least 0.60 of the bare session's rate.
"""

from __future__ import annotations

from functools import partial

import load
import networks
import numpy as np
import onnxruntime as ort
import record

import mindspore_lite as mslite


def main() -> None:
    """Measure and print."""
    parser = load.parser(__doc__)
    parser.add_argument("--clients", nargs="+", type=int, default=[1, 8])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=1.0, help="of one burst of one side")
    parser.add_argument("--quick", action="store_true", help="one tiny burst")
    args = parser.parse_args()
    if args.quick:
        args.clients, args.rounds, args.seconds = [2], 1, 0.02
    table = record.Table("clients", "median", "quartiles", "target")
    with load.scratch() as folder, mslite.ModelParallelRunner() as runner:
        mindir = networks.one_op(folder / "one_op.mindir")
        runner.build_from_file(str(mindir), mslite.Context())
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        onnx = networks.equivalent_onnx(mindir, folder / "one_op.onnx")
        session = ort.InferenceSession(onnx, options, providers=["CPUExecutionProvider"])
        feed = {i.name: np.ones(i.shape, np.float32) for i in session.get_inputs()}
        arrays = list(feed.values())
        calls = {"runner": lambda: runner.predict(arrays), "bare": lambda: session.run(None, feed)}
        for clients in args.clients:
            rates = load.interleaved(
                {
                    name: partial(load.calls_per_second, call, clients, args.seconds)
                    for name, call in calls.items()
                },
                args.rounds,
            )
            kept = load.ratio(rates["runner"], rates["bare"])
            middle = {name: load.spread(found).middle for name, found in rates.items()}
            print(
                f"{clients} clients: runner / bare session {kept}, "
                f"{middle['runner']:.0f} against {middle['bare']:.0f} calls/s"
            )
            target = "at least 0.60" if clients == 8 else ""
            table.add(str(clients), f"{kept.middle:.2f}", kept.quartiles(), target)
    record.write(args.json, {"clients": table})


if __name__ == "__main__":
    main()
