"""A client of HTTP/1.1 that keeps its connections, small enough not to slow a measurement down.

Requests are sent as bytes that were put together before; an answer is read into one buffer. Every
request has a connection to itself: as many are open as requests are under way.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import numpy as np

from mindspore_lite.bench.oip import (
    ANSWER_S,
    ASK_S,
    ServedModel,
    ServedTensor,
    Url,
    failure,
    raw_input,
    raw_output,
)
from mindspore_lite.core.json_text import read_json
from mindspore_lite.errors import CancelledError, EngineError, RequestTimeoutError, WireError
from mindspore_lite.server.datatypes import DATATYPES

_HEAD_BYTES = 1 << 16  # of an answer
_RECEIVE_BYTES = 1 << 16
_END = b"\r\n\r\n"


@dataclass(frozen=True)
class HttpAnswer:
    """What a server sent."""

    status: int
    headers: Mapping[str, str]  # by their names in lower case
    body: memoryview
    keeps: bool  # whether the connection can be used again

    @property
    def json(self) -> Any:
        """The body, read as JSON.

        Raises:
            ValueError: It is none.
        """
        return read_json(bytes(self.body))


class _GoneError(Exception):
    """The server closed the connection before it answered anything."""


class _Connection:
    """One connection, with one request under way at most."""

    def __init__(self, url: Url, limit_s: float) -> None:
        self.used = False
        self._socket = socket.create_connection((url.host, url.port), limit_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._rest = bytearray()  # received, and not read yet

    def exchange(self, request: bytes, limit_s: float) -> HttpAnswer:
        """Send a request, and read the answer.

        Raises:
            OSError: The connection breaks.
            ValueError: The answer is not HTTP.
        """
        self._socket.settimeout(limit_s)
        # a server that refuses a body may answer before it has read all of it
        with suppress(ConnectionError):
            self._socket.sendall(request)
        answer = self._answer()
        while 100 <= answer.status < 200:
            answer = self._answer()
        self.used = True
        return answer

    def _answer(self) -> HttpAnswer:
        status, headers, keeps = _head(self._until(_END))
        if status < 200 or status in (204, 304):
            body = bytearray()
        elif "chunked" in headers.get("transfer-encoding", "").lower():
            body = self._chunks()
        elif "content-length" in headers:
            body = self._take(_number(headers["content-length"], 10))
        else:
            body, keeps = self._all(), False
        return HttpAnswer(status, headers, memoryview(body), keeps)

    def _until(self, mark: bytes) -> bytes:
        """What comes before the mark, which is dropped."""
        while (end := self._rest.find(mark)) < 0:
            if len(self._rest) > _HEAD_BYTES:
                raise ValueError("its head does not end")
            received = self._socket.recv(_RECEIVE_BYTES)
            if not received:
                if not self._rest:
                    raise _GoneError
                raise ValueError("it ends in its head; is this the port of gRPC?")
            self._rest += received
        found = bytes(self._rest[:end])
        del self._rest[: end + len(mark)]
        return found

    def _take(self, count: int) -> bytearray:
        found = bytearray(count)
        at = min(count, len(self._rest))
        found[:at] = self._rest[:at]
        del self._rest[:at]
        view = memoryview(found)
        while at < count:
            received = self._socket.recv_into(view[at:])
            if not received:
                raise ValueError(f"it ends after {at} of {count} bytes")
            at += received
        return found

    def _chunks(self) -> bytearray:
        found = bytearray()
        while size := _number(self._until(b"\r\n").decode("latin-1").partition(";")[0], 16):
            found += self._take(size)
            self._until(b"\r\n")
        while self._until(b"\r\n"):
            pass  # trailers
        return found

    def _all(self) -> bytearray:
        found = self._rest
        while received := self._socket.recv(_RECEIVE_BYTES):
            found += received
        self._rest = bytearray()
        return found

    def end(self) -> None:
        """Wake the thread that waits for an answer; it closes."""
        with suppress(OSError):  # it may be closed already
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Free the socket."""
        self._socket.close()


def _head(text: bytes) -> tuple[int, dict[str, str], bool]:
    first, *lines = text.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    if not version.startswith("HTTP/1."):
        raise ValueError("it is no HTTP/1.1; is this the port of gRPC?")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    asked = headers.get("connection", "").lower()
    keeps = asked == "keep-alive" if version == "HTTP/1.0" else asked != "close"
    return _number(rest[:3], 10), headers, keeps


def _number(text: str, base: int) -> int:
    text = text.strip()
    if not text.isascii() or not text.isalnum():
        raise ValueError(f"{text[:20]!r} is no number")
    return int(text, base)


class HttpClient:
    """Asks a server over HTTP, with the binary extension. Its lock guards the connections."""

    def __init__(self, url: Url, token: str = "") -> None:
        self._url = url
        lines = f"Host: {url.place}\r\n"
        self._headers = lines + (f"Authorization: Bearer {token}\r\n" if token else "")
        self._lock = threading.Lock()
        self._idle: list[_Connection] = []
        self._busy: set[_Connection] = set()
        self._hung_up = 0  # how often; what was under way then is not tried again

    def names(self) -> list[str] | None:
        """Of all models; None where the server does not say, as Triton does not."""
        answer = self._get("/v2/models")
        if answer.status in (404, 405, 501):
            return None
        self._check(answer)
        try:
            return [str(name) for name in answer.json["models"]]
        except (ValueError, TypeError, KeyError):
            return None

    def describe(self, model: str) -> ServedModel:
        """What a model takes.

        Raises:
            LiteError: There is no server, or no such model.
        """
        answer = self._get(f"/v2/models/{quote(model, safe='')}")
        if answer.status != 404:
            self._check(answer)
        try:
            found = answer.json
            if answer.status == 404:
                raise EngineError(f"{self._url} has no model {model!r}: {found['error']}")
            inputs = [
                ServedTensor(one["name"], one["datatype"], tuple(map(int, one["shape"])))
                for one in found["inputs"]
            ]
        except (ValueError, TypeError, KeyError) as exc:
            raise EngineError(
                f"{self._url} answers {answer.status} without the inputs of a model; is it a "
                "server of the Open Inference Protocol?"
            ) from exc
        return ServedModel(model, tuple(inputs))

    def request(self, model: str, feed: Mapping[str, np.ndarray]) -> bytes:
        """Head, JSON and tensors of an inference."""
        inputs, blocks = [], []
        for name, array in feed.items():
            datatype, raw = raw_input(name, array)
            size = {"binary_data_size": len(raw)}
            shape = list(array.shape)
            inputs.append({"name": name, "datatype": datatype, "shape": shape, "parameters": size})
            blocks.append(raw)
        asked = {"inputs": inputs, "parameters": {"binary_data_output": True}}
        text = json.dumps(asked, separators=(",", ":")).encode()
        size_bytes = len(text) + sum(map(len, blocks))
        head = (
            f"POST /v2/models/{quote(model, safe='')}/infer HTTP/1.1\r\n{self._headers}"
            f"Content-Type: application/octet-stream\r\nContent-Length: {size_bytes}\r\n"
            f"Inference-Header-Content-Length: {len(text)}\r\n\r\n"
        )
        return b"".join([head.encode("latin-1"), text, *blocks])

    def infer(self, request: bytes) -> list[np.ndarray]:
        """The outputs, in the order of the answer.

        Raises:
            LiteError: It has none; QueueFullError if the server has no room for the request.
        """
        answer = self._ask(request, ANSWER_S)
        self._check(answer)
        try:
            return _outputs(answer)
        except (ValueError, TypeError, KeyError, AttributeError) as exc:
            raise WireError(f"{self._url} sent an answer that cannot be read: {exc}") from exc

    def hang_up(self) -> None:
        """End what is under way; what is asked later goes over new connections."""
        with self._lock:
            self._hung_up += 1
            idle, self._idle = self._idle, []
            for connection in self._busy:
                connection.end()
        for connection in idle:
            connection.close()

    def _get(self, path: str) -> HttpAnswer:
        request = f"GET {path} HTTP/1.1\r\n{self._headers}\r\n"
        return self._ask(request.encode("latin-1"), ASK_S)

    def _check(self, answer: HttpAnswer) -> None:
        if answer.status == 200:
            return
        text = bytes(answer.body[:4096]).decode("utf-8", "replace")
        with suppress(ValueError, TypeError, KeyError):  # it may be a proxy's page
            text = str(read_json(text)["error"])
        raise failure(self._url, answer.status, text)

    def _ask(self, request: bytes, limit_s: float) -> HttpAnswer:
        with self._lock:
            before = self._hung_up
            connection = self._idle.pop() if self._idle else None
        while True:
            connection = connection or self._opened(limit_s)
            try:
                return self._exchange(connection, request, limit_s)
            except (_GoneError, OSError, ValueError) as exc:
                if self._hung_up != before:
                    raise CancelledError("given up") from exc
                # a kept connection may have ended while it was idle; a request may be sent again
                if not connection.used or isinstance(exc, TimeoutError | ValueError):
                    raise self._error(exc, limit_s) from exc
                connection = None

    def _exchange(self, connection: _Connection, request: bytes, limit_s: float) -> HttpAnswer:
        with self._lock:
            self._busy.add(connection)
        answer = None
        try:
            answer = connection.exchange(request, limit_s)
        finally:
            with self._lock:
                self._busy.discard(connection)
                if answer is not None and answer.keeps:
                    self._idle.append(connection)
            if answer is None or not answer.keeps:
                connection.close()
        return answer

    def _opened(self, limit_s: float) -> _Connection:
        try:
            return _Connection(self._url, min(limit_s, ASK_S))
        except OSError as exc:
            raise WireError(
                f"there is no server at {self._url} ({exc.strerror or exc}); start one, such as "
                "mslite serve MODEL"
            ) from exc

    def _error(self, exc: Exception, limit_s: float) -> Exception:
        if isinstance(exc, TimeoutError):
            return RequestTimeoutError(f"{self._url} did not answer within {limit_s:g} s")
        if isinstance(exc, ValueError):
            return WireError(f"{self._url} sent an answer that cannot be read: {exc}")
        return WireError(f"{self._url} closed the connection without an answer ({exc})")


def _outputs(answer: HttpAnswer) -> list[np.ndarray]:
    length = answer.headers.get("inference-header-content-length")
    at = len(answer.body) if length is None else _number(length, 10)
    found = []
    for one in read_json(bytes(answer.body[:at]))["outputs"]:
        size = one.get("parameters", {}).get("binary_data_size")
        if size is None:
            known = DATATYPES.get(one["datatype"])
            values = np.array(one["data"], known.dtype if known else object)
            found.append(values.reshape(one["shape"]))
            continue
        found.append(raw_output(one["datatype"], one["shape"], answer.body[at : at + size]))
        at += size
    return found
