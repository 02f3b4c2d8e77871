"""The first bytes on a connection: versions and session. Their format never changes.

client:  byte 0  8 bytes  "MSLITE\\r\\n"
              8  u16      lowest version it speaks
             10  u16      highest
             12  u32      0
             16  16 bytes token of the session to join; zeros open a new one
worker:  byte 0  8 bytes  "MSLITE\\r\\n"
              8  u16      the version both will speak; 0: refused
             10  u16      0
             12  i32      0, or the code of the error
             16  16 bytes token of the session
             32  u32      process id of the worker
             36  u32      length of the text
             40           text, UTF-8: where further lanes connect to, or why it was refused
"""

from __future__ import annotations

import os
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass

from mindspore_lite.errors import ResourceError, WireError

VERSION = 2  # 2: PREDICT has a priority
TOKEN_BYTES = 16
NEW_SESSION = bytes(TOKEN_BYTES)
TIMEOUT_S = 10.0  # for both to say hello; guess

_MAGIC = b"MSLITE\r\n"
_HELLO = struct.Struct("<8sHHI16s")
_WELCOME = struct.Struct("<8sHHi16sII")
_MAX_TEXT = 4096


@dataclass(frozen=True)
class Hello:
    """What a client says first."""

    lowest: int = VERSION
    highest: int = VERSION
    token: bytes = NEW_SESSION

    def encoded(self) -> bytes:
        """The bytes of it."""
        return _HELLO.pack(_MAGIC, self.lowest, self.highest, 0, self.token)


@dataclass(frozen=True)
class Welcome:
    """What a worker answers; version 0 refuses."""

    version: int
    code: int
    token: bytes
    pid: int
    text: str

    def encoded(self) -> bytes:
        """The bytes of it."""
        text = self.text.encode("utf-8", "surrogateescape")[:_MAX_TEXT]  # it may be a path
        head = (_MAGIC, self.version, 0, self.code, self.token, self.pid, len(text))
        return _WELCOME.pack(*head) + text


def refusal(error: WireError) -> Welcome:
    """The answer to a client that cannot be served."""
    return Welcome(0, error.code, NEW_SESSION, os.getpid(), str(error))


def decoded_hello(data: bytes) -> Hello:
    """What a client said; WireError when it is no client of ours."""
    magic, lowest, highest, reserved, token = _HELLO.unpack(data)
    if magic != _MAGIC:
        raise WireError(f"the connection began with {magic!r}, wanted {_MAGIC!r}")
    if reserved:
        raise WireError(f"bytes 12 to 15 of the greeting are 0x{reserved:08x}, wanted 0")
    if not lowest <= VERSION <= highest:
        raise WireError(
            f"the client speaks versions {lowest} to {highest} of the protocol, this worker "
            f"speaks {VERSION}; install the same release of mslite on both sides"
        )
    return Hello(lowest, highest, token)


def decoded_welcome(data: bytes, text: bytes) -> Welcome:
    """What a worker answered.

    Raises:
        ResourceError: It has no room for the connection.
        WireError: It refused for another reason, or is no worker.
    """
    magic, version, reserved, code, token, pid, _ = _WELCOME.unpack(data)
    words = text.decode("utf-8", "surrogateescape")
    if magic != _MAGIC or reserved:
        raise WireError(f"the answer began with {magic!r}, wanted {_MAGIC!r}: it is no worker")
    if version == 0:
        kind = ResourceError if code == ResourceError.code else WireError
        raise kind(f"the worker refused the connection: {words}")
    if version != VERSION:
        raise WireError(f"the worker chose version {version}, which was not offered")
    return Welcome(version, code, token, pid, words)


def read_hello(sock: socket.socket) -> Hello:
    """The worker's side: what the client says."""
    return decoded_hello(_exactly(sock, _HELLO.size))


def greet(sock: socket.socket, token: bytes = NEW_SESSION, timeout_s: float = TIMEOUT_S) -> Welcome:
    """The client's side: say hello, and hear whether we are welcome."""
    check_peer(sock)
    sock.settimeout(timeout_s)
    # a worker that is full refuses before it reads, and its reason is there to be read, too
    with suppress(BrokenPipeError, ConnectionResetError):
        sock.sendall(Hello(token=token).encoded())
    head = _exactly(sock, _WELCOME.size)
    size = _WELCOME.unpack(head)[-1]
    if size > _MAX_TEXT:
        raise WireError(f"the answer announces a text of {size} bytes, at most {_MAX_TEXT}")
    welcome = decoded_welcome(head, _exactly(sock, size))
    sock.settimeout(None)
    return welcome


def check_peer(sock: socket.socket) -> int:
    """The process id of the other side, if it is of our user; the kernel says so, not the peer."""
    pid, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    if uid != os.geteuid():
        raise WireError(
            f"the other side of the connection is user {uid}, wanted {os.geteuid()}; "
            "a worker serves only the user that it runs as"
        )
    found: int = pid
    return found


def _exactly(sock: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        got = sock.recv(size - len(data))
        if not got:
            raise ConnectionError(f"the connection ended in the greeting, after {len(data)} bytes")
        data += got
    return bytes(data)
