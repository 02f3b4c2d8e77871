"""Frames: messages on a stream socket, each a fixed header and a body.

byte  0  u32  0x464C534D, "MSLF"
      4  u16  message
      6  u16  0
      8  u64  request id, chosen by the sender; the answer carries the same
     16  u64  length of the body
     24       the body
"""

from __future__ import annotations

import os
import select
import socket
import struct
import time
from contextlib import suppress
from enum import IntEnum
from typing import NamedTuple

from mindspore_lite.errors import WireError
from mindspore_lite.remote.wire.fields import microseconds

Buffer = bytes | bytearray | memoryview

MAX_BODY = 16 << 20  # larger things travel in shared memory
STALL_S = 30.0  # for which a message may stand still between its first byte and its last

_HEADER = struct.Struct("<IHHQQ")
HEADER_BYTES = _HEADER.size
_MAGIC = 0x464C534D
_CHUNK = 1 << 15


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
    DERIVE = 15


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
        self._rest = b""  # what came with a frame and belongs to the next
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
        data = self._rest or self._received(timeout_s)
        if not data:
            return None
        # with a deadline, do not wait longer for the rest than for the beginning
        rest_s = self._stall_s if timeout_s is None else min(timeout_s, self._stall_s)
        if len(data) < HEADER_BYTES:
            data = self._grown(data, HEADER_BYTES, rest_s)
        message, request, size = parsed_header(data)
        end = HEADER_BYTES + size
        if len(data) < end:
            data = self._grown(data, end, rest_s)
        self._rest = data[end:]  # nearly always nothing
        return Frame(message, request, memoryview(data)[HEADER_BYTES:end])

    def _grown(self, data: bytes, wanted: int, limit_s: float) -> bytes:
        """The data with more after it, until there are so many bytes."""
        found = bytearray(data)
        while len(found) < wanted:
            # by what came, not by what was announced: words alone must not cost memory
            more = self._received(limit_s, max(_CHUNK, min(len(found), wanted - len(found))))
            if not more:
                raise WireError(
                    f"the connection ended inside a frame: {len(found)} bytes of {wanted}"
                )
            found += more
        return bytes(found)

    def _received(self, timeout_s: float | None, most: int = _CHUNK) -> bytes:
        """Some bytes; none at the end of the connection."""
        if timeout_s != self._limit_s:
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _timeval(timeout_s))
            self._limit_s = timeout_s
        try:
            return self._sock.recv(most)
        except BlockingIOError as exc:
            raise TimeoutError(f"nothing came for {timeout_s:g} s") from exc

    def look(self, limit_s: float) -> None:
        """Stay awake for so long, in case that something comes; receive() has it then.

        A processor that sleeps takes longer to wake than a small answer to come.
        """
        end_s = time.perf_counter() + limit_s
        while not self._rest:
            try:
                self._rest = self._sock.recv(_CHUNK, socket.MSG_DONTWAIT)
                return
            except BlockingIOError:
                if time.perf_counter() > end_s:
                    return
                os.sched_yield()  # the other side may need this very processor

    def is_lost(self, limit_s: float) -> bool:
        """Whether the other side closes the connection within this time."""
        poll = select.poll()
        poll.register(self._sock, 0)  # POLLHUP is always reported
        return bool(poll.poll(limit_s * 1000))

    def interrupt(self) -> None:
        """End the connection but keep the descriptor: a thread that waits on it is woken."""
        with suppress(OSError):  # it may not be connected any more
            self._sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection."""
        self.interrupt()
        self._sock.close()

    def let_go(self) -> None:
        """Close the descriptor alone: the connection is others', as after a fork, or over."""
        self._sock.close()
