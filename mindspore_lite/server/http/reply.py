"""An HTTP answer, and its bytes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from functools import cache
from http import HTTPStatus
from typing import Any

import msgspec

from mindspore_lite.server.errors import Answer, Kind

JSON, BINARY = b"application/json", b"application/octet-stream"
Header = tuple[bytes, bytes]


@dataclass(slots=True)
class Reply:
    """An answer: its body is sent in parts, which are not joined."""

    status: int = 200
    parts: Sequence[Any] = ()  # bytes and views of arrays
    content_type: bytes = JSON
    headers: list[Header] = field(default_factory=list)
    is_endless: bool = False  # more parts follow until the connection is closed

    @property
    def length(self) -> int:
        """Of the body."""
        length = 0
        for part in self.parts:
            length += len(part)  # views are of bytes
        return length


def json_reply(value: Mapping[str, Any] | Sequence[Any]) -> Reply:
    """An answer of JSON."""
    return Reply(200, (msgspec.json.encode(value),))


def error_reply(answer: Answer) -> Reply:
    """The answer to a request that failed."""
    reply = Reply(answer.kind.status, (msgspec.json.encode({"error": answer.text}),))
    if answer.retry_after_s is not None:
        reply.headers.append((b"retry-after", b"%d" % answer.retry_after_s))
    if answer.kind is Kind.ENCODING:
        reply.headers.append((b"accept-encoding", b"gzip, deflate"))
    if answer.kind is Kind.UNAUTHENTICATED:
        reply.headers.append((b"www-authenticate", b"Bearer"))
    return reply


def head_bytes(reply: Reply, length: int, *, is_old: bool, closes: bool) -> bytes:
    """The head of an answer."""
    more = b"".join([b"%b: %b\r\n" % header for header in reply.headers])
    if closes:
        more += b"connection: close\r\n"
    elif is_old:
        more += b"connection: keep-alive\r\n"
    return b"%b%bcontent-type: %b\r\n%b%b\r\n" % (
        _status_line(reply.status, is_old),
        _date(int(time.time())),
        reply.content_type,
        b"" if reply.is_endless else b"content-length: %d\r\n" % length,
        more,
    )


@cache
def _status_line(status: int, is_old: bool) -> bytes:
    version, phrase = "1.0" if is_old else "1.1", HTTPStatus(status).phrase
    return f"HTTP/{version} {status} {phrase}\r\n".encode()


_last: tuple[int, bytes] = (0, b"")


def _date(now_s: int) -> bytes:
    """The Date header, made once a second."""
    global _last
    if _last[0] != now_s:
        _last = (now_s, f"date: {formatdate(now_s, usegmt=True)}\r\n".encode())
    return _last[1]
