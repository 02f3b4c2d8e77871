"""One HTTP/1.1 connection: bytes in, requests to the routes, answers out, in order.

States:

    HEAD ──▶ BODY or CHUNKED ──▶ a request under way ──▶ HEAD        keep-alive
      │                                                  └──▶ closed
      ├──▶ SINK or CHUNKED ──▶ FLUSH: a large body that goes to a file (sink.py) ──▶ a request
      ├──▶ SKIP: a refused request's short body is read, then it is answered ──▶ HEAD
      ├──▶ STREAM: an answer without an end; it ends with the client, or with the server
      └──▶ LINGER: refused; what the client still sends is dropped until it has read the answer

A head is read into a buffer that all connections share: it is copied out before the loop goes on.
A body of known length is received straight into the memory that becomes the tensor, which is laid
so that the first tensor is aligned. One request is under way at a time: what a client sends ahead
waits in `_ahead`, and beyond a limit the socket is not read. While a request runs the socket is
read, so that a client that hangs up is noticed, and its request cancelled.

All of it runs on the loop's thread, without locks. Times are looked at by the port (`look`).
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mindspore_lite.server.access_log import log_access
from mindspore_lite.server.core import Flight
from mindspore_lite.server.errors import Kind, NoRoomError, RequestError, answer_to
from mindspore_lite.server.http.chunked import ChunkedBody, too_large
from mindspore_lite.server.http.exchange import Exchange
from mindspore_lite.server.http.head import Head, check_part, read_head
from mindspore_lite.server.http.reply import Reply, error_reply, head_bytes
from mindspore_lite.server.http.routes import Endpoint, WrongMethodError
from mindspore_lite.server.http.sink import FileSink
from mindspore_lite.server.meter import RequestTimes

if TYPE_CHECKING:
    from mindspore_lite.server.http.port import HttpPort

_HEAD, _BODY, _CHUNKED, _SKIP, _SINK, _FLUSH, _STREAM, _LINGER, _CLOSED = range(9)
_LINES = re.compile(rb"(?:\r\n)+")
_DIGITS = 19  # of a length that Python reads at once
_ALIGNED = 64  # bytes: a cache line, and the widest vector
_SKIPPED_BYTES = 64 * 1024  # of a refused request that are read, so that the connection can stay
_JOINED_BYTES = 32 * 1024  # of an answer that are copied together: one write is cheaper than two
_LINGER_S = 2.0  # for a refused client to read the answer; guess
_LEAST_CHUNK = 1024  # bytes of a chunk of a large body, on average; guess
_FOREVER = float("inf")
_REFUSED = 400  # the lowest status of errors
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Connection(asyncio.BufferedProtocol):
    """A client; see the module's text."""

    __slots__ = (
        "_ahead", "_began_ns", "_body", "_chunked", "_counted", "_endpoint", "_exchange",
        "_from_s", "_head", "_is_pumping", "_length", "_params", "_port", "_reads_paused",
        "_refusal", "_sink", "_state", "_transport", "_unsent", "_whole", "_write_paused", "due_s",
    )  # fmt: skip

    def __init__(self, port: HttpPort) -> None:
        self._port = port
        self._transport: Any = None
        self._state = _HEAD
        self._ahead = b""  # received, and not looked at yet
        self._exchange: Exchange | None = None
        self._head: Head | None = None
        self._endpoint: Endpoint | None = None
        self._params: Mapping[str, str] = {}
        self._whole = self._body = memoryview(b"")  # the body, and what is missing of it
        self._length = 0
        self._chunked: ChunkedBody | None = None
        self._sink: FileSink | None = None  # where the body goes, if that is a file
        self._counted = 0  # bytes in flight that belong to no exchange yet
        self._refusal: Reply | None = None  # to send when the body was skipped
        self._is_pumping = self._reads_paused = self._write_paused = False
        self._began_ns = 0  # when the first bytes of a request came
        self._from_s = 0.0  # when the body, or the end, began
        self._unsent = 0  # bytes of answers that the client has not taken
        self.due_s = _FOREVER  # when the client must have done something

    # --- what the transport calls ---

    def connection_made(self, transport: Any) -> None:
        """A client came."""
        self._transport = transport
        port = self._port
        if len(port.connections) >= port.core.limits.connections:
            refusal = RequestError(Kind.UNAVAILABLE, "there are too many connections", 1)
            self._write(error_reply(answer_to(refusal)), None, closes=True)
            self._close()
            return
        port.connections.add(self)
        self.due_s = port.loop.time() + port.core.limits.idle_s

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next bytes go."""
        return self._body if self._state == _BODY else self._port.scratch

    def buffer_updated(self, nbytes: int) -> None:
        """They came."""
        if self._state == _BODY:
            self._body = self._body[nbytes:]
            if not self._body.nbytes:
                self._dispatch()
                self._pump()
            return
        if self._state >= _STREAM:
            return
        self._ahead += bytes(self._port.scratch[:nbytes])
        self._pump()
        if self._has_enough() and not self._reads_paused:
            self._reads_paused = True  # until what is under way is answered
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        """The client hung up; half-closed connections are not served."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._state = _CLOSED
        self._port.connections.discard(self)
        self._give_back()
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.hung_up()

    def pause_writing(self) -> None:
        """The client reads too slowly."""
        self._write_paused = True
        self._unsent = self._transport.get_write_buffer_size()
        self.due_s = self._now() + self._port.core.limits.send_s

    def resume_writing(self) -> None:
        """It took some."""
        self._write_paused = False
        if self._state != _LINGER:
            self.due_s = self._port.loop.time() + self._port.core.limits.idle_s
        self._pump()

    # --- what the port calls ---

    @property
    def is_uploading(self) -> bool:
        """Whether a body goes to a file."""
        return self._sink is not None

    @property
    def is_idle(self) -> bool:
        """Whether nothing was begun that must be ended."""
        return self._state == _HEAD and self._exchange is None and not self._ahead

    def look(self, now_s: float) -> None:
        """End what takes too long."""
        limits = self._port.core.limits
        if self._state == _CLOSED and not self._transport.get_write_buffer_size():
            if now_s - self._from_s > _LINGER_S:  # over TLS, a client may never say good-bye
                self._transport.abort()
            return
        if self._state in (_BODY, _CHUNKED, _SKIP, _SINK):
            if self._sink is not None and self._sink.is_full:
                return  # it is our disk that is slow
            slow_s = now_s - self._from_s - limits.body_grace_s
            if slow_s > 0 and self._got_bytes() < slow_s * limits.body_rate:
                self._refuse(RequestError(Kind.TOO_SLOW, "the body came too slowly"), closes=True)
            return
        if now_s < self.due_s or self._exchange is not None:
            return
        if self._write_paused:
            unsent = self._transport.get_write_buffer_size()
            if self._unsent - unsent >= limits.send_s * limits.body_rate:
                self._unsent, self.due_s = unsent, now_s + limits.send_s
                return
        if self._state == _HEAD and self._ahead and not self._write_paused:
            text = f"the head was not complete within {limits.head_s:g} s"
            self._refuse(RequestError(Kind.TOO_SLOW, text), closes=True)
        elif self._transport is not None:
            self._transport.abort() if self._write_paused else self._close()

    def end_soon(self, within_s: float) -> None:
        """The server is ending: close after the answer under way, or when it stays idle."""
        if self._state == _STREAM:
            is_behind = self._transport.get_write_buffer_size() > 0
            self._transport.abort() if is_behind else self._close()
        elif self._exchange is None:
            self.due_s = min(self.due_s, self._port.loop.time() + within_s)

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    # --- reading ---

    def _pump(self) -> None:
        """Work on what was received, as far as that goes now."""
        if self._is_pumping:
            return
        self._is_pumping = True
        try:
            while (
                self._ahead
                and self._exchange is None
                and not self._write_paused
                and self._state in (_HEAD, _CHUNKED, _SKIP, _SINK)
            ):
                if not self._step():
                    break
        except RequestError as exc:
            self._refuse(exc, closes=True)
        finally:
            self._is_pumping = False
        if self._reads_paused and not self._has_enough():
            self._reads_paused = False
            if self._state != _CLOSED:
                self._transport.resume_reading()

    def _step(self) -> bool:
        """One step; False when more bytes are needed for the next."""
        if self._state == _HEAD:
            return self._take_head()
        if self._state == _CHUNKED:
            assert self._chunked is not None
            data, self._ahead = self._ahead, b""
            rest = self._chunked.feed(data)
            if rest is None:
                return False
            if self._sink is not None:
                self._ahead = rest
                self._flush(self._sink)
                return True
            self._ahead, self._counted = rest, self._chunked.counted
            self._whole = memoryview(self._chunked.content)
            self._chunked = None
            self._dispatch()
            return True
        if self._state == _SINK:
            return self._step_sink()
        taken = min(self._length, len(self._ahead))
        self._length -= taken
        self._ahead = self._ahead[taken:]
        if self._length:
            return False
        refusal, self._refusal = self._refusal, None
        assert refusal is not None
        self._restart()
        if self._send(refusal, self._head):
            self._close()
        return True

    def _step_sink(self) -> bool:
        assert self._sink is not None
        part, self._ahead = self._ahead[: self._length], self._ahead[self._length :]
        self._length -= len(part)
        self._sink += part
        if not self._length:
            self._flush(self._sink)
        return True

    def _flush(self, sink: FileSink) -> None:
        """All of a body that goes to a file is here: wait until it is written."""
        self._state, self._chunked = _FLUSH, None
        sink.finish()

    def _sunk(self, sink: FileSink) -> None:
        """Something was written, or could not be."""
        if self._sink is not sink:
            return
        if sink.error is not None:
            self._refuse(sink.error, closes=True)
            return
        if sink.is_written:
            self._dispatch()
        self._pump()

    def _has_enough(self) -> bool:
        """Whether the client is to wait."""
        is_full = self._sink is not None and self._sink.is_full
        return is_full or len(self._ahead) > self._port.core.limits.pipelined_bytes

    def _take_head(self) -> bool:
        ahead, limits = self._ahead, self._port.core.limits
        self._head = None  # that of the request before, which may be refused no more
        if not self._began_ns:
            self._began_ns = time.monotonic_ns()
        if ahead.startswith(b"\r\n"):  # some clients send an empty line behind a body
            self._ahead = ahead[_LINES.match(ahead).end() :]  # type: ignore[union-attr]
            return True
        end = ahead.find(b"\r\n\r\n", 0, limits.head_bytes)
        if end < 0:
            if len(ahead) >= limits.head_bytes:
                raise RequestError(
                    Kind.HEAD_TOO_LARGE,
                    f"the head is longer than the {limits.head_bytes} bytes allowed",
                )
            check_part(ahead)
            self.due_s = min(self.due_s, self._port.loop.time() + limits.head_s)
            return False
        raw, self._ahead = ahead[: end + 4], ahead[end + 4 :]
        known = self._port.known.get(raw)
        self.due_s = _FOREVER
        self._head = head = read_head(raw, limits) if known is None else known[0]
        try:
            if known is None:
                known = self._port.admitted(raw, head)
            _, self._endpoint, self._params = known
            self._begin_body(head, self._endpoint)
        except RequestError as exc:
            if isinstance(exc, NoRoomError) and "model" in self._params:
                self._port.core.refused_body(self._params["model"], self._params.get("version", ""))
            self._refuse(exc)
        return True

    def _begin_body(self, head: Head, endpoint: Endpoint) -> None:
        """Make room for the body, if it may be sent at all."""
        core = self._port.core
        if endpoint.sink is not None and head.length != 0:
            self._begin_sink(head, endpoint.sink(core, head, self._params))
            return
        most = core.limits.body_bytes if endpoint.most_body is None else endpoint.most_body
        if head.length is None:
            self._chunked = ChunkedBody(core.limits, core.flight, most)
            self._state = _CHUNKED
        else:
            if head.length > most:
                raise too_large(most)
            if head.length:
                core.flight.take(head.length)
                self._counted = head.length
            if head.length <= len(self._ahead):  # it is there already, and is copied if it must be
                self._whole = memoryview(self._ahead)[: head.length]
                self._ahead = self._ahead[head.length :]
                self._dispatch()
                return
            self._receive(head, head.length)
        self._await_body(head)

    def _begin_sink(self, head: Head, most: int) -> None:
        """Let a body of so many bytes at most go to a file."""
        if head.length is not None and head.length > most:
            raise too_large(most)
        self._sink = self._port.new_sink(self._sunk)
        if head.length is None:
            limits = replace(self._port.core.limits, chunks=max(1, most // _LEAST_CHUNK))
            self._chunked = ChunkedBody(limits, Flight(most), most, self._sink)
            self._state = _CHUNKED
        else:
            self._length, self._state = head.length, _SINK
        self._await_body(head)

    def _await_body(self, head: Head) -> None:
        self._from_s = self._port.loop.time()
        if head.expects and not self._ahead:
            self._transport.write(_CONTINUE)

    def _receive(self, head: Head, length: int) -> None:
        """Lay memory out for a body, and take what is there of it."""
        have = len(self._ahead)
        self._whole = _aligned(length, head.headers.get(b"inference-header-content-length"))
        self._whole[:have] = self._ahead
        self._ahead, self._body = b"", self._whole[have:]
        self._length, self._state = length, _BODY

    def _dispatch(self) -> None:
        """The request is complete: answer it."""
        assert self._head is not None and self._endpoint is not None
        exchange = self._exchange = Exchange(
            self, self._port.threads, self._port.core, self._head, self._endpoint, self._params,
            self._counted, self._began_ns,
        )  # fmt: skip
        exchange.body = self._whole
        exchange.sink, self._sink = self._sink, None
        self._counted = 0
        self._restart()
        exchange.begin()

    def _restart(self) -> None:
        """Be ready for the next head."""
        self._state, self._chunked, self._length, self._began_ns = _HEAD, None, 0, 0
        self._body = self._whole = memoryview(b"")

    def _got_bytes(self) -> int:
        if self._state == _CHUNKED:
            assert self._chunked is not None
            return len(self._chunked.content)
        if self._state == _SINK:
            return len(self._sink or ())
        return self._length - self._body.nbytes if self._state == _BODY else 0

    # --- answering ---

    def answered(self, exchange: Exchange, reply: Reply) -> None:
        """Send the answer to the request under way."""
        if self._exchange is not exchange or self._state == _CLOSED:
            return
        self._exchange = None
        if self._send(reply, exchange.head, exchange.times):
            self._close()
        else:
            self._pump()

    def begin_stream(self, exchange: Exchange, reply: Reply) -> None:
        """Send the first part of an answer without an end; the request stays under way."""
        if self._exchange is exchange and self._state != _CLOSED:
            self._state = _STREAM
            self._send(reply, exchange.head, closes=True)

    def stream_more(self, exchange: Exchange, data: bytes) -> None:
        """Send another part; a client that does not read is dropped."""
        if self._exchange is not exchange or self._state != _STREAM:
            return
        if self._transport.get_write_buffer_size() > self._port.core.limits.stream_bytes:
            self._transport.abort()
        else:
            self._transport.write(data)

    def _refuse(self, exc: RequestError, closes: bool = False) -> None:
        """Answer a request before its body was read; then the connection stays if it can."""
        self._give_back()
        skipping, self._refusal = self._refusal, None
        reply = skipping or error_reply(answer_to(exc))
        if isinstance(exc, WrongMethodError):
            reply.headers.append((b"allow", exc.allow))
        head = self._head
        length = None if head is None or head.expects else head.length
        if closes or length is None or length > _SKIPPED_BYTES:
            self._send(reply, head, closes=True)
            self._linger()
            return
        self._restart()
        if length:
            self._state = _SKIP
            self._refusal, self._length, self._from_s = reply, length, self._now()
        elif self._send(reply, head):
            self._close()

    def _send(
        self,
        reply: Reply,
        head: Head | None,
        times: RequestTimes | None = None,
        *,
        closes: bool = False,
    ) -> bool:
        """Write an answer; whether the connection must be closed behind it."""
        port = self._port
        closes = closes or head is None or not head.keeps_alive or port.core.is_ending
        if head is not None:
            if head.request_id is not None:
                reply.headers.append((b"x-request-id", head.request_id))
            if b"origin" in head.headers:
                port.allow_origin(reply, head.headers[b"origin"])
        self.due_s = self._now() + port.core.limits.idle_s
        self._write(reply, head, closes=closes)
        observer = port.core.observer
        if times is not None:
            observer.sent(times, reply.status, "http")
        if reply.status >= _REFUSED:
            observer.refused.add(reply.status)
        if port.logs:
            log_access(self._transport, head, reply, times)
        return closes

    def _write(self, reply: Reply, head: Head | None, *, closes: bool) -> None:
        length = reply.length
        start = head_bytes(reply, length, is_old=head is not None and head.is_old, closes=closes)
        if head is not None and head.method == "HEAD":
            self._transport.write(start)
        elif length <= _JOINED_BYTES:
            self._transport.write(b"".join([start, *reply.parts]))
        else:
            self._transport.write(b"".join([start, reply.parts[0]]))
            for part in reply.parts[1:]:
                self._transport.write(part)

    def _linger(self) -> None:
        """Let a refused client read the answer; to close at once might cost it that."""
        self._state, self._ahead = _LINGER, b""
        self.due_s = self._now() + _LINGER_S
        if self._reads_paused:
            self._reads_paused = False
            self._transport.resume_reading()
        if self._transport.can_write_eof():
            self._transport.write_eof()
        else:
            self._close()

    def _close(self) -> None:
        self._state, self._from_s = _CLOSED, self._now()
        self._transport.close()

    def _give_back(self) -> None:
        counted = self._counted if self._chunked is None else self._chunked.counted
        if self._sink is not None:
            self._sink.close()
            self._sink, counted = None, 0
        self._counted, self._chunked = 0, None
        if counted:
            self._port.core.flight.give(counted)

    def _now(self) -> float:
        return self._port.loop.time()


def _aligned(length: int, header_length: bytes | None) -> memoryview:
    """Memory for a body whose first tensor, behind the JSON header, begins at a cache line."""
    skip = 0  # what is no number is refused later
    if header_length is not None and len(header_length) < _DIGITS and header_length.isdigit():
        skip = int(header_length)
    memory = np.empty(length + _ALIGNED, np.uint8)
    start = -(memory.__array_interface__["data"][0] + skip) % _ALIGNED
    return memory[start : start + length].data
