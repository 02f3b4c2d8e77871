"""One batch over several devices, a row for each: the flow of MindSpore Lite's multi-card example.

Run: python examples/multi_device/main.py

    --devices 0,1,2,3              on four devices: on the CPU, on a quarter of the cores each
    --target ascend                on Ascend devices; MSLITE_ASCEND=emulate does without a card
    --messages                     show what goes to the workers and comes back

With a model of your own, that takes one row: python examples/multi_device/main.py MODEL.mindir
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from make_model import make_model
from parallel_predict_utils import ParallelPredictUtils

TIMEOUT_S = 600.0  # a worker that hangs is an error then


def main() -> None:
    """Run the example as the command line says."""
    given = _parser().parse_args()
    if given.messages:
        logging.basicConfig(format="%(message)s")
        logging.getLogger("messages").setLevel(logging.DEBUG)
    if given.model:
        predict_result = predicted(given.model, given.devices, given.target)
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "unet.mindir"
            with contextlib.redirect_stdout(sys.stderr):  # the converter reports success, too
                make_model(path)
            predict_result = predicted(str(path), given.devices, given.target)
    if given.save:
        # the rows of all devices, one below the other: what one model would give for the batch
        joined = [np.concatenate(parts) for parts in zip(*predict_result, strict=True)]
        np.savez(given.save, *joined)
    print("=========== success ===========")


def predicted(model_path: str, device_ids: list[int], target: str) -> list[list[np.ndarray]]:
    """The outputs of each device, from a batch with a row for each."""
    parallel = ParallelPredictUtils(
        model_path, device_ids=device_ids, target=target, timeout_s=TIMEOUT_S
    )
    try:
        parallel.build_model()
        shapes = parallel.engines[0].input_shapes
        sample, timestep, encoder_hidden_states = batch(shapes, len(device_ids))
        # a slice, not an index: the part of a device still has the axis of the batch
        input_data_all = [
            [sample[i : i + 1], timestep, encoder_hidden_states[i : i + 1]]
            for i in range(len(device_ids))
        ]
        start = time.perf_counter()
        predict_result = parallel.run_predict(input_data_all)
        print("Total predict time = ", time.perf_counter() - start, flush=True)
    finally:
        parallel.finalize()
    return predict_result


def batch(shapes: Sequence[Sequence[int]], rows: int) -> list[np.ndarray]:
    """Made-up inputs: rows of random numbers, and one time step for all of them."""
    random = np.random.default_rng(7)
    return [
        random.standard_normal((rows, *others), np.float32) if others else np.float32([50.0])
        for _, *others in shapes
    ]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", nargs="?", help="a MindIR file; without it, one is made")
    parser.add_argument("--target", choices=["cpu", "ascend"], default="cpu")
    parser.add_argument(
        "--devices", type=_ids, default=[0, 1], metavar="0,1", help="their numbers (default: 0,1)"
    )
    parser.add_argument("--save", metavar="FILE.npz", help="write the joined outputs there")
    parser.add_argument("--messages", action="store_true", help="show messages, on stderr")
    return parser


def _ids(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


if __name__ == "__main__":
    main()
