"""What serving over HTTP costs: CPU time of the server for each request, next to its peers.

Run: python benchmarks/server.py [--clients 4 16] [--rounds 5] [--seconds 2] [--json FILE] [--quick]

Without a model: our server, uvicorn and Granian (those that are installed) take the same bytes and
send the same answer. With MobileNetV2: our server against threads that call the runner in their own
process. Servers are processes of their own; CPU time is that of all their threads, counted by the
kernel. Load comes from this process: blocking sockets, one thread per client.
"""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import load
import networks
import numpy as np
import record

LENGTH = b"inference-header-content-length"
SIZES = {"602 KB": 150_528, "1 KB": 256}  # of floats in a request
TARGETS = {"602 KB": "at most 0.40", "1 KB": "at most 0.70"}
ANSWER = (
    b'{"model_name":"none","model_version":"1","outputs":[{"name":"y","datatype":"FP32","shape":'
    b'[1,1000],"parameters":{"binary_data_size":4000}}]}'
)
OUTPUT = np.zeros((1, 1000), np.float32)


# --- servers ---


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """What uvicorn and Granian serve: the whole body in, a binary answer out."""
    if scope["type"] != "http":
        return
    size, more = 0, True
    while more:
        message = await receive()
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    headers = [
        (b"content-type", b"application/octet-stream"),
        (LENGTH, b"%d" % len(ANSWER)),
        (b"content-length", b"%d" % (len(ANSWER) + OUTPUT.nbytes)),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": ANSWER + OUTPUT.tobytes()})


def serve_nothing() -> None:
    """Our server with a model that answers at once."""
    from mindspore_lite.core.tensor_info import TensorInfo
    from mindspore_lite.server.core import Core
    from mindspore_lite.server.http.port import HttpOptions, HttpPort
    from mindspore_lite.settings.spec import settle

    class Nothing:
        """A service that computes nothing."""

        spec = settle()
        is_up = True
        inputs = (TensorInfo("x", np.dtype(np.float32), (-1,)),)
        outputs = (TensorInfo("y", np.dtype(np.float32), (1, 1000)),)

        def warm_up_shapes(self) -> None:
            return None

        def statistics(self) -> Any:
            return SimpleNamespace(layout=SimpleNamespace(workers=1))

        def submit_or_run(self, call: Any, ended: Any) -> Any:
            ended([OUTPUT])
            return lambda: False

    core = Core()
    core.models.load("none", "1", Nothing)  # type: ignore[arg-type]
    print(HttpPort(core, HttpOptions(port=0)).start(), flush=True)
    threading.Event().wait()


def run_in_process(path: str, clients: int) -> None:
    """Threads that call the runner: waits for a line with seconds, prints count and CPU."""
    import mindspore_lite as mslite

    runner = mslite.ModelParallelRunner()
    runner.build_from_file(path, mslite.Context())
    image = np.zeros((1, 3, 224, 224), np.float32)
    print(0, flush=True)
    for line in sys.stdin:
        before = time.process_time()
        burst = load.closed_loop(lambda: runner.predict([image]), clients, float(line))
        used_s = time.process_time() - before
        p99 = float(np.percentile(burst.latencies_s, 99))
        print(len(burst.latencies_s), burst.wall_s, used_s, p99, flush=True)


@contextmanager
def process(*command: str, port: int = 0) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A server and its port, which it prints unless it was told which to use."""
    pipe = subprocess.PIPE
    child = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=Path(__file__).parent)
    try:
        assert child.stdout is not None
        if not port:
            port = int(child.stdout.readline().strip().rpartition(":")[2])
        else:
            _wait_for(port)
        yield child, port
    finally:
        child.terminate()
        child.communicate()


def _wait_for(port: int) -> None:
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"nothing listens on port {port}")


def free_port() -> int:
    """One that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        number: int = found.getsockname()[1]
        return number


def cpu_s(pid: int) -> float:
    """CPU time of a process and its children, by their clocks."""
    total = 0.0
    for number in [pid, *_children(pid)]:
        total += time.clock_gettime(((~number) << 3) | 2)
    return total


def _children(pid: int) -> list[int]:
    found = [
        int(child)
        for task in os.listdir(f"/proc/{pid}/task")
        for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split()
    ]
    return found + [deeper for child in found for deeper in _children(child)]


# --- load ---


def request(model: str, name: str, shape: list[int]) -> bytes:
    """A binary inference request."""
    body = np.zeros(shape, np.float32).tobytes()
    tensor = {"name": name, "datatype": "FP32", "shape": shape}
    tensor["parameters"] = {"binary_data_size": len(body)}  # type: ignore[assignment]
    text = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    head = (
        f"POST /v2/models/{model}/infer HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Length: {len(text) + len(body)}\r\n{LENGTH.decode()}: {len(text)}\r\n\r\n"
    )
    return head.encode() + text + body


def asker(port: int, data: bytes, opened: list[socket.socket]) -> Callable[[], None]:
    """Sends a request on the calling thread's own connection, and reads the answer."""
    local = threading.local()

    def ask() -> None:
        sock = getattr(local, "sock", None)
        if sock is None:
            sock = local.sock = socket.create_connection(("127.0.0.1", port))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            opened.append(sock)
        sock.sendall(data)
        answer = sock.recv(65536)
        while b"\r\n\r\n" not in answer:
            answer += sock.recv(65536)
        head, _, rest = answer.partition(b"\r\n\r\n")
        if b" 200 " not in head[:20]:
            raise SystemExit(f"the server failed: {answer[:200]!r}")
        missing = int(head.lower().partition(b"\r\ncontent-length:")[2].split()[0]) - len(rest)
        while missing > 0:
            missing -= len(sock.recv(missing))

    return ask


def burst(child: int, port: int, data: bytes, clients: int, seconds: float) -> list[float]:
    """Milliseconds of CPU per request, requests per second, p99 in ms."""
    opened: list[socket.socket] = []
    before = cpu_s(child)
    found = load.closed_loop(asker(port, data, opened), clients, seconds)
    used_s = cpu_s(child) - before
    for sock in opened:
        sock.close()
    p99 = float(np.percentile(found.latencies_s, 99)) * 1e3
    return [used_s / len(found.latencies_s) * 1e3, found.per_second, p99]


# --- what is measured ---


@contextmanager
def sides() -> Iterator[dict[str, tuple[int, int]]]:
    """The servers without a model that are installed: pid and port of each."""
    own, python = __file__, sys.executable
    commands: dict[str, Callable[[int], list[str]]] = {
        "uvicorn": lambda port: [
            "-m", "uvicorn", "--port", str(port), "--log-level", "critical", "--no-access-log",
            "--loop", "uvloop", "--http", "httptools", "server:app",
        ],
        "granian": lambda port: [
            "-m", "granian", "--interface", "asgi", "--port", str(port), "--workers", "1",
            "--no-ws", "--log-level", "critical", "server:app",
        ],
    }  # fmt: skip
    with process(python, own, "--serve") as (ours, port):
        found = {"mslite": (ours.pid, port)}
        with _others(python, commands, found):
            yield found


@contextmanager
def _others(
    python: str, commands: dict[str, Callable[[int], list[str]]], found: dict[str, tuple[int, int]]
) -> Iterator[None]:
    name = next(iter(commands), None)
    if name is None:
        yield
        return
    rest = {other: make for other, make in commands.items() if other != name}
    if importlib.util.find_spec(name) is None:
        with _others(python, rest, found):
            yield
        return
    port = free_port()
    with process(python, *commands[name](port), port=port) as (child, _):
        found[name] = (child.pid, port)
        with _others(python, rest, found):
            yield


def bare(args: Any) -> record.Table:
    """Servers without a model."""
    table = record.Table("request", "server", "CPU ms", "mslite / it", "requests/s", "target")
    with sides() as servers:
        for size, floats in SIZES.items():
            data = request("none", "x", [floats])
            results = load.interleaved(
                {
                    name: partial(burst, *server, data, 4, args.seconds)
                    for name, server in servers.items()
                },
                args.rounds,
            )
            ours = [found[0] for found in results["mslite"]]
            for name, found in results.items():
                cpu_ms = load.spread([one[0] for one in found]).middle
                rate = load.spread([one[1] for one in found]).middle
                part = load.ratio(ours, [one[0] for one in found])
                print(f"{size}, {name}: {cpu_ms:.3f} ms CPU, {rate:.0f}/s; mslite / it {part}")
                target = "" if name == "mslite" else TARGETS[size]
                table.add(size, name, f"{cpu_ms:.3f}", f"{part.middle:.2f}", f"{rate:.0f}", target)
    return table


def with_model(args: Any, path: Path) -> record.Table:
    """MobileNetV2 over HTTP against the runner in its own process."""
    table = record.Table("clients", "CPU", "requests/s", "p99", "target")
    serve = [sys.executable, "-m", "mindspore_lite", "serve", f"net={path}", "--http-port", "0"]
    for clients in args.clients:
        own = [sys.executable, __file__, "--inside", str(path), str(clients)]
        with process(*serve) as (server, port), process(*own) as (inside, _):
            asked = request("net", input_name(port), [1, 3, 224, 224])
            results = load.interleaved(
                {
                    "http": lambda: burst(server.pid, port, asked, clients, args.seconds),  # noqa: B023
                    "inside": lambda: run_inside(inside, args.seconds),
                },
                args.rounds,
            )
        parts = [
            load.ratio([a[at] for a in results["http"]], [b[at] for b in results["inside"]])
            for at in range(3)
        ]
        print(f"{clients} clients: http / inside: CPU {parts[0]}, rate {parts[1]}, p99 {parts[2]}")
        cells = [f"{part.middle:.2f}" for part in parts]
        table.add(str(clients), *cells, "at most 1.08, at least 0.88, at most 1.15")
    return table


def run_inside(child: subprocess.Popen[str], seconds: float) -> list[float]:
    """One burst of a process of run_in_process(), in the numbers of burst()."""
    assert child.stdin is not None and child.stdout is not None
    child.stdin.write(f"{seconds}\n")
    child.stdin.flush()
    count, wall_s, used_s, p99 = (float(word) for word in child.stdout.readline().split())
    return [used_s / count * 1e3, count / wall_s, p99 * 1e3]


def input_name(port: int) -> str:
    """Of the model `net` that is served."""
    from urllib.request import urlopen

    with urlopen(f"http://127.0.0.1:{port}/v2/models/net") as answer:
        name: str = json.load(answer)["inputs"][0]["name"]
    return name


def main() -> None:
    """Measure and print."""
    if sys.argv[1:2] == ["--serve"]:
        serve_nothing()
    if sys.argv[1:2] == ["--inside"]:
        run_in_process(sys.argv[2], int(sys.argv[3]))
        return
    parser = load.parser(__doc__)
    parser.add_argument("--clients", nargs="+", type=int, default=[4, 16])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of one burst of one side")
    parser.add_argument("--quick", action="store_true", help="one tiny burst")
    args = parser.parse_args()
    if args.quick:
        args.clients, args.rounds, args.seconds = [2], 1, 0.05
    tables = {"bare": bare(args)}
    with load.scratch() as folder:
        path = folder / "net.mindir"
        networks.mobilenet_v2(path)
        tables["model"] = with_model(args, path)
    record.write(args.json, tables, packages=("onnxruntime", "httptools", "uvicorn", "granian"))


if __name__ == "__main__":
    main()
