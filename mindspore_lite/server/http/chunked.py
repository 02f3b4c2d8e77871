"""Chunked bodies, read as strictly as heads: what one reader takes and another does not is refused.

body = ChunkedBody(limits, flight)
rest = body.feed(data)      None: more is needed; else the bytes behind the body
"""

from __future__ import annotations

import re
from typing import Any

from mindspore_lite.server.core import Flight
from mindspore_lite.server.errors import Kind, RequestError
from mindspore_lite.server.http.head import bad
from mindspore_lite.server.http.sink import FileSink
from mindspore_lite.server.limits import Limits

_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[\t\x20-\x7e]*)?", re.ASCII)
_TRAILER = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*", re.ASCII)
_MOST_LINE = 256  # bytes of a chunk's first line, extensions included; guess


class ChunkedBody:
    """Joins the chunks of one body. What it counted in `flight` is `counted`."""

    def __init__(
        self,
        limits: Limits,
        flight: Flight,
        most_bytes: int | None = None,
        sink: FileSink | None = None,
    ) -> None:
        """Join the chunks in memory; or in a file, and then `content` is where they go."""
        self.content: Any = bytearray() if sink is None else sink
        self.counted = 0
        self._limits, self._flight = limits, flight
        self._most = limits.body_bytes if most_bytes is None else most_bytes
        self._line = b""  # of which the end is missing
        self._left = 0  # bytes of the chunk under way, with the CR LF behind it
        self._chunks = 0
        self._trailer_bytes = -1  # below 0: the last chunk has not come

    def feed(self, data: bytes) -> bytes | None:
        """Take bytes; returns what lies behind the body once it is complete.

        Raises:
            RequestError: They are no chunks, or too many.
        """
        data, at = self._line + data, 0
        self._line = b""
        while True:
            if self._left:
                at = self._taken(data, at)
                if self._left:
                    return None
            end = data.find(b"\r\n", at)
            if end < 0:
                self._keep(data[at:])
                return None
            line, at = data[at:end], end + 2
            if self._trailer_bytes >= 0:
                if not line:
                    return data[at:]
                self._check_trailer(line)
            else:
                self._begin(line)

    def _taken(self, data: bytes, at: int) -> int:
        """Copy what is there of the chunk under way; returns where it ends."""
        take = min(self._left, len(data) - at)
        content = min(take, max(0, self._left - 2))
        self.content += data[at : at + content]
        tail = data[at + content : at + take]
        wanted = b"\r\n"[2 - min(self._left - content, 2) :]
        if not wanted.startswith(tail):
            raise bad("a chunk does not end with CR LF")
        self._left -= take
        return at + take

    def _begin(self, line: bytes) -> None:
        """Read the line in front of a chunk, and count what it announces."""
        match = _SIZE.fullmatch(line)
        if match is None:
            raise bad("the size of a chunk must be hexadecimal digits")
        size = int(match[1], 16)
        if not size:
            self._trailer_bytes = 0
            return
        self._chunks += 1
        if self._chunks > self._limits.chunks:
            raise RequestError(
                Kind.INVALID,
                f"the body has more than {self._limits.chunks} chunks; send larger ones",
            )
        if len(self.content) + size > self._most:
            raise too_large(self._most)
        self._flight.take(size)
        self.counted += size
        self._left = size + 2

    def _check_trailer(self, line: bytes) -> None:
        self._trailer_bytes += len(line)
        if self._trailer_bytes > self._limits.head_bytes or not _TRAILER.fullmatch(line):
            raise bad("the trailers behind a chunked body are too long, or are none")

    def _keep(self, part: bytes) -> None:
        if b"\n" in part or b"\r" in part[:-1] or b"\0" in part:
            raise bad("lines end with CR LF")
        most = _MOST_LINE if self._trailer_bytes < 0 else self._limits.head_bytes
        if len(part) > most:
            raise bad("a line of the chunked body is too long")
        self._line = part


def too_large(most_bytes: int) -> RequestError:
    """The error for a body that is larger than allowed."""
    return RequestError(Kind.TOO_LARGE, f"the body is larger than the {most_bytes} bytes allowed")
