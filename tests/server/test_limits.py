"""Every limit: what crosses it is refused with the right status a hundred times, the server's
memory does not grow by that, and the next request is served. The server is a process of its own."""

from __future__ import annotations

import json
import socket
import threading
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, fields
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import grpc
import numpy as np
import pytest
from support.fake_engine import wait_for
from support.grpc_served import SERVICE, Caller, request
from support.serve_process import LIMIT_S, ServeProcess, serve_process
from support.served import Wire, get, post

from mindspore_lite.server.limits import MIB, Limits

REPEATS, THREADS, WARM_UPS = 100, 10, 40
GROWTH_BYTES = 20_000_000
INFER, WEIGHTS = "/v2/models/digits/infer", "/v2/repository/models/digits/weights"
LIVE = get("/v2/health/live")
SIZES = {
    "body_bytes": 4 * MIB, "flight_bytes": 64 * MIB, "json_bytes": MIB, "chunks": 1000,
    "connections": 60, "grpc_calls": 100, "grpc_streams": 2, "weights_bytes": MIB,
    "event_streams": 2,
}  # fmt: skip
TIMES = {
    "head_s": 0.3, "idle_s": 0.3, "body_grace_s": 0.3, "body_rate": 10**9, "grpc_receive_s": 0.3,
}  # fmt: skip
SLOW = {"send_s": 0.05, "body_rate": 10**9}
TOKEN = "a token of an administrator".replace(" ", "-")
TENSOR = {"name": "x", "datatype": "FP32", "shape": [1, 1, 8, 8], "data": [0] * 64}

Once = Callable[[], object]


@dataclass
class Served:
    """A server, and a gRPC client of it."""

    process: ServeProcess
    caller: Caller

    @contextmanager
    def wire(self) -> Iterator[Wire]:
        with Wire(self.process.http_port) as found:
            yield found

    def serves(self) -> bool:
        """Whether it answers both ways; a busy machine may be late for TIMES."""
        with self.wire() as wire, suppress(OSError, EOFError):
            status = wire.ask(post(INFER, {"inputs": [TENSOR]})).status
            return status == 200 and self.caller.code("ModelInfer", digit())[0] == "OK"
        return False


def digit(**more: object) -> bytes:
    data = np.zeros(64, np.float32).tobytes()
    return request("digits", data, (1, 1, 8, 8), "x", **more).SerializeToString()


@contextmanager
def limited(limits: dict[str, float]) -> Iterator[Served]:
    flags = [part for name, n in limits.items() for part in ("--limit", f"{name}={n}")]
    with TemporaryDirectory() as folder:
        tokens, config = Path(folder, "tokens"), Path(folder, "config.ini")
        tokens.write_text(TOKEN)
        config.write_text("[common_context]\nvariable_weights_list=features.1.gamma\n")
        flags += ["--admin-token-file", str(tokens), "--config", str(config), "--no-sandbox"]
        with serve_process("--demo", *flags) as process, Caller(process.grpc_port) as caller:
            yield Served(process, caller)


@pytest.fixture(scope="module")
def sizes() -> Iterator[Served]:
    with limited(SIZES) as found:
        yield found


@pytest.fixture(scope="module")
def times() -> Iterator[Served]:
    with limited(TIMES) as found:
        yield found


@pytest.fixture(scope="module")
def slow() -> Iterator[Served]:
    with limited(SLOW) as found:
        yield found


# --- ways to cross a limit; each yields what crosses it once, and checks the answer ---


def answered(data: bytes, status: int) -> Callable[[Served], Iterator[Once]]:
    """A request that is answered so."""

    def breach(served: Served) -> Iterator[Once]:
        def once() -> None:
            with served.wire() as wire:
                reply = wire.ask(data)
                assert (reply.status, bool(reply.error)) == (status, True)

        yield once

    return breach


def ended(data: bytes) -> Callable[[Served], Iterator[Once]]:
    """A client that the server hangs up on."""

    def breach(served: Served) -> Iterator[Once]:
        def once() -> None:
            with served.wire() as wire:
                wire.send(data)
                assert wire.at_end()

        yield once

    return breach


def refused(message: bytes, code: str, **more: object) -> Callable[[Served], Iterator[Once]]:
    """A gRPC call that fails so."""

    def breach(served: Served) -> Iterator[Once]:
        def once() -> None:
            got, text = served.caller.code("ModelInfer", message, **more)
            assert got == code, text

        yield once

    return breach


def field(number: int, content: bytes) -> bytes:
    """A field of a protobuf message; so long ones are not made by its classes."""
    size, count = bytearray(), len(content)
    while count > 0x7F:
        size.append(count & 0x7F | 0x80)
        count >>= 7
    return bytes((number << 3 | 2, *size, count)) + content


def bomb() -> bytes:
    return zlib.compress(bytes(3 * MIB), 9)


def held_connections(served: Served) -> Iterator[Once]:
    with ExitStack() as stack:
        held = [stack.enter_context(served.wire()) for _ in range(SIZES["connections"])]
        assert held[0].ask(LIVE).status == 200

        def once() -> None:
            with served.wire() as wire:
                assert wire.reply().status == 503
                assert wire.at_end()

        yield once


def held_bodies(served: Served) -> Iterator[Once]:
    with ExitStack() as stack:
        for _ in range(SIZES["flight_bytes"] // SIZES["body_bytes"]):
            wire = stack.enter_context(served.wire())
            wire.send(post(INFER, b"", "Expect: 100-continue", length=SIZES["body_bytes"]))
            assert wire.reply(has_body=False).status == 100

        yield from answered(post(INFER, b"x" * 50), 503)(served)


def held_pages(served: Served) -> Iterator[Once]:
    events = get("/dashboard/events")
    with ExitStack() as stack:
        for _ in range(SIZES["event_streams"]):
            wire = stack.enter_context(served.wire())
            wire.send(events)
            assert wire.sock.recv(12) == b"HTTP/1.1 200"
        yield from answered(events, 503)(served)


def sent_ahead(served: Served) -> Iterator[Once]:
    """Requests without end, of a client that takes no answers: it is read no more."""

    def once() -> None:
        with served.wire() as wire:
            wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            wire.sock.settimeout(0.2)
            sent = 0
            with pytest.raises(TimeoutError):
                while sent < 1000 * MIB:
                    sent += wire.sock.send(LIVE * 1000)

    yield once


def never_read(served: Served) -> Iterator[Once]:
    """Large answers that the client does not take: it is cut off."""

    def once() -> None:
        with served.wire() as wire, pytest.raises((ConnectionResetError, BrokenPipeError)):
            while True:
                wire.send(get("/openapi.json") * 100)

    yield once


@contextmanager
def silence() -> Iterator[Callable[[], Iterator[bytes]]]:
    """Messages of a client that sends none until the end of the block."""
    over = threading.Event()

    def nothing() -> Iterator[bytes]:
        over.wait(LIMIT_S)
        yield from ()

    try:
        yield nothing
    finally:
        over.set()


def held_calls(served: Served) -> Iterator[Once]:
    apart = {"grpc.use_local_subchannel_pool": 1}  # a connection has a limit of its own
    with silence() as nothing, Caller(served.process.grpc_port, **apart) as other:
        call = other.channel.stream_unary(f"{SERVICE}ModelInfer")
        held = [call.future(nothing()) for _ in range(SIZES["grpc_calls"])]

        def once() -> None:
            assert served.caller.code("ModelInfer", digit())[0] == "UNAVAILABLE"

        def is_full() -> bool:
            """Another call is held if not: one may have been refused next to those before."""
            if served.caller.code("ModelInfer", digit())[0] == "UNAVAILABLE":
                return True
            held.append(call.future(nothing()))
            return False

        wait_for(is_full)
        yield once
        for one in held:
            one.cancel()


def held_streams(served: Served) -> Iterator[Once]:
    with silence() as nothing:
        held = [served.caller.stream(chain([digit()], nothing())) for _ in range(2)]
        for one in held:
            assert next(one)

        def once() -> None:
            with pytest.raises(grpc.RpcError) as info:
                list(served.caller.stream([digit()], timeout=LIMIT_S))
            assert info.value.code() is grpc.StatusCode.UNAVAILABLE

        yield once
        for one in held:
            one.cancel()


def silent_call(served: Served) -> Iterator[Once]:
    with silence() as nothing:

        def once() -> None:
            call = served.caller.channel.stream_unary(f"{SERVICE}ModelInfer").future(nothing())
            assert call.code() is grpc.StatusCode.CANCELLED

        yield once


DEEP = b'{"a":' + b"[" * 40 + b"]" * 40 + b"}"
LONG_ID = json.dumps({"id": "i" * 2000, "inputs": [TENSOR]}).encode()
SLOW_BODY = post(INFER, b"x", length=1000)
CHUNKED = "Transfer-Encoding: chunked"
ADMIN = f"Authorization: Bearer {TOKEN}"

BREACHES: dict[str, list[tuple[str, Callable[[Served], Iterator[Once]]]]] = {
    "body_bytes": [
        ("sizes", answered(post(INFER, b"", length=10**12), 413)),
        ("sizes", answered(post(INFER, b"", length=5 * MIB), 413)),
        ("sizes", answered(post(INFER, b"500000\r\n", CHUNKED), 413)),
        ("sizes", refused(bytes(5 * MIB), "RESOURCE_EXHAUSTED")),
        ("sizes", refused(bytes(9 * MIB), "RESOURCE_EXHAUSTED", compression=grpc.Compression.Gzip)),
    ],
    "json_bytes": [
        ("sizes", answered(post(INFER, b" " * (MIB + 1)), 413)),
        ("sizes", refused(field(15, bytes(2 * MIB)), "RESOURCE_EXHAUSTED")),
    ],
    "head_bytes": [("sizes", answered(get("/v2", "A: " + "b" * 20_000), 431))],
    "headers": [("sizes", answered(get("/v2", *[f"A{i}: b" for i in range(100)]), 431))],
    "url_bytes": [("sizes", answered(get("/v2?" + "x" * 9000), 414))],
    "json_depth": [("sizes", answered(post(INFER, DEEP), 400))],
    "chunks": [("sizes", answered(post(INFER, b"1\r\nx\r\n" * 1001, CHUNKED), 400))],
    "weights_bytes": [
        ("sizes", answered(post(WEIGHTS, b"", ADMIN, length=MIB + 1), 413)),
        ("sizes", answered(post(WEIGHTS, b"100001\r\n" + bytes(MIB + 1), CHUNKED, ADMIN), 413)),
    ],
    "inflate_ratio": [("sizes", answered(post(INFER, bomb(), "Content-Encoding: deflate"), 413))],
    "id_bytes": [
        ("sizes", answered(post(INFER, LONG_ID), 400)),
        ("sizes", refused(digit(id="i" * 2000), "INVALID_ARGUMENT")),
    ],
    "connections": [("sizes", held_connections)],
    "flight_bytes": [("sizes", held_bodies)],
    "pipelined_bytes": [("sizes", sent_ahead)],
    "head_s": [("times", answered(b"GET /v2 HTTP/1.1\r\n", 408))],
    "idle_s": [("times", ended(b""))],
    "body_rate": [("times", answered(SLOW_BODY, 408))],
    "body_grace_s": [("times", answered(post(INFER, b"1\r\n", CHUNKED), 408))],
    "send_s": [("slow", never_read)],
    "event_streams": [("sizes", held_pages)],
    "stream_bytes": [],  # takes longer than the kernel's buffers: http/test_dashboard.py
    "grpc_calls": [("sizes", held_calls)],
    "grpc_streams": [("sizes", held_streams)],
    "grpc_fields": [("sizes", refused(field(1, b"") * 5000, "INVALID_ARGUMENT"))],
    "grpc_receive_s": [("times", silent_call)],
}


def test_every_limit_is_crossed_here() -> None:
    """A new limit needs a line above."""
    assert list(BREACHES) == [one.name for one in fields(Limits)]


@pytest.mark.parametrize(
    ("name", "number"), [(name, n) for name, all_ in BREACHES.items() for n in range(len(all_))]
)
def test_a_limit_holds_a_hundred_times(
    request: pytest.FixtureRequest, name: str, number: int
) -> None:
    which, breach = BREACHES[name][number]
    served: Served = request.getfixturevalue(which)
    with contextmanager(breach)(served) as once, ThreadPoolExecutor(THREADS) as threads:

        def repeat(count: int) -> None:
            for one in [threads.submit(once) for _ in range(count)]:
                one.result(LIMIT_S)

        repeat(WARM_UPS)
        before = served.process.resident_bytes
        repeat(REPEATS)
    wait_for(lambda: served.process.resident_bytes - before < GROWTH_BYTES)
    wait_for(served.serves)
