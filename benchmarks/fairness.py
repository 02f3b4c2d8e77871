"""What a quiet model suffers next to a flooded one on the same server, with and without shares.

Run: python benchmarks/fairness.py [--rounds 5] [--seconds 5] [--json FILE] [--quick]

Two servers with the same two models, in processes of their own: one shares the cores among the
models, as servers do, in the other each model takes what it can get. A client asks the quiet model
20 times a second, whatever becomes of its requests (an open loop: a late answer delays nothing),
alone and next to clients that flood the other model. Of both servers the throughput of the flooded
model alone is measured, too: what the arbiter costs. Sides take turns.
"""

from __future__ import annotations

import socket
import statistics
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import load
import numpy as np
import onnx
import record
from onnx import TensorProto, helper, numpy_helper
from server import process

RATE = 20.0  # requests a second to the quiet model
FLOOD = 8  # clients of the other
SIZES = {"quiet": (512, 6), "flooded": (1024, 12)}  # of the matrices, and their number
FORGOTTEN_S = 1.5  # after which the quiet model does not count any more
KINDS = {"shares": "on", "none": "off"}
HEADER = "POST /v2/models/{}/infer HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n{}\r\n"


def network(path: Path, size: int, count: int) -> None:
    """A chain of matrix products, of one row block."""
    rng = np.random.default_rng(1)
    weights = [rng.standard_normal((size, size)).astype(np.float32) / 16 for _ in range(count)]
    names = [f"h{at}" for at in range(count)] + ["y"]
    names[0] = "x"
    nodes = [
        helper.make_node("MatMul", [names[at], f"w{at}"], [names[at + 1]]) for at in range(count)
    ]
    shape = [64, size]
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(array, f"w{at}") for at, array in enumerate(weights)],
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)


def serve(kind: str, folder: str) -> None:
    """A server of both models, which prints its port."""
    import mindspore_lite as mslite
    from mindspore_lite.server import isolation
    from mindspore_lite.serving.pooled import PooledService

    if kind == "none":

        def unshared(*given: Any, share: float, **more: Any) -> PooledService:
            return PooledService(*given, **more)

        isolation.PooledService = unshared  # type: ignore[misc, assignment]
    models = {name: Path(folder, f"{name}.onnx") for name in SIZES}
    with mslite.Server(models, http_port=0, grpc=False) as server:
        print(server.http_port, flush=True)
        threading.Event().wait()


class Client:
    """A connection that sends one request again and again."""

    def __init__(self, port: int, name: str) -> None:
        data = np.ones((64, SIZES[name][0]), np.float32).tobytes()
        length = "inference-header-content-length: 0\r\n"
        self._request = HEADER.format(name, len(data), length).encode() + data
        self._sock = socket.create_connection(("127.0.0.1", port))
        self._file = self._sock.makefile("rb")

    def ask(self) -> None:
        """Send it, and read the answer."""
        self._sock.sendall(self._request)
        line = self._file.readline()
        if b" 200 " not in line:
            raise SystemExit(f"the server answered {line!r}")
        length = 0
        while (line := self._file.readline()) != b"\r\n":
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        self._file.read(length)

    def close(self) -> None:
        """Hang up."""
        self._file.close()
        self._sock.close()


def open_loop(port: int, seconds: float) -> list[float]:
    """Latencies of the quiet model, each from when its request should have been sent."""
    count = max(4, round(RATE * seconds))
    latencies = [0.0] * count
    start = time.perf_counter() + 0.01

    def ask(first: int, step: int) -> None:
        client = Client(port, "quiet")
        for number in range(first, count, step):
            due = start + number / RATE
            time.sleep(max(0.0, due - time.perf_counter()))
            client.ask()
            latencies[number] = time.perf_counter() - due
        client.close()

    threads = [threading.Thread(target=ask, args=(at, 4)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return latencies


class Flood:
    """Clients of the flooded model, in a process of their own."""

    def __init__(self, port: int) -> None:
        command = [sys.executable, __file__, "--flood", str(port)]
        self._process = process(*command)
        self._child, _ = self._process.__enter__()

    def stop(self) -> float:
        """End it; how many requests were answered a second."""
        answer, _ = self._child.communicate("\n")
        self._process.__exit__(None, None, None)
        return float(answer)


def flood(port: int) -> None:
    """Ask until a line comes; then print how many were answered a second."""
    over, counts = threading.Event(), [0] * FLOOD

    def ask(number: int) -> None:
        client = Client(port, "flooded")
        while not over.is_set():
            client.ask()
            counts[number] += 1
        client.close()

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(FLOOD)]
    for thread in threads:
        thread.start()
    while sum(counts) < FLOOD:
        time.sleep(0.01)
    before, start = sum(counts), time.perf_counter()
    print(1, flush=True)
    sys.stdin.readline()
    rate = (sum(counts) - before) / (time.perf_counter() - start)
    over.set()
    for thread in threads:
        thread.join()
    print(rate)


class Figures:
    """What was measured of one server."""

    def __init__(self) -> None:
        self.alone: list[list[float]] = []  # latencies by round
        self.next_to: list[list[float]] = []
        self.flooded: list[float] = []  # requests a second, alone
        self.squeezed: list[float] = []  # the same next to the quiet one

    def measure(self, port: int, seconds: float) -> None:
        """One round."""
        self.alone.append(open_loop(port, seconds))
        time.sleep(FORGOTTEN_S)
        found = Flood(port)
        time.sleep(seconds)
        self.flooded.append(found.stop())
        found = Flood(port)
        self.next_to.append(open_loop(port, seconds))
        self.squeezed.append(found.stop())

    def p99s_ms(self, latencies: list[list[float]]) -> list[float]:
        """Of each round."""
        return [float(np.percentile(one, 99)) * 1e3 for one in latencies]

    @property
    def ratios(self) -> list[float]:
        """p99 next to the flooded model by p99 alone, of each round."""
        pairs = zip(self.p99s_ms(self.next_to), self.p99s_ms(self.alone), strict=True)
        return [busy / alone for busy, alone in pairs]


def at(part: int, latencies: list[list[float]]) -> float:
    """A percentile over all rounds, in ms."""
    return float(np.percentile([one for found in latencies for one in found], part)) * 1e3


def shown(figures: dict[str, Figures]) -> dict[str, record.Table]:
    """Print what was measured; the table of it."""
    table = record.Table(
        "shares", "alone, ms", "next to the flooded one, ms", "p99 ratio, median of rounds",
        "flooded alone, requests/s", "next to the quiet one",
    )  # fmt: skip
    for kind, found in figures.items():
        cells = (
            f"p50 {at(50, found.alone):.1f}, p99 {at(99, found.alone):.1f}",
            f"p50 {at(50, found.next_to):.1f}, p99 {at(99, found.next_to):.1f}",
            f"{statistics.median(found.ratios):.2f}",
            f"{statistics.median(found.flooded):.0f}",
            f"{statistics.median(found.squeezed):.0f}",
        )
        table.add(KINDS[kind], *cells)
        print(
            f"shares {KINDS[kind]}: the quiet model alone: {cells[0]} ms; next to the flooded one: "
            f"{cells[1]} ms; p99 ratio {cells[2]} (rounds {_rounded(found.ratios)}); flooded: "
            f"{cells[3]}/s alone, {cells[4]}/s next to the quiet one"
        )
    pairs = zip(figures["shares"].flooded, figures["none"].flooded, strict=True)
    costs = [on / off for on, off in pairs]
    print(
        f"flooded model alone, shares on / off: throughput {statistics.median(costs):.3f} "
        f"(rounds {_rounded(costs)})"
    )
    return {"quiet": table}


def _rounded(values: Sequence[float]) -> list[float]:
    return [round(value, 2) for value in values]


def main() -> None:
    """Measure and print."""
    if sys.argv[1:2] == ["--serve"]:
        serve(*sys.argv[2:])
    if sys.argv[1:2] == ["--flood"]:
        flood(int(sys.argv[2]))
        return
    parser = load.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0, help="of one burst of one side")
    parser.add_argument("--quick", action="store_true", help="one tiny burst")
    args = parser.parse_args()
    if args.quick:
        args.rounds, args.seconds = 1, 0.3
    figures = {kind: Figures() for kind in KINDS}
    with load.scratch() as folder, ExitStack() as stack:
        for name, (size, count) in SIZES.items():
            network(folder / f"{name}.onnx", size, count)
        ports = {}
        for kind in KINDS:
            command = (sys.executable, __file__, "--serve", kind, str(folder))
            _, ports[kind] = stack.enter_context(process(*command))
        for _ in range(args.rounds):
            for kind, found in figures.items():
                found.measure(ports[kind], args.seconds)
    record.write(args.json, shown(figures))


if __name__ == "__main__":
    main()
