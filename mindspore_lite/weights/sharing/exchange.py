"""Messages between a process that shares weights and one that uses them.

A connection carries one question and one answer, each one packet of JSON; with an answer that is
no refusal come read-only descriptors of the files, and of one in memory that holds what else the
engine wants to say, where there is such a thing. Packets keep their borders (SOCK_SEQPACKET), so
there are no lengths to trust.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
from array import array
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from mindspore_lite.core.json_text import read_json
from mindspore_lite.weights.records import Identity

PROTOCOL = 1
MAX_BYTES = 1 << 15  # of a frame: a path of 4096 bytes, all escaped, and a little more
MAX_FILES = 16
MAX_EXTRA_BYTES = 64 << 20  # a line for each weight; guess: several hundred thousand of them
_SEALED = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
_CREDENTIALS = struct.Struct("iII")


class BadFrameError(Exception):
    """The other side does not keep to the protocol."""


@dataclass(frozen=True)
class Question:
    """What a process that wants to use weights says of itself."""

    number: int  # of the handle
    device: str
    identity: Identity


@dataclass(frozen=True)
class Answer:
    """Where the compiled model lies, or why it is not given."""

    folder: str = ""
    names: tuple[str, ...] = ()  # of the files in it, in the order of their descriptors
    refusal: str = ""  # why not: one word of those in client.py
    text: str = field(default="", repr=False)  # the same for people
    has_extra: bool = False  # the last descriptor is no file of the folder


@dataclass(frozen=True)
class Peer:
    """Who is at the other end, as the kernel says; pid 0 is a process that we cannot see."""

    pid: int
    uid: int


def peer_of(connection: socket.socket) -> Peer:
    """The credentials that the other side had when it connected, or began to listen."""
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(data)
    return Peer(pid, uid)


def encoded_question(question: Question) -> bytes:
    """The frame of a question."""
    return json.dumps({"protocol": PROTOCOL, **asdict(question)}).encode()


def decoded_question(frame: bytes) -> Question:
    """The question of a frame."""
    body = _body(frame)
    number, identity = body.get("number"), body.get("identity")
    if not isinstance(number, int) or not isinstance(identity, dict):
        raise BadFrameError("it is no question")
    settings = identity.get("settings")
    if not isinstance(settings, dict):
        raise BadFrameError("it is no question")
    texts = {name: _text(settings, name) for name in settings}
    return Question(number, _text(body, "device"), Identity(_text(identity, "model"), texts))


def encoded_answer(answer: Answer) -> bytes:
    """The frame of an answer."""
    return json.dumps({"protocol": PROTOCOL, **asdict(answer)}).encode()


def decoded_answer(frame: bytes) -> Answer:
    """The answer of a frame."""
    body = _body(frame)
    names = body.get("names")
    if not isinstance(names, list) or not all(_is_file_name(name) for name in names):
        raise BadFrameError("it is no answer")
    has_extra = body.get("has_extra") is True
    answer = Answer(
        _text(body, "folder"), tuple(names), _text(body, "refusal"), _text(body, "text"), has_extra
    )
    if not answer.refusal and not os.path.isabs(answer.folder):
        raise BadFrameError("it names no folder")
    return answer


def send(connection: socket.socket, frame: bytes, descriptors: Sequence[int] = ()) -> None:
    """Send a frame, and descriptors with it."""
    if len(frame) > MAX_BYTES:
        raise BadFrameError(f"it has {len(frame)} bytes, at most {MAX_BYTES} are possible")
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", descriptors))]
    connection.sendmsg([frame], rights if descriptors else [], socket.MSG_NOSIGNAL)


def receive(connection: socket.socket) -> tuple[bytes, list[int]]:
    """A frame, b"" when the other side hung up, and the descriptors that came with it."""
    # not recv_fds(): Python 3.11's leaves the flags out, and children would inherit what comes
    room = socket.CMSG_SPACE(MAX_FILES * array("i").itemsize)
    frame, extra, _, _ = connection.recvmsg(MAX_BYTES + 1, room, socket.MSG_CMSG_CLOEXEC)
    found = array("i")
    for level, kind, data in extra:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            found.frombytes(data[: len(data) - len(data) % found.itemsize])
    return frame, list(found)


def written(extra: bytes) -> int:
    """A descriptor of memory that holds these bytes, for good."""
    descriptor = os.memfd_create("mslite-weights", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(extra)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALED)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read(descriptor: int) -> bytes:
    """The bytes that `written` put away."""
    size = os.fstat(descriptor).st_size
    if size > MAX_EXTRA_BYTES:
        raise BadFrameError(f"it sends {size} bytes, at most {MAX_EXTRA_BYTES} are possible")
    return os.pread(descriptor, size, 0)


def _body(frame: bytes) -> dict[str, Any]:
    if len(frame) > MAX_BYTES:
        raise BadFrameError(f"it has more than {MAX_BYTES} bytes")
    try:
        body = read_json(frame)
    except ValueError:
        raise BadFrameError("it is no JSON") from None
    if not isinstance(body, dict):
        raise BadFrameError("it is no JSON object")
    if body.get("protocol") != PROTOCOL:
        raise BadFrameError(f"it speaks another version than {PROTOCOL}")
    return body


def _text(body: dict[str, Any], key: str) -> str:
    text = body.get(key)
    if not isinstance(text, str):
        raise BadFrameError(f"its {key[:40]} is no text")
    return text


def _is_file_name(name: object) -> bool:
    return isinstance(name, str) and name not in ("", ".", "..") and "/" not in name
