"""What the benchmarks of other languages share: a program in the language against one in Python.

Run: python benchmarks/clients.py MODEL

Both have a ModelParallelRunner, and answer every line "CLIENTS SECONDS" on stdin by one on stdout:
requests per second of so many threads, and the median time of a request in microseconds. Run as a
program, this file is the one in Python.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import load
import networks
import numpy as np
import record

import mindspore_lite as mslite

HERE = Path(__file__).parent
MSLITE = [sys.executable, "-P", "-m", "mindspore_lite"]


class Client:
    """A program that makes a burst of requests for every line it is sent."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def burst(self, clients: int, seconds: float) -> tuple[float, float]:
        """(requests per second, median microseconds)."""
        assert self._process.stdin is not None and self._process.stdout is not None
        print(clients, seconds, file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._process.args!r} ended; its words are above")
        rate, median = line.split()
        return float(rate), float(median)


@contextmanager
def running(command: list[str]) -> Iterator[Client]:
    """A client program, until its stdin closes."""
    root = str(HERE.parent)
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "MSLITE_PYTHON": sys.executable, "PYTHONPATH": path}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment) as process:
        yield Client(process)


def python_client(path: str) -> None:
    """The Python side."""
    with mslite.ModelParallelRunner() as runner:
        runner.build_from_file(path, mslite.Context())
        arrays = [np.ones(tensor.shape, np.float32) for tensor in runner.get_inputs()]
        for line in sys.stdin:
            clients, seconds = line.split()
            burst = load.closed_loop(lambda: runner.predict(arrays), int(clients), float(seconds))
            median_us = float(np.median(burst.latencies_s)) * 1e6
            print(burst.per_second, median_us, flush=True)


def compare(
    description: str | None,
    language: str,
    command: str,
    compiled: Callable[[Path, Path], list[str]],
    most_us: int,
) -> None:
    """Measure and print.

    Args:
        description: Of the benchmark, for --help.
        language: Its name.
        command: What `mslite sdk` calls it.
        compiled: Makes the program, of a folder and an SDK; returns how to run it on a model.
        most_us: The target of a call of one op.
    """
    parser = load.parser(description)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=3.0, help="of one burst of one side")
    parser.add_argument("--quick", action="store_true", help="one tiny burst")
    parser.add_argument("--sdk", type=Path, help=f"of `mslite sdk {command}`; else it is made")
    args = parser.parse_args()
    if args.quick:
        args.rounds, args.seconds = 1, 0.02
    table = record.Table("", f"{language} / Python", "quartiles", "median call", "target")
    with load.scratch() as folder:
        sdk = args.sdk or folder / "sdk"
        if args.sdk is None:
            make = [*MSLITE, "sdk", command, str(sdk)]
            subprocess.run(make, stdout=subprocess.DEVNULL, check=True)
        program = compiled(folder, sdk)
        for label, network, clients, target in (
            ("MobileNetV2-shaped", networks.mobilenet_v2, 4, "at least 0.95"),
            ("one op", networks.one_op, 1, f"at most {most_us} us"),
        ):
            model = str(network(folder / "model.mindir"))
            python = [sys.executable, __file__, model]
            with running([*program, model]) as ours, running(python) as theirs:
                bursts = {
                    name: partial(side.burst, clients, args.seconds)
                    for name, side in ((language, ours), ("Python", theirs))
                }
                found = load.interleaved(bursts, args.rounds)
            what = f"{label}, {clients} thread{'s'[: clients > 1]}, requests per second"
            cells = compared(f"{label}, {clients} clients", language, found)
            table.add(what, *cells, target)
    record.write(args.json, {"calls": table})


def compared(label: str, language: str, found: dict[str, list[tuple[float, float]]]) -> list[str]:
    """Print what the bursts of both sides say; returns it as cells."""
    rates = {name: [rate for rate, _ in bursts] for name, bursts in found.items()}
    median = {name: np.median([us for _, us in bursts]) for name, bursts in found.items()}
    ratio = load.ratio(rates[language], rates["Python"])
    print(
        f"{label}: {language} / Python {ratio}, "
        f"{load.spread(rates[language]).middle:.0f} requests/s; median call "
        f"{median[language]:.0f} us against {median['Python']:.0f} us"
    )
    calls = " against ".join(duration(median[side]) for side in (language, "Python"))
    return [f"{ratio.middle:.3f}", ratio.quartiles(3), calls]


def duration(us: float) -> str:
    """In the unit in which it is read best."""
    return f"{us / 1e3:.1f} ms" if us >= 1000 else f"{us:.0f} us"


if __name__ == "__main__":
    python_client(sys.argv[1])
