"""What a C++ program gets of the runtime, against a Python program with the same runner.

Run: python benchmarks/cpp.py [--rounds 9] [--seconds 3] [--sdk DIR] [--quick]

Both sides are processes of their own, and take turns: a C++ program that was compiled against what
`mslite sdk cpp` makes, whose models run in its worker process, and a Python program with a
ModelParallelRunner inside. Throughput: a MobileNetV2-shaped network, 4 client threads. Calls: a
network that adds two vectors of 16, one client.

Targets: throughput at least 0.95 of the Python runner's; a call at most 120 us in the median.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import load
import networks
import numpy as np

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
    """The Python side: as cpp_client.cc, in Python."""
    with mslite.ModelParallelRunner() as runner:
        runner.build_from_file(path, mslite.Context())
        arrays = [np.ones(tensor.shape, np.float32) for tensor in runner.get_inputs()]
        for line in sys.stdin:
            clients, seconds = line.split()
            burst = load.closed_loop(lambda: runner.predict(arrays), int(clients), float(seconds))
            median_us = float(np.median(burst.latencies_s)) * 1e6
            print(burst.per_second, median_us, flush=True)


def compiled(folder: Path, sdk: Path | None) -> Path:
    """The C++ program, as a user would compile it."""
    if sdk is None:
        sdk = folder / "sdk"
        subprocess.run([*MSLITE, "sdk", "cpp", str(sdk)], stdout=subprocess.DEVNULL, check=True)
    runtime, program = sdk / "runtime", folder / "cpp_client"
    libraries = [f"-L{runtime}/lib", f"-Wl,-rpath,{runtime}/lib", "-lmindspore-lite", "-pthread"]
    source = [str(HERE / "cpp_client.cc"), f"-I{runtime}", "-std=c++14", "-O2"]
    subprocess.run([os.environ.get("CXX", "c++"), *source, "-o", program, *libraries], check=True)
    return program


def main() -> None:
    """Measure and print."""
    parser = load.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=3.0, help="of one burst of one side")
    parser.add_argument("--quick", action="store_true", help="one tiny burst")
    parser.add_argument("--sdk", type=Path, help="what `mslite sdk cpp` made; else it is made")
    parser.add_argument("--python-client", metavar="MODEL", help="be the Python side")
    args = parser.parse_args()
    if args.python_client:
        python_client(args.python_client)
        return
    if args.quick:
        args.rounds, args.seconds = 1, 0.02
    with load.scratch() as folder:
        program = compiled(folder, args.sdk)
        for label, network, clients in (
            ("MobileNetV2-shaped", networks.mobilenet_v2, 4),
            ("one op", networks.one_op, 1),
        ):
            model = str(network(folder / "model.mindir"))
            python = [sys.executable, str(HERE / "cpp.py"), "--python-client", model]
            with running([str(program), model]) as ours, running(python) as theirs:
                sides = {"C++": ours, "Python": theirs}
                found = load.interleaved(
                    {
                        name: partial(side.burst, clients, args.seconds)
                        for name, side in sides.items()
                    },
                    args.rounds,
                )
            rates = {name: [rate for rate, _ in bursts] for name, bursts in found.items()}
            median = {name: np.median([us for _, us in bursts]) for name, bursts in found.items()}
            ratio = load.ratio(rates["C++"], rates["Python"])
            print(
                f"{label}, {clients} clients: C++ / Python {ratio}, "
                f"{load.spread(rates['C++']).middle:.0f} requests/s; median call "
                f"{median['C++']:.0f} us against {median['Python']:.0f} us"
            )


if __name__ == "__main__":
    main()
