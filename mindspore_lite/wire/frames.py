"""Frames: a fixed header and a body go over a stream socket, one message after the other.

byte  0  u32  0x464C534D, "MSLF"
      4  u16  message
      6  u16  0
      8  u64  request id, chosen by who asks; the answer carries the same
     16  u64  length of the body
     24       the body
"""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from enum import IntEnum
from typing import NamedTuple

from mindspore_lite.errors import WireError
from mindspore_lite.wire.fields import microseconds

Buffer = bytes | bytearray | memoryview

MAX_BODY = 16 << 20  # larger things travel in shared memory
STALL_S = 30.0  # for which a message may stand still between its first byte and its last

_HEADER = struct.Struct("<IHHQQ")
HEADER_BYTES = _HEADER.size
_MAGIC = 0x464C534D
_CHUNK = 1 << 16


class Message(IntEnum):
    """What a frame is about. The first five are those of MindSpore Lite's multi-card example."""

    ERROR = 0
    PREDICT = 1
    REPLY = 2
    BUILD_FINISH = 3
    EXIT = 4
    BUILD = 5
    DESCRIBE = 6
    RESIZE = 7
    UPDATE_WEIGHTS = 8
    INFO = 9
    STATISTICS = 10
    CANCEL = 11
    CLOSE = 12
    ALLOCATE = 13
    FREE = 14


_MESSAGES = {int(message): message for message in Message}


class Frame(NamedTuple):
    """One message."""

    message: Message
    request: int
    body: memoryview


def header(message: int, request: int, size: int) -> bytes:
    """The header of a frame."""
    return _HEADER.pack(_MAGIC, message, 0, request, size)


def parsed_header(data: Buffer) -> tuple[Message, int, int]:
    """(message, request id, length of the body), checked."""
    magic, number, reserved, request, size = _HEADER.unpack_from(data)
    if magic != _MAGIC:
        raise WireError(f"a frame begins with 0x{magic:08x}, wanted 0x{_MAGIC:08x}")
    message = _MESSAGES.get(number)
    if message is None:
        raise WireError(f"there is no message {number}; the last one is {max(_MESSAGES)}")
    if reserved:
        raise WireError(f"bytes 6 and 7 of a frame are 0x{reserved:04x}, wanted 0")
    if size > MAX_BODY:
        raise WireError(
            f"a body of {size} bytes was announced, at most {MAX_BODY} are allowed; "
            "send large tensors in shared memory"
        )
    return message, request, size


def _timeval(limit_s: float | None) -> bytes:
    """As the kernel wants it: seconds and microseconds, both 0 for no limit."""
    return struct.pack("@ll", *divmod(microseconds(limit_s), 10**6))


class Channel:
    """Frames over one connected socket. One thread at a time may send, one may receive."""

    def __init__(self, sock: socket.socket, stall_s: float = STALL_S) -> None:
        self._sock = sock
        self._stall_s = stall_s
        self._buffer = bytearray(_CHUNK)
        self._held = 0  # bytes in the buffer that belong to the next frame
        # the kernel's own timeouts: Python's would cost two more system calls per message
        sock.settimeout(None)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _timeval(stall_s))
        self._limit_s: float | None = None

    def fileno(self) -> int:
        """The socket's descriptor."""
        return self._sock.fileno()

    def send(self, message: Message, request: int, body: Buffer = b"") -> None:
        """Send one frame.

        Raises:
            OSError: The other side is gone, or does not read what was sent before.
        """
        if len(body) > MAX_BODY:
            raise WireError(f"a body of {len(body)} bytes cannot be sent, at most {MAX_BODY} can")
        self._sock.sendall(header(message, request, len(body)) + body)

    def receive(self, timeout_s: float | None = None) -> Frame | None:
        """The next frame; None when the other side closed the connection between two frames.

        Raises:
            TimeoutError: No frame began within timeout_s, or it stalled.
            WireError: What came is no frame.
            OSError: The connection broke.
        """
        if self._held < HEADER_BYTES and not self._fill(HEADER_BYTES, timeout_s):
            return None
        message, request, size = parsed_header(self._buffer)
        end = HEADER_BYTES + size
        if self._held < end:
            self._fill(end, self._stall_s)
        # a copy, so that the buffer can go on being filled; large things are not in here
        body = memoryview(bytes(memoryview(self._buffer)[HEADER_BYTES:end]))
        self._held -= end
        if self._held:
            self._buffer[: self._held] = self._buffer[end : end + self._held]
        if len(self._buffer) > _CHUNK and self._held <= _CHUNK:
            self._buffer = self._buffer[:_CHUNK]
        return Frame(message, request, body)

    def _fill(self, wanted: int, timeout_s: float | None) -> bool:
        """Have so many bytes in the buffer; False when the connection ended before the first."""
        self._within(timeout_s if not self._held else self._stall_s)
        while self._held < wanted:
            if self._held == len(self._buffer):
                # by what came, not by what was announced: words alone must not cost memory
                self._buffer += bytes(min(wanted, 2 * self._held) - self._held)
            try:
                with memoryview(self._buffer) as view:
                    got = self._sock.recv_into(view[self._held :])
            except BlockingIOError as exc:
                raise TimeoutError(f"nothing came for {self._limit_s:g} s") from exc
            if not got:
                if not self._held:
                    return False
                raise WireError(
                    f"the connection ended inside a frame: {self._held} bytes of {wanted}"
                )
            self._held += got
            if self._held < wanted:
                self._within(self._stall_s)
        return True

    def _within(self, limit_s: float | None) -> None:
        if limit_s != self._limit_s:
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _timeval(limit_s))
            self._limit_s = limit_s

    def close(self) -> None:
        """Close the connection; who waits on it in another thread is woken."""
        with suppress(OSError):  # it may not be connected any more
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()

    def let_go(self) -> None:
        """Close this process' end alone, after a fork."""
        self._sock.close()
