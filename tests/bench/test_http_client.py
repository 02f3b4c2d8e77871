"""bench/http_client.py against a server that answers what the test says, byte by byte."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pytest
from support.fake_engine import LIMIT_S

from mindspore_lite.bench.http_client import HttpClient
from mindspore_lite.bench.oip import Url
from mindspore_lite.errors import LiteError, QueueFullError, WireError

OUTPUT = b'{"outputs":[{"name":"y","datatype":"FP32","shape":[2],"data":[1,2.5]}]}'
BINARY = (
    b'{"outputs":[{"name":"y","datatype":"FP32","shape":[1],"parameters":{"binary_data_size":4}}]}'
)
ONE = np.ones(1, np.float32)


def reply(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


class Scripted:
    """Each connection is a list of answers, one for each request; then it is closed."""

    def __init__(self, connections: Sequence[Sequence[bytes]]) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(LIMIT_S)
        self._connections = connections
        self.requests: list[bytes] = []
        self.url = Url("http", "127.0.0.1", self._listener.getsockname()[1])
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        for answers in self._connections:
            taken, _ = self._listener.accept()
            taken.settimeout(LIMIT_S)
            with taken, taken.makefile("rb") as received:
                for answer in answers:
                    self.requests.append(_request(received))
                    taken.sendall(answer)

    def close(self) -> None:
        self._thread.join(LIMIT_S)
        self._listener.close()
        assert not self._thread.is_alive(), "the client did not connect as often as was said"


def _request(received: object) -> bytes:
    head, length = b"", 0
    for line in received:  # type: ignore[attr-defined]
        head += line
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
        if line == b"\r\n":
            break
    return head + received.read(length)  # type: ignore[attr-defined, no-any-return]


@contextmanager
def scripted(*connections: Sequence[bytes]) -> Iterator[tuple[Scripted, HttpClient]]:
    server = Scripted(connections)
    client = HttpClient(server.url)
    try:
        yield server, client
    finally:
        client.hang_up()
        server.close()


def test_a_request_is_json_and_the_bytes_of_its_inputs() -> None:
    with scripted([reply(OUTPUT)]) as (server, client):
        found = client.infer(client.request("a/b", {"x": ONE}))
    assert [array.tolist() for array in found] == [[1.0, 2.5]]
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v2/models/a%2Fb/infer HTTP/1.1\r\n")
    text = (
        b'{"inputs":[{"name":"x","datatype":"FP32","shape":[1],"parameters":'
        b'{"binary_data_size":4}}],"parameters":{"binary_data_output":true}}'
    )
    assert body == text + ONE.tobytes()
    assert b"Inference-Header-Content-Length: %d" % len(text) in head


@pytest.mark.parametrize(
    "answer",
    [
        reply(BINARY + ONE.tobytes(), "200 OK", f"inference-header-content-length: {len(BINARY)}"),
        b"HTTP/1.1 100 Continue\r\n\r\n"
        + reply(BINARY + ONE.tobytes(), "200", f"Inference-Header-Content-Length:{len(BINARY)}"),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"1F;x=y\r\n" + OUTPUT[:31] + b"\r\n"
        b"%X\r\n" % (len(OUTPUT) - 31) + OUTPUT[31:] + b"\r\n0\r\nTrailer: x\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\n" + OUTPUT,
    ],
    ids=["binary", "after 100", "chunked", "until the end"],
)
def test_every_form_of_an_answer_is_read(answer: bytes) -> None:
    with scripted([answer]) as (_, client):
        (found,) = client.infer(client.request("m", {"x": ONE}))
    assert found.tolist() in ([1.0], [1.0, 2.5])


def test_a_connection_is_kept_and_opened_anew_after_it_ended_while_idle() -> None:
    with scripted([reply(OUTPUT), reply(OUTPUT)], [reply(OUTPUT)]) as (server, client):
        request = client.request("m", {"x": ONE})
        for _ in range(3):
            assert len(client.infer(request)) == 1
    assert len(server.requests) == 3


def test_a_connection_is_not_used_again_where_the_server_says_so() -> None:
    closing = reply(OUTPUT, "200 OK", "Connection: close")
    with scripted([closing], [closing]) as (server, client):
        request = client.request("m", {"x": ONE})
        client.infer(request)
        client.infer(request)
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "closed the connection without an answer"),
        (b"HTTP/1.1 200", "it ends in its head"),
        (b"\0\0\x12\4\0\0\0\0\0\r\n\r\n", "is this the port of gRPC?"),
        (b"HTTP/1.1 2x0 OK\r\n\r\n", "cannot be read"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "'-1' is no number"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", "it ends after 3 of 9 bytes"),
        (b"HTTP/1.1 200 OK\r\n" + b"a" * 200_000, "its head does not end"),
        (reply(b"{}"), "cannot be read"),
        (reply(b"[1]"), "cannot be read"),
        (reply(b'{"outputs":[{"parameters":null}]}'), "cannot be read"),
        (reply(BINARY, "200 OK", "Inference-Header-Content-Length: 96"), "cannot be read"),
    ],
)
def test_an_answer_that_cannot_be_read_is_an_error(answer: bytes, words: str) -> None:
    with scripted([answer]) as (_, client), pytest.raises(WireError) as caught:
        client.infer(client.request("m", {"x": ONE}))
    assert words in str(caught.value)


def test_an_error_has_the_words_of_the_server_or_of_a_proxy() -> None:
    answers = [reply(b'{"error":"full"}', "503 Busy"), reply(b"<h1>no</h1>", "502 Bad Gateway")]
    with scripted(answers) as (_, client):
        request = client.request("m", {"x": ONE})
        with pytest.raises(QueueFullError, match=r"refuses the request \(503\): full"):
            client.infer(request)
        with pytest.raises(LiteError, match="answers 502: <h1>no</h1>"):
            client.infer(request)


@pytest.mark.parametrize("body", [b"", b"{}", b'{"inputs":[{"name":"x"}]}', b"<html>"])
@pytest.mark.parametrize("status", ["200 OK", "404 Not Found"])
def test_something_else_than_a_server_of_models_is_said_to_be_none(
    body: bytes, status: str
) -> None:
    with (
        scripted([reply(body, status)]) as (_, client),
        pytest.raises(LiteError, match="is it a server of the Open Inference Protocol"),
    ):
        client.describe("m")


@pytest.mark.parametrize("answer", [reply(b"{}", "404 Not Found"), reply(b"[]")])
def test_a_server_need_not_list_its_models(answer: bytes) -> None:
    with scripted([answer]) as (_, client):
        assert client.names() is None
