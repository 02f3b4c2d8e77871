"""What the pool costs on a card: clients that send single rows, against the card's full batches.

Run: python benchmarks/card_pool.py [--clients 16 64 256] [--workers 2] [--ms 2.7] [--seconds 3]
     [--json FILE] [--quick]

The card is made up: it takes --ms for 64 rows and half of that for 32, one batch after the other,
without the interpreter's lock; batches are filled up to powers of two, and streams share the card.
So what is missing at 100 % is padding and Python: the queue, the batches, and waking the clients.
Target: 85 % on a machine with more than 2 cores.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Sequence
from typing import Any

import load
import numpy as np
import record

from mindspore_lite.core import cores
from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.engines.base import SessionInfo, Stop
from mindspore_lite.serving import feeds
from mindspore_lite.serving.call import Call
from mindspore_lite.serving.layout import card_layout
from mindspore_lite.serving.pool import Pool
from mindspore_lite.serving.scheduler import Batching, WorkerPlace
from mindspore_lite.serving.thread_widths import WidthOption

ROWS = 64  # of a full batch
BUCKETS = (1, 2, 4, 8, 16, 32, 64)
INPUTS = (TensorInfo("x", np.dtype(np.float32), (-1, 16)),)
OUTPUTS = (TensorInfo("y", np.dtype(np.float32), (-1, 1000)),)


class Card:
    """What computes, one batch after the other."""

    def __init__(self, seconds: float) -> None:
        self._row_s = seconds / ROWS
        self._lock = threading.Lock()
        self._free_s = 0.0  # when it has done all that was asked for

    def compute(self, rows: int) -> np.ndarray:
        """The outputs of a batch, when its time has passed."""
        with self._lock:
            now_s = time.perf_counter()
            padded = next(size for size in BUCKETS if size >= rows)
            self._free_s = end_s = max(now_s, self._free_s) + self._row_s * padded
        time.sleep(end_s - now_s)
        return np.zeros((rows, 1000), np.float32)


class Stream:
    """A session of the card; see CardSession."""

    info = SessionInfo(INPUTS, OUTPUTS, mapped=True, device="cuda:0")

    def __init__(self, card: Card) -> None:
        self._card = card

    def run(self, inputs: Sequence[Any], stop: Stop | None = None) -> list[Any]:
        """One request."""
        return [self._card.compute(len(inputs[0]))]

    def run_joined(
        self, requests: Sequence[Sequence[Any]], stop: Stop | None = None
    ) -> list[list[Any]]:
        """Several of them."""
        (whole,) = self.run([np.concatenate([inputs[0] for inputs in requests])])
        parts = np.split(whole, np.cumsum([len(inputs[0]) for inputs in requests])[:-1])
        return [[part] for part in parts]

    def skeleton(self) -> bytes:
        """Nothing."""
        return b""

    def close(self) -> None:
        """Nothing to let go of."""


def measure(clients: int, args: argparse.Namespace) -> list[str]:
    """Print one number of clients; returns the row of it."""
    card = Card(args.ms / 1e3)
    devices = ("gpu:0",) * args.workers
    places = [
        WorkerPlace(at, (WidthOption(args.workers, Stream(card)),), card=device)
        for at, device in enumerate(devices)
    ]
    plan = card_layout(cores.usable(), devices)
    pool = Pool(places, plan, batching=Batching(ROWS, buckets=BUCKETS))
    row = np.ones((1, 16), np.float32)

    def predict() -> object:
        """What ModelParallelRunner.predict does."""
        given = feeds.arrays(INPUTS, [row], any_size=True)
        return feeds.tensors(OUTPUTS, pool.run(Call(given)), None)

    burst = load.closed_loop(predict, clients, args.seconds)
    found = pool.statistics()
    pool.close(None)
    most = ROWS / (args.ms / 1e3)
    share = burst.per_second / most
    p50, p99 = np.percentile(burst.latencies_s, (50, 99)) * 1e3
    rows = sum(size * runs for size, runs in found.batches.items()) / sum(found.batches.values())
    print(
        f"{clients} clients: {burst.per_second:.0f} rows/s, {share:.0%} of "
        f"the card's {most:.0f}; {rows:.1f} rows a batch; p50 {p50:.1f} ms, p99 {p99:.1f} ms"
    )
    return [str(clients), f"{share * 100:.0f} %", f"{rows:.0f}", f"{p50:.1f} ms", f"{p99:.1f} ms"]


def main() -> None:
    """Measure and print."""
    parser = load.parser(__doc__)
    parser.add_argument("--clients", nargs="+", type=int, default=[16, 64, 256])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--ms", type=float, default=2.7, help="of a batch of 64 rows")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--quick", action="store_true", help="one tiny burst")
    args = parser.parse_args()
    if args.quick:
        args.clients, args.seconds = [4], 0.05
    table = record.Table("clients", "rows/s of the card's", "rows a batch", "p50", "p99")
    for clients in args.clients:
        table.add(*measure(clients, args))
    record.write(args.json, {"clients": table}, packages=())


if __name__ == "__main__":
    main()
