"""What a scrape of /metrics costs: how long it holds the event loop, and how long the text is.

Run: python benchmarks/metrics.py [--models 1 50] [--json FILE] [--quick]
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from record import Table, write

from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.server.core import Core
from mindspore_lite.server.meter import RequestTimes
from mindspore_lite.server.metrics import metrics_parts
from mindspore_lite.server.models import Models
from mindspore_lite.server.numbers import numbers
from mindspore_lite.serving.statistics import Occupancy
from mindspore_lite.serving.timing import Run, Timing
from mindspore_lite.settings.spec import settle

_REQUESTS = 200  # of each model before it is measured


class IdleService:
    """A service of four workers that computes nothing."""

    def __init__(self) -> None:
        self.spec = settle()
        self.inputs = self.outputs = (TensorInfo("x", np.dtype(np.float32), (-1, 2)),)
        self.is_up = True
        self.weights_version, self.file_bytes = 3, 1 << 20

    def warm_up_shapes(self) -> None:
        """None: it cannot run."""

    def statistics(self) -> Any:
        """Where it would run."""
        return SimpleNamespace(layout=SimpleNamespace(workers=4))

    def occupancy(self) -> Occupancy:
        """What workers might do."""
        return Occupancy(("idle", "computing", "gathering", "idle"), 3, 1000, 2)

    def close(self, drain_s: float | None) -> None:
        """Nothing is open."""


def served(count: int) -> Core:
    """So many models with some counts."""
    models: Any = Models()
    for number in range(count):
        model = models.load(f"model-{number}", "1", IdleService)
        for at in range(_REQUESTS):
            times = RequestTimes(1, 1)
            times.model, times.decoded_ns, times.timing = model, 2, Timing()
            times.timing.run = Run(3, 1000 * (at + 1), rows=1 + at % 8)
            times.received_ns = time.monotonic_ns() - 100_000 * (at + 1)
            model.meter.count(times)
    return Core(models)


def median_ms(act: Any, rounds: int) -> float:
    """Of several calls, after a few that warm up."""
    for _ in range(5):
        act()
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        act()
        found.append((time.perf_counter() - start) * 1e3)
    return statistics.median(found)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, nargs="+", default=[1, 50])
    parser.add_argument("--quick", action="store_true", help="a few rounds")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    rounds = 20 if options.quick else 400
    table = Table("models", "text ms", "OpenMetrics ms", "numbers ms", "KiB")
    for count in options.models:
        core = served(count)
        row = (
            str(count),
            f"{median_ms(lambda core=core: metrics_parts(core), rounds):.2f}",
            f"{median_ms(lambda core=core: metrics_parts(core, openmetrics=True), rounds):.2f}",
            f"{median_ms(lambda core=core: numbers(core), rounds):.2f}",
            f"{sum(map(len, metrics_parts(core))) / 1024:.0f}",
        )
        table.add(*row)
        print("  ".join(f"{name} {cell}" for name, cell in zip(table.head, row, strict=True)))
    write(options.json, {"scrape": table})


if __name__ == "__main__":
    main()
