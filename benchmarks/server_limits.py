"""What many and odd clients do to the server: gRPC, a flood of JSON, idle connections, memory.

Run: python benchmarks/server_limits.py [--parts grpc flood idle memory million] [--rounds 5]
     [--seconds 2] [--json FILE] [--quick]

grpc     MobileNetV2 over gRPC: CPU of the server per request over that of the runner in a process
flood    a model of microseconds, 100 requests a second: p99 next to four clients that send images
         as JSON, over p99 alone
idle     the same requests with 1,000 idle connections open; what those take of memory
memory   memory of a process that serves MobileNetV2 over that of one that only runs it
million  10^6 small requests: how much the process grows after the first tenth
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import growth
import grpc
import load
import networks
import numpy as np
import record
import server

from mindspore_lite.server.grpc.inference_pb2 import ModelInferRequest

METHOD = "/inference.GRPCInferenceService/ModelInfer"
PARTS = ("grpc", "flood", "idle", "memory", "million")
RATE = 100.0  # requests a second of the measured client
FLOODERS = 4
IMAGE = [1, 3, 224, 224]
DEMO = "digits"
CLOSE_TO = 500  # of a million requests, in flight at once


def serving(*models: str, grpc_port: int = 0) -> list[str]:
    """The command that serves models on any port of HTTP, and on one of gRPC."""
    ports = ["--http-port", "0", "--grpc-port", str(grpc_port)]
    return [sys.executable, "-m", "mindspore_lite", "serve", *models, *ports]


def grpc_cpu(args: Any, path: Path) -> list[tuple[str, ...]]:
    """MobileNetV2 over gRPC against the runner in its own process."""
    rows = []
    for clients in args.clients:
        own = [sys.executable, server.__file__, "--inside", str(path), str(clients)]
        with ExitStack() as opened:
            number = server.free_port()
            command = serving(f"net={path}", grpc_port=number)
            served, http = opened.enter_context(server.process(*command))
            inside, _ = opened.enter_context(server.process(*own))
            channels = [  # each with a connection of its own
                opened.enter_context(
                    grpc.insecure_channel(
                        f"127.0.0.1:{number}", [("grpc.use_local_subchannel_pool", 1)]
                    )
                )
                for _ in range(min(clients, 4))
            ]
            calls = [channel.unary_unary(METHOD) for channel in channels]
            data = _message(server.input_name(http))
            results = load.interleaved(
                {
                    "grpc": partial(_grpc_burst, served.pid, calls, data, clients, args.seconds),
                    "inside": partial(server.run_inside, inside, args.seconds),
                },
                args.rounds,
            )
        part = load.ratio([a[0] for a in results["grpc"]], [b[0] for b in results["inside"]])
        print(f"gRPC, MobileNetV2, {clients} clients: CPU over in-process {part}")
        rows.append(
            (f"gRPC, MobileNetV2, {clients} clients, CPU over in-process", str(part), "1.20")
        )
    return rows


def _grpc_burst(
    pid: int, calls: list[Any], data: bytes, clients: int, seconds: float
) -> list[float]:
    turns = iter(range(10**9))
    before = server.cpu_s(pid)
    found = load.closed_loop(lambda: calls[next(turns) % len(calls)](data), clients, seconds)
    return [(server.cpu_s(pid) - before) / len(found.latencies_s) * 1e3]


def _message(name: str) -> bytes:
    request = ModelInferRequest(model_name="net")
    request.inputs.add(name=name, datatype="FP32", shape=IMAGE)
    request.raw_input_contents.append(np.zeros(IMAGE, np.float32).tobytes())
    return bytes(request.SerializeToString())


def small(port: int) -> bytes:
    """A request to the embedded model."""
    return server.request(DEMO, _metadata(port, DEMO)["inputs"][0]["name"], [1, 1, 8, 8])


def _metadata(port: int, model: str) -> dict[str, Any]:
    from urllib.request import urlopen

    with urlopen(f"http://127.0.0.1:{port}/v2/models/{model}") as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def paced_p99_ms(ask: Callable[[], None], seconds: float) -> float:
    """p99 of requests that are due at fixed times; a late one counts from when it was due."""
    begin, took = time.perf_counter(), []
    for number in range(max(2, round(seconds * RATE))):
        due = begin + number / RATE
        time.sleep(max(0.0, due - time.perf_counter()))
        ask()
        took.append(time.perf_counter() - due)
    return float(np.percentile(took, 99)) * 1e3


def flood(args: Any, path: Path) -> list[tuple[str, ...]]:
    """p99 of a small model next to images as JSON."""
    with server.process(*serving(f"net={path}", "--demo")) as (_, port):
        opened: list[socket.socket] = []
        ask = server.asker(port, small(port), opened)
        image = _json_request(_metadata(port, "net")["inputs"][0]["name"])
        results = load.interleaved(
            {
                "alone": partial(paced_p99_ms, ask, args.seconds),
                "flooded": partial(_flooded, port, image, ask, args.seconds),
            },
            args.rounds,
        )
        for sock in opened:
            sock.close()
    part = load.ratio(results["flooded"], results["alone"])
    alone = load.spread(results["alone"]).middle
    print(f"p99 next to a flood of JSON images, over alone ({alone:.2f} ms): {part}")
    return [("p99 of a small model next to a flood of JSON images, over alone", str(part), "3")]


def _json_request(name: str) -> bytes:
    values = np.random.default_rng(0).random(int(np.prod(IMAGE)), np.float32).tolist()
    tensor = {"name": name, "datatype": "FP32", "shape": IMAGE, "data": values}
    text = json.dumps({"inputs": [tensor]}).encode()
    head = "POST /v2/models/net/infer HTTP/1.1\r\nHost: localhost\r\n"
    return f"{head}Content-Length: {len(text)}\r\n\r\n".encode() + text


def _flooded(port: int, image: bytes, ask: Callable[[], None], seconds: float) -> float:
    over = threading.Event()
    opened: list[socket.socket] = []

    def keep_on() -> None:
        send = server.asker(port, image, opened)
        while not over.is_set():
            send()

    threads = [threading.Thread(target=keep_on) for _ in range(FLOODERS)]
    for thread in threads:
        thread.start()
    try:
        return paced_p99_ms(ask, seconds)
    finally:
        over.set()
        for thread in threads:
            thread.join()
        for sock in opened:
            sock.close()


def idle(args: Any, path: Path) -> list[tuple[str, ...]]:
    """1,000 idle connections."""
    with server.process(*serving("--demo")) as (served, port):
        opened: list[socket.socket] = []
        ask = server.asker(port, small(port), opened)
        paced_p99_ms(ask, 0.5)
        before = growth.holdings(served.pid)["own KiB"]
        many = [socket.create_connection(("127.0.0.1", port)) for _ in range(args.idle)]
        one = small(port)
        for sock in many[:: max(1, args.idle // 100)]:  # some have sent something before
            sock.sendall(one)
            sock.recv(65536)
        taken = (growth.holdings(served.pid)["own KiB"] - before) / 1024
        busy = [paced_p99_ms(ask, args.seconds) for _ in range(args.rounds)]
        for sock in many:
            sock.close()
        alone = [paced_p99_ms(ask, args.seconds) for _ in range(args.rounds)]
        for sock in opened:
            sock.close()
    part = load.ratio(busy, alone)
    print(f"{args.idle} idle connections: {taken:.1f} MiB, p99 of others over without them {part}")
    return [
        (f"{args.idle} idle connections, MiB", f"{taken:.1f}", "16"),
        ("p99 of others over without them", str(part), "1"),
    ]


def memory(args: Any, path: Path) -> list[tuple[str, ...]]:
    """What serving takes beyond running."""
    own = [sys.executable, server.__file__, "--inside", str(path), "4"]
    with server.process(*own) as (inside, _):
        server.run_inside(inside, args.seconds)
        bare = growth.holdings(inside.pid)["own KiB"]
    with server.process(*serving(f"net={path}")) as (served, port):
        data = server.request("net", server.input_name(port), IMAGE)
        server.burst(served.pid, port, data, 4, args.seconds)
        over = (growth.holdings(served.pid)["own KiB"] - bare) / 1024
    print(f"own memory over the bare runner: {over:.1f} MiB")
    return [("own memory over the bare runner, MiB", f"{over:.1f}", "40")]


def million(args: Any, path: Path) -> list[tuple[str, ...]]:
    """Many small requests, pipelined on four connections."""
    with server.process(*serving("--demo")) as (served, port):
        data = small(port)
        _pipelined(port, data, args.requests // 10)
        before = growth.holdings(served.pid)["own KiB"]
        began = time.perf_counter()
        _pipelined(port, data, args.requests)
        took_s = time.perf_counter() - began
        grown = (growth.holdings(served.pid)["own KiB"] - before) / 1024
    print(f"{args.requests} requests: {args.requests / took_s:.0f}/s, growth {grown:.1f} MiB")
    return [(f"growth over {args.requests} requests, MiB", f"{grown:.1f}", "5")]


def _pipelined(port: int, data: bytes, count: int) -> None:
    def client(mine: int) -> None:
        with socket.create_connection(("127.0.0.1", port)) as sock:
            for at in range(0, mine, CLOSE_TO):
                _ask_together(sock, data, min(CLOSE_TO, mine - at))

    threads = [threading.Thread(target=client, args=(count // 4,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _ask_together(sock: socket.socket, data: bytes, count: int) -> None:
    sender = threading.Thread(target=sock.sendall, args=(data * count,))
    sender.start()
    done, rest = 0, b""
    while done < count:
        received = sock.recv(1 << 16)
        if not received:
            raise SystemExit("the server hung up")
        rest += received
        done += rest.count(b"HTTP/1.1 200")
        rest = rest[-11:]  # what could be the beginning of another
    sender.join()


def main() -> None:
    """Measure and print."""
    parser = load.parser(__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--clients", nargs="+", type=int, default=[4, 16])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of one burst of one side")
    parser.add_argument("--idle", type=int, default=1000, help="connections")
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--quick", action="store_true", help="tiny bursts")
    args = parser.parse_args()
    if args.quick:
        args.clients, args.rounds, args.seconds, args.idle, args.requests = [2], 1, 0.1, 20, 400
    table = record.Table("what", "measured", "at most")
    measures = dict(zip(PARTS, (grpc_cpu, flood, idle, memory, million), strict=True))
    with load.scratch() as folder:
        path = folder / "net.mindir"
        networks.mobilenet_v2(path)
        for part in args.parts:
            for row in measures[part](args, path):
                table.add(*row)
    record.write(args.json, {"limits": table}, packages=("onnxruntime", "httptools", "grpcio"))


if __name__ == "__main__":
    main()
