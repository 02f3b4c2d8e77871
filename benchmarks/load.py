"""What the benchmarks share: sides of a comparison go in, interleaved rounds and ratios come out.

A closed loop is a number of clients, each a thread that sends its next request when the last one is
answered. A burst is one such loop of some seconds; a round is one burst of every side.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

SETTLE_S = 0.1  # between bursts: ONNX Runtime's threads were seen to spin on for 0.05 s

T = TypeVar("T")


@dataclass(frozen=True)
class Burst:
    """One burst of one side: the latency of every request, and how long it all took."""

    latencies_s: list[float]
    wall_s: float

    @property
    def per_second(self) -> float:
        """Requests answered per second."""
        return len(self.latencies_s) / self.wall_s


class Window:
    """How long a burst goes on: some seconds, but at least two requests for every client.

    Where all clients are served at once, 64 of them get their first answers together and late.
    """

    def __init__(self, clients: int, seconds: float) -> None:
        self._least = 2 * clients
        self._started = itertools.count()
        self.start = time.perf_counter()
        self._end = self.start + seconds

    def is_open(self) -> bool:
        """Whether another request may start; callers that got True start it."""
        return next(self._started) < self._least or time.perf_counter() < self._end


def closed_loop(call: Callable[[], object], clients: int, seconds: float) -> Burst:
    """One burst; the clock stops when the last request is answered."""
    latencies: list[list[float]] = [[] for _ in range(clients)]

    def client(number: int, window: Window) -> None:
        mine = latencies[number]
        while window.is_open():
            start = time.perf_counter()
            call()
            mine.append(time.perf_counter() - start)

    wall = _timed_threads(client, clients, seconds)
    return Burst([latency for mine in latencies for latency in mine], wall)


def calls_per_second(
    call: Callable[[], object], clients: int, seconds: float, chunk: int = 100
) -> float:
    """The rate of calls so short that looking at the clock for each would count as well."""
    done = [0] * clients

    def client(number: int, window: Window) -> None:
        while window.is_open():
            for _ in itertools.repeat(None, chunk):
                call()
            done[number] += chunk

    wall = _timed_threads(client, clients, seconds)
    return sum(done) / wall


def _timed_threads(client: Callable[[int, Window], None], clients: int, seconds: float) -> float:
    """Run the clients as threads; returns the seconds from their start to the last one's end."""
    windows: list[Window] = []
    gate = threading.Barrier(clients, action=lambda: windows.append(Window(clients, seconds)))

    def body(number: int) -> float:
        gate.wait()
        client(number, windows[0])
        return time.perf_counter()

    with ThreadPoolExecutor(clients) as pool:
        ends = list(pool.map(body, range(clients)))
    return max(ends) - windows[0].start


def interleaved(sides: Mapping[str, Callable[[], T]], rounds: int) -> dict[str, list[T]]:
    """What each side measured in each round; each round another side begins.

    One more round than asked for is run: the first warms up and is dropped.
    """
    results: dict[str, list[T]] = {name: [] for name in sides}
    names = list(sides)
    for number in range(rounds + 1):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            time.sleep(SETTLE_S)
            results[name].append(sides[name]())
    return {name: found[1:] for name, found in results.items()}


@dataclass(frozen=True)
class Spread:
    """The median of some numbers, and their quartiles."""

    low: float
    middle: float
    high: float

    def __str__(self) -> str:
        return f"{self.middle:.3f} (quartiles {self.low:.3f} to {self.high:.3f})"

    def quartiles(self, digits: int = 2) -> str:
        """As a cell of a table."""
        return f"{self.low:.{digits}f} to {self.high:.{digits}f}"


def spread(values: Sequence[float]) -> Spread:
    """Median and quartiles; of a single number, that number."""
    if len(values) == 1:
        return Spread(values[0], values[0], values[0])
    return Spread(*statistics.quantiles(values, n=4))


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """How the two compare, round by round."""
    return spread([a / b for a, b in zip(ours, theirs, strict=True)])


def p99_ms(bursts: Sequence[Burst]) -> float:
    """Of all requests of a side."""
    return float(np.percentile([s for burst in bursts for s in burst.latencies_s], 99)) * 1e3


def own_memory() -> tuple[int, int]:
    """Bytes that this process wrote, and bytes of files that it has mapped.

    "Private" does not tell them apart: nobody else maps our weights, and a page that is mapped
    twice by one process counts as shared.
    """
    found = {}
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]:
        name, size, _ = line.split()
        found[name.rstrip(":")] = int(size) * 1024
    return found["Anonymous"], found["Pss_File"]


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for models that goes away, the compile cache in it as well."""
    with tempfile.TemporaryDirectory() as name:
        os.environ["MSLITE_CACHE_DIR"] = f"{name}/cache"
        yield Path(name)


def parser(description: str | None) -> argparse.ArgumentParser:
    """A command line whose --help is the script's docstring, with what all benchmarks take."""
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--json", type=Path, metavar="FILE", help="write the tables there, too")
    return made
