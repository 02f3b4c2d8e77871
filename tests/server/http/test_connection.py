from __future__ import annotations

import json
import logging
import socket
import sys
from typing import Any

import numpy as np
import pytest
from support.fake_engine import Gate as RunGate
from support.fake_engine import wait_for
from support.served import FakeService, HttpPort, Wire, fake_port, get, port_of, post

from mindspore_lite.engines.base import Stop
from mindspore_lite.errors import EngineError
from mindspore_lite.server.http.connection import Connection, _aligned
from mindspore_lite.server.limits import MIB, Limits
from mindspore_lite.server.models import Models

FP32 = "/v2/models/id_fp32/infer"
FAKE = "/v2/models/fake/infer"
LIVE = get("/v2/health/live")


def infer(*values: float) -> bytes:
    data = {"name": "IN", "datatype": "FP32", "shape": [len(values)], "data": values}
    return post(FP32, {"inputs": [data]})


def fake(**more: Any) -> bytes:
    data = {"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}
    return post(FAKE, {"inputs": [data], **more})


def values(reply: Any) -> list[float]:
    found: list[float] = reply.json["outputs"][0]["data"]
    return found


# --- the wire ---


def test_a_connection_is_kept_alive(wire: Wire) -> None:
    for number in range(3):
        assert values(wire.ask(infer(number))) == [number]
        assert wire.ask(LIVE).status == 200
    assert "connection" not in wire.ask(LIVE).headers


def test_connection_close_is_honoured(wire: Wire) -> None:
    reply = wire.ask(get("/v2/health/live", "Connection: close"))
    assert reply.headers["connection"] == "close"
    assert wire.at_end()


def test_http_1_0_is_answered_and_closed(wire: Wire) -> None:
    reply = wire.ask(b"GET /v2/health/live HTTP/1.0\r\n\r\n")
    assert reply.raw_head.startswith(b"HTTP/1.0 200 OK\r\n")
    assert wire.at_end()


def test_http_1_0_may_be_kept_alive(wire: Wire) -> None:
    request = b"GET /v2/health/live HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
    assert wire.ask(request).headers["connection"] == "keep-alive"
    assert wire.ask(request).status == 200


def test_bytes_may_come_one_by_one(wire: Wire) -> None:
    wire.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in infer(1, 2):
        wire.send(bytes([byte]))
    assert values(wire.reply()) == [1, 2]


def test_pipelined_requests_are_answered_in_order(wire: Wire) -> None:
    count = 100
    wire.send(b"".join(infer(number) + LIVE for number in range(count)))
    for number in range(count):
        assert values(wire.reply()) == [number]
        assert wire.reply().json == {"live": True}


def test_a_pipeline_far_longer_than_the_limit_is_served(models: Models) -> None:
    with port_of(models, Limits(pipelined_bytes=1000)) as port, Wire(port) as wire:
        count = 3000
        wire.send(infer(1) * count)
        assert [values(wire.reply()) for _ in range(count)] == [[1]] * count


def test_chunked_bodies_are_taken(wire: Wire) -> None:
    body = infer(1, 2).partition(b"\r\n\r\n")[2]
    chunks = b"".join(b"1\r\n" + bytes([byte]) + b"\r\n" for byte in body) + b"0\r\n\r\n"
    assert values(wire.ask(post(FP32, chunks, "Transfer-Encoding: chunked") + LIVE)) == [1, 2]
    assert wire.reply().json == {"live": True}


def test_expect_100_is_answered_before_the_body(wire: Wire) -> None:
    request = infer(1, 2)
    head, _, body = request.partition(b"\r\n\r\n")
    wire.send(head + b"\r\nExpect: 100-continue\r\n\r\n")
    assert wire.reply(has_body=False).status == 100
    assert values(wire.ask(body)) == [1, 2]


def test_a_refused_request_gets_no_100(wire: Wire) -> None:
    request = post("/v2/nowhere", b"", "Expect: 100-continue", length=10)
    assert wire.ask(request).status == 404
    assert wire.at_end()


def test_head_is_a_get_without_a_body(wire: Wire) -> None:
    reply = wire.ask(get("/v2/health/live", method="HEAD"), has_body=False)
    assert (reply.status, reply.headers["content-length"]) == (200, "13")
    assert wire.ask(LIVE).json == {"live": True}


def test_an_empty_line_between_requests_is_ignored(wire: Wire) -> None:
    assert values(wire.ask(infer(1) + b"\r\n")) == [1]
    assert wire.ask(LIVE).status == 200


def test_many_empty_lines_are_ignored(wire: Wire) -> None:
    wire.send(b"\r\n" * 100_000)
    assert wire.ask(get("/v2")).status == 200


def test_a_head_that_is_refused_is_answered_for_itself(wire: Wire) -> None:
    """Not by what the request before it asked for."""
    wire.ask(get("/v2", "x-request-id: first", method="HEAD"), has_body=False)
    reply = wire.ask(b"GET /v2 HTTP/1.1\r\nx: " + b"y" * 20_000)
    assert (reply.status, reply.headers.get("x-request-id")) == (431, None)
    assert "head is longer" in reply.error


def test_large_tensors_arrive_whole_and_aligned(wire: Wire) -> None:
    array = np.arange(500_000, dtype=np.float32)
    tensor = {
        "name": "IN",
        "datatype": "FP32",
        "shape": [array.size],
        "parameters": {"binary_data_size": array.nbytes},
    }
    for pad in range(5):
        head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}})
        head += " " * pad
        length = "Inference-Header-Content-Length"
        reply = wire.ask(post(FP32, head.encode() + array.tobytes(), f"{length}: {len(head)}"))
        assert reply.body[int(reply.headers[length.lower()]) :] == array.tobytes()


def test_a_request_id_comes_back(wire: Wire) -> None:
    assert wire.ask(get("/v2", "X-Request-Id: a-1")).headers["x-request-id"] == "a-1"
    assert "x-request-id" not in wire.ask(get("/v2", f"X-Request-Id: {'x' * 200}")).headers
    assert "x-request-id" not in wire.ask(get("/v2", "X-Request-Id: a b")).headers


def test_many_requests_good_and_bad_share_a_connection(wire: Wire) -> None:
    kinds = [
        (infer(1), 200),
        (post(FP32, b"{"), 400),
        (post("/v2/models/x/infer", b"{}"), 404),
        (get(FP32), 405),
        (get("/nowhere"), 404),
        (post("/v2", b"some body"), 405),
        (LIVE, 200),
    ]
    for number in range(2000):
        request, status = kinds[number % len(kinds)]
        assert wire.ask(request).status == status


def test_the_loop_of_asyncio_serves_as_well(
    models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    with port_of(models) as port, Wire(port) as wire:
        assert type(port.loop).__module__.startswith("asyncio")
        wire.send(infer(1) * 50)
        assert [values(wire.reply()) for _ in range(50)] == [[1]] * 50
        array = np.arange(300_000, dtype=np.float32)
        reply = wire.ask(post(FP32, array.tobytes(), "Inference-Header-Content-Length: 0"))
        assert reply.body.endswith(array.tobytes())
        assert wire.ask(post(FP32, b"", length=10**12)).status == 413
        assert wire.at_end()


# --- a run under way ---


def test_a_client_that_hangs_up_cancels_its_request() -> None:
    gate = RunGate()
    service = FakeService(gate)
    with fake_port(service) as port:
        wire = Wire(port)
        wire.send(fake())
        gate.entered()
        wire.close()
        wait_for(lambda: service.statistics().cancelled == 1)
        wait_for(lambda: port.core.flight.bytes == 0)
        gate.open()


def test_a_client_that_hangs_up_leaves_the_queue() -> None:
    gate = RunGate()
    service = FakeService(gate)
    with fake_port(service) as port, Wire(port) as first:
        first.send(fake())
        gate.entered()
        second = Wire(port)
        second.send(fake())
        wait_for(lambda: service.statistics().queued == 1)
        second.close()
        wait_for(lambda: service.statistics().cancelled == 1)
        gate.open()
        assert values(first.reply()) == [2, 4]


def test_a_full_queue_is_a_503() -> None:
    gate = RunGate()
    service = FakeService(gate, queue_size=1)
    with fake_port(service) as port, Wire(port) as a, Wire(port) as b, Wire(port) as c:
        a.send(fake())
        gate.entered()
        b.send(fake())
        wait_for(lambda: service.statistics().queued == 1)
        reply = c.ask(fake())
        assert (reply.status, reply.headers["retry-after"]) == (503, "1")
        assert "Exceeds maximum queue size" in reply.error
        assert c.ask(LIVE).status == 200  # whatever the models do
        gate.open()
        assert values(a.reply()) == values(b.reply()) == [2, 4]
        assert values(c.ask(fake())) == [2, 4]


@pytest.mark.parametrize("way", ["parameter", "header"])
def test_a_deadline_ends_a_run(way: str) -> None:
    gate = RunGate()
    service = FakeService(gate)
    request = fake(parameters={"timeout": 20_000})
    if way == "header":
        request = fake().replace(b"\r\nHost", b"\r\nX-Request-Timeout-Ms: 20\r\nHost", 1)
    with fake_port(service) as port, Wire(port) as wire:
        reply = wire.ask(request)
        assert reply.status == 504
        wait_for(lambda: service.statistics().running == 0)
        gate.open()
        assert wire.ask(fake()).status == 200


def test_a_deadline_in_the_queue_is_a_503() -> None:
    gate = RunGate()
    service = FakeService(gate)
    with fake_port(service) as port, Wire(port) as a, Wire(port) as b:
        a.send(fake())
        gate.entered()
        reply = b.ask(fake(parameters={"timeout": 20_000}))
        assert (reply.status, reply.headers["retry-after"]) == (503, "1")
        gate.open()
        a.reply()


def test_a_failed_run_is_a_500_without_paths() -> None:
    def broken(inputs: list[np.ndarray], stop: Stop) -> list[np.ndarray]:
        raise EngineError("node 'a' of '/home/me/net.onnx' failed at 0x7fff1234")

    with fake_port(FakeService(broken)) as port, Wire(port) as wire:
        reply = wire.ask(fake())
        assert reply.status == 500
        assert "net.onnx" not in reply.error and "7fff" not in reply.error
        assert wire.ask(LIVE).status == 200


def test_priorities_reach_the_queue() -> None:
    gate = RunGate()
    seen: list[float] = []

    def note(inputs: list[np.ndarray], stop: Stop) -> list[np.ndarray]:
        seen.append(float(inputs[0][0, 0]))
        gate.wait(stop)
        return inputs

    def of(number: int, priority: int) -> bytes:
        data = {"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [number, 0]}
        return post(FAKE, {"inputs": [data], "parameters": {"priority": priority}})

    service = FakeService(note)
    with fake_port(service) as port:
        wires = [Wire(port) for _ in range(3)]
        wires[0].send(of(0, 0))
        gate.entered()
        for number, priority in ((1, 100), (2, 1)):
            wires[number].send(of(number, priority))
            wait_for(lambda n=number: service.statistics().queued == n)  # type: ignore[misc]
        gate.open()
        assert all(wire.reply().status == 200 for wire in wires)
        assert seen == [0, 2, 1]
        for wire in wires:
            wire.close()


# --- limits ---

SMALL = Limits(
    body_bytes=2000, json_bytes=1000, head_bytes=1024, headers=10, chunks=10, flight_bytes=4000
)


@pytest.mark.parametrize(
    ("request_", "status", "stays"),
    [
        (post(FP32, b"x" * 2001), 413, True),
        (post(FP32, b"", length=70_000), 413, False),
        (post(FP32, b"", length=10**15), 413, False),
        (post(FP32, b"x" * 1001), 413, True),
        (post(FP32, b"7d1\r\n", "Transfer-Encoding: chunked"), 413, False),
        (post(FP32, b"1\r\nx\r\n" * 11, "Transfer-Encoding: chunked"), 400, False),
        (get("/v2", "A: " + "b" * 2000), 431, False),
        (get("/v2", *[f"A{i}: b" for i in range(10)]), 431, False),
        (post(FP32, b'{"a":' + b"[" * 40 + b"]" * 40 + b"}"), 400, True),
        (post(FP32, b'{"inputs":[{"name":"IN","shape":[' + b"9" * 500 + b"]}]}"), 400, True),
        (post("/v2", b"x" * 100), 405, True),
        (post("/v2", b"", length=70_000), 405, False),
    ],
)  # fmt: skip
def test_a_limit_refuses_and_the_next_request_is_served(
    models: Models, request_: bytes, status: int, stays: bool
) -> None:
    with port_of(models, SMALL) as port:
        for _ in range(20):
            with Wire(port) as wire:
                reply = wire.ask(request_)
                assert reply.status == status and reply.error
                if stays:
                    assert wire.ask(infer(1)).status == 200
                else:
                    assert reply.headers["connection"] == "close"
        with Wire(port) as wire:
            assert wire.ask(infer(1)).status == 200
        assert port.core.flight.bytes == 0


def test_bytes_in_flight_are_refused_before_the_body_comes(models: Models) -> None:
    with port_of(models, SMALL) as port, Wire(port) as a, Wire(port) as b, Wire(port) as c:
        for wire in (a, b):
            wire.send(post(FP32, b"x", length=2000))
        wait_for(lambda: port.core.flight.bytes == 4000)
        reply = c.ask(post(FP32, b"x" * 50))
        assert (reply.status, reply.headers["retry-after"]) == (503, "1")
        a.close()
        wait_for(lambda: port.core.flight.bytes == 2000)
        assert c.ask(infer(1)).status == 200


def test_connections_are_bounded(models: Models) -> None:
    with port_of(models, Limits(connections=2)) as port, Wire(port) as a, Wire(port) as b:
        assert a.ask(LIVE).status == b.ask(LIVE).status == 200
        with Wire(port) as c:
            assert c.reply().status == 503
            assert c.at_end()
        b.close()
        wait_for(lambda: len(port.connections) == 1)
        with Wire(port) as c:
            assert c.ask(LIVE).status == 200


def test_times_are_bounded(models: Models) -> None:
    limits = Limits(head_s=0.05, idle_s=0.05, body_grace_s=0.05, body_rate=10**9)
    with port_of(models, limits) as port:
        with Wire(port) as idle:
            assert idle.at_end()
        with Wire(port) as head:
            assert head.ask(b"GET /v2 HTTP/1.1\r\n").status == 408
            assert head.at_end()
        with Wire(port) as body:
            assert body.ask(post(FP32, b"x", length=1000)).status == 408
            assert body.at_end()
        with Wire(port) as skipped:  # the first fault counts
            assert skipped.ask(post("/nowhere", b"x", length=1000)).status == 404
            assert skipped.at_end()
        with Wire(port) as chunks:
            assert chunks.ask(post(FP32, b"1\r\n", "Transfer-Encoding: chunked")).status == 408
        assert port.core.flight.bytes == 0


def test_a_client_that_reads_nothing_is_cut_off(models: Models) -> None:
    limits = Limits(send_s=0.05, idle_s=60)
    array = np.zeros(4 * MIB, np.float32)
    head = b'{"inputs":[{"name":"IN","datatype":"FP32","shape":[4194304],"parameters":{"binary_data_size":16777216}}],"parameters":{"binary_data_output":true}}'  # noqa: E501
    request = post(FP32, head + array.tobytes(), f"Inference-Header-Content-Length: {len(head)}")
    with port_of(models, limits) as port, Wire(port) as wire:
        wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        wire.send(request)
        wait_for(lambda: not port.connections)


class SlowTransport:
    """A transport whose client takes what the test says."""

    def __init__(self) -> None:
        self.unsent, self.is_aborted = 10**9, False

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def abort(self) -> None:
        self.is_aborted = True


def test_a_client_that_reads_slowly_is_not_cut_off(port: HttpPort) -> None:
    connection, transport = Connection(port), SlowTransport()
    connection.connection_made(transport)
    connection.pause_writing()
    now_s, step_s = port.loop.time(), 2 * port.core.limits.send_s
    for number in range(1, 5):
        transport.unsent -= 1_000_000
        connection.look(now_s + number * step_s)
        assert not transport.is_aborted
    connection.look(now_s + 5 * step_s)
    assert transport.is_aborted
    connection.connection_lost(None)


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_bomb_is_refused_while_it_inflates(models: Models, coding: str) -> None:
    import zlib

    packer = zlib.compressobj(9, zlib.DEFLATED, 31 if coding == "gzip" else 15)
    bomb = packer.compress(bytes(50 * MIB)) + packer.flush()
    with port_of(models) as port, Wire(port) as wire:
        for _ in range(5):
            reply = wire.ask(post(FP32, bomb, f"Content-Encoding: {coding}"))
            assert reply.status == 413
        assert wire.ask(infer(1)).status == 200


def test_refusals_take_no_memory(models: Models) -> None:
    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    requests = [
        post(FP32, b"", length=10**12),
        post(FP32, b"", length=63 * MIB),
        post(FP32, b"3f00000\r\n", "Transfer-Encoding: chunked"),
        get("/v2", "A: " + "b" * 20_000),
    ]
    with port_of(models) as port:
        for number in range(3):
            if number == 1:
                before = resident()
            for request in requests * 34:
                with Wire(port) as wire:
                    wire.send(request)
        wait_for(lambda: not port.connections)
        assert resident() - before < 20_000_000
        assert port.core.flight.bytes == 0


# --- who may come ---


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200), ("LOCALHOST:8000", 200), ("127.0.0.1", 200), ("[::1]:80", 200),
        ("10.1.2.3:1", 200), ("evil.example", 421), ("localhost.evil.example", 421), ("", 200),
        ("[::1]evil.example", 400), ("[127.0.0.1", 400), ("localhost:80:80", 400),
        ("localhost@evil.example", 400), ("localhost,evil.example", 400), ("localhost:x", 400),
    ],
)  # fmt: skip
def test_other_names_are_refused_on_the_loopback(wire: Wire, host: str, status: int) -> None:
    request = f"GET /v2 HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    assert wire.ask(request).status == status
    absolute = f"GET http://{host or 'a'}/v2 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    if host and status != 400:  # behind which the connection is closed
        assert wire.ask(absolute).status == status


def test_hosts_may_be_allowed(models: Models) -> None:
    with port_of(models, hosts=["models.example"]) as port, Wire(port) as wire:
        assert wire.ask(b"GET /v2 HTTP/1.1\r\nHost: models.example:80\r\n\r\n").status == 200
        assert wire.ask(b"GET /v2 HTTP/1.1\r\nHost: evil.example\r\n\r\n").status == 421


def test_pages_of_other_origins_are_refused(wire: Wire, models: Models) -> None:
    assert wire.ask(get("/v2", "Origin: http://evil.example")).status == 403
    assert wire.ask(get("/v2", "Origin: null")).status == 403
    reply = wire.ask(get("/v2", "Origin: http://localhost"))
    assert reply.status == 200 and "access-control-allow-origin" not in reply.headers
    with port_of(models, origins=["http://good.example"]) as port, Wire(port) as other:
        reply = other.ask(get("/v2", "Origin: http://good.example"))
        assert reply.headers["access-control-allow-origin"] == "http://good.example"
        assert other.ask(get("/v2", "Origin: http://evil.example")).status == 403


def test_the_access_log_has_a_line_of_json_per_request(
    models: Models, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.INFO, "mindspore_lite.server.access"),
        port_of(models, logs=True) as port,
        Wire(port) as wire,
    ):
        wire.ask(infer(1))
        wire.ask(get('/a"b', "X-Request-Id: 7"))
    lines = [json.loads(record.message) for record in caplog.records]
    assert [(line["method"], line["status"]) for line in lines] == [("POST", 200), ("GET", 404)]
    assert lines[1]["path"] == '/a"b' and lines[1]["id"] == "7"
    assert lines[0]["ms"] > 0 and lines[0]["client"] == "127.0.0.1"


def test_a_port_that_is_taken_says_so(port: HttpPort, models: Models) -> None:
    from mindspore_lite.server.core import Core
    from mindspore_lite.server.http.port import HttpOptions

    with pytest.raises(EngineError, match="cannot be opened"):
        HttpPort(Core(models), HttpOptions(port=port.number)).start()


def test_idle_connections_do_not_disturb(port: HttpPort) -> None:
    idle = [Wire(port) for _ in range(200)]
    with Wire(port) as wire:
        assert wire.ask(infer(*range(10))).status == 200
    for other in idle:
        other.close()


# --- what nobody should send ---


def test_a_number_of_any_length_is_refused(wire: Wire) -> None:
    """Python itself refuses to read numbers of more than 4300 digits."""
    head = f"Inference-Header-Content-Length: {'9' * 5000}"
    wire.send(post(FP32, b"x", head, length=20))
    wire.send(b"x" * 19)
    assert wire.reply().status == 400
    assert wire.ask(infer(1)).status == 200


@pytest.mark.parametrize("length", [None, b"", b"0", b"137", b"x", b"-1", b"9" * 18, b"9" * 5000])
def test_a_body_lies_so_that_its_tensor_is_aligned(length: bytes | None) -> None:
    found = np.frombuffer(_aligned(1000, length), np.uint8)
    assert found.size == 1000
    if length in (b"0", b"137"):
        assert (found.__array_interface__["data"][0] + int(length)) % 64 == 0


def test_half_a_character_is_refused(wire: Wire) -> None:
    tensor = b'"inputs":[{"name":"IN","datatype":"FP32","shape":[1],"data":[1]}]'
    assert wire.ask(post(FP32, b'{"id":"\\ud800",' + tensor + b"}")).status == 400
    assert wire.ask(post(FP32, b"{" + tensor.replace(b"IN", b"\\udfff") + b"}")).status == 400
    assert wire.ask(post(FP32, b"{" + tensor + b"}")).status == 200


def test_what_a_body_inflates_to_counts_as_bytes_in_flight(models: Models) -> None:
    import zlib

    body = zlib.compress(bytes(400_000))
    length = "Inference-Header-Content-Length: 0"
    with port_of(models, Limits(flight_bytes=200_000)) as port, Wire(port) as wire:
        reply = wire.ask(post(FP32, body, "Content-Encoding: deflate", length))
        assert (reply.status, reply.headers["retry-after"]) == (503, "1")
        assert port.core.flight.bytes == 0
    with port_of(models) as port, Wire(port) as wire:
        assert wire.ask(post(FP32, body, "Content-Encoding: deflate", length)).status == 200
        wait_for(lambda: port.core.flight.bytes == 0)


def test_a_client_that_takes_a_byte_at_a_time_is_cut_off(port: HttpPort) -> None:
    connection, transport = Connection(port), SlowTransport()
    connection.connection_made(transport)
    connection.pause_writing()
    transport.unsent -= 100
    connection.look(port.loop.time() + 2 * port.core.limits.send_s)
    assert transport.is_aborted
    connection.connection_lost(None)
