"""Entries of the wire: a client that sends anything to a worker, and a worker that answers so."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
from fuzzing.corpus import vectors
from fuzzing.damage import Damage
from fuzzing.mutate_wire import HEADER_BYTES, changed_part, with_request
from support.models import dense_net
from support.wire_vectors import Part

from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.errors import LiteError
from mindspore_lite.remote.wire import bodies, client
from mindspore_lite.remote.wire.bodies import MODEL, Build, Description
from mindspore_lite.remote.wire.client import Model, WireSession
from mindspore_lite.remote.wire.fields import Writer
from mindspore_lite.remote.wire.frames import Channel, Message, header
from mindspore_lite.remote.wire.handshake import NEW_SESSION, VERSION, Hello, Welcome
from mindspore_lite.remote.wire.memory import Block
from mindspore_lite.remote.worker import client_session as client_session_module
from mindspore_lite.remote.worker.listener import abstract_listener
from mindspore_lite.remote.worker.served_model import Hosted, built
from mindspore_lite.remote.worker.server import WorkerServer

Act = Callable[[], object]

_LIMIT_S = 60.0  # for waits that end at once when all is well
_ROOM = 1 << 24  # bytes that the machine pretends to have
_ROWS = TensorInfo("x", np.dtype(np.float32), (-1, 3))
_SMALL, _LARGE = np.ones((2, 3), np.float32), np.ones((4096, 3), np.float32)


def wire_server(damage: Damage, folder: Path) -> Act:
    """Lanes of one client send damaged frames, one after the other, to a real worker."""
    path = folder / "dense.mindir"
    path.write_bytes(dense_net(-1))
    parts = _parts("client", "frame")
    turns = [(damage.choice((0, 0, 1, 2)), _sent(damage, parts)) for _ in range(12)]
    greeting = b""
    if damage.chance(0.2):
        greeting = changed_part(damage.choice(_parts("client", "greeting")), damage.rng)
    return lambda: _serve(path, turns, greeting)


def wire_client(damage: Damage, folder: Path) -> Act:
    """A real client asks a worker that greets well, mostly, and answers with damaged frames."""
    parts = _parts("worker", "frame")
    answers = [_sent(damage, parts) for _ in range(24)]
    honest = [damage.harmless or damage.chance(0.5) for _ in answers]
    numbered = [not damage.chance(0.05) for _ in answers]
    welcome = None
    if damage.chance(0.1):
        welcome = changed_part(damage.choice(_parts("worker", "greeting")), damage.rng)
    return lambda: _ask(Hostile(answers, honest, numbered, welcome))


@functools.cache
def _parts(side: str, kind: str) -> tuple[Part, ...]:
    """What one side says in the vectors: greetings, or frames."""
    found = [part for vector in vectors() for part in vector.parts if part.side == side]
    is_frame = [any(field.name == "frame.magic" for field in part.fields) for part in found]
    return tuple(
        p for p, framed in zip(found, is_frame, strict=True) if framed == (kind == "frame")
    )


def _sent(damage: Damage, parts: Sequence[Part]) -> bytes:
    part = damage.choice(parts)
    return part.encoded() if damage.harmless else changed_part(part, damage.rng)


# --- a hostile client ---


def _serve(path: Path, turns: Sequence[tuple[int, bytes]], greeting: bytes) -> None:
    host = WorkerServer(abstract_listener(), stall_s=5.0, drain_s=1.0)
    ours, theirs = socket.socketpair()
    thread = threading.Thread(target=host.run, args=(theirs,))
    with _worker(path) as errors, contextlib.ExitStack() as opened:
        opened.enter_context(ours)
        thread.start()
        try:
            _talk(host, ours, turns, greeting, opened)
        finally:
            ours.close()
            thread.join(_LIMIT_S)
    if thread.is_alive():
        raise TimeoutError("the worker does not end, though its client is gone")
    for error in errors:
        raise error


def _talk(
    host: WorkerServer,
    owner: socket.socket,
    turns: Sequence[tuple[int, bytes]],
    greeting: bytes,
    opened: contextlib.ExitStack,
) -> None:
    """Greet, open the lanes, say everything in turn, and read until the worker hangs up."""
    address = "\0" + host._listener.address[1:]
    token = _greeted(owner, NEW_SESSION)
    for client_session in list(host._client_sessions.values()):
        client_session._models[1] = client_session_module.built(Build(MODEL, 0), [], None)
    lanes: dict[int, socket.socket] = {}
    if greeting:
        stranger = opened.enter_context(_connected(address))
        _say(stranger, greeting)
        _finish(stranger)
    for number, data in turns:
        if number not in lanes:
            try:
                lanes[number] = opened.enter_context(_connected(address))
            except ConnectionRefusedError:  # an EXIT was among the frames
                break
            _greeted(lanes[number], token)
        _say(lanes[number], data)
    for lane in lanes.values():
        _finish(lane)


def _connected(address: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(_LIMIT_S)
    sock.connect(address)
    return sock


def _greeted(sock: socket.socket, token: bytes) -> bytes:
    """Say hello; the token of the session, or nothing where the worker has gone."""
    sock.settimeout(_LIMIT_S)
    try:
        sock.sendall(Hello(token=token).encoded())
        return sock.recv(4096)[16:32]
    except OSError:
        return b""


def _say(sock: socket.socket, data: bytes) -> None:
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it has hung up
        sock.sendall(data)


def _finish(sock: socket.socket) -> None:
    """Say no more, and read until the end; a worker that never ends is a TimeoutError."""
    with contextlib.suppress(ConnectionResetError, OSError):
        sock.shutdown(socket.SHUT_WR)
    with contextlib.suppress(ConnectionResetError):
        while sock.recv(1 << 16):
            pass


@contextlib.contextmanager
def _worker(path: Path) -> Iterator[list[BaseException]]:
    """Every model is a small one; yields the errors that a client should never be told."""
    errors: list[BaseException] = []
    write = client_session_module.faults.write_error

    def told(out: Writer, error: BaseException) -> None:
        if not isinstance(error, LiteError | TypeError | ValueError):
            errors.append(error)
        write(out, error)

    def small(build: Build, contents: list[bytes], group: object = None) -> Hosted:
        found = replace(build, path=str(path), config_path="", model_type=0)
        return built(found, contents, None)

    with (
        mock.patch.object(client_session_module, "built", small),
        mock.patch.object(client_session_module, "_free_memory", lambda: _ROOM),
        mock.patch.object(client_session_module.faults, "write_error", told),
    ):
        yield errors


# --- a hostile worker ---


class Hostile:
    """Answers every frame of every connection with the next answer; then it hangs up."""

    def __init__(
        self,
        answers: Sequence[bytes],
        honest: Sequence[bool],
        numbered: Sequence[bool],
        welcome: bytes | None,
    ) -> None:
        self._turns = iter(zip(answers, honest, numbered, strict=True))
        self._lock = threading.Lock()  # of the turns
        self._welcome = welcome
        self._blocks: list[Block] = []
        self._numbers = itertools.count(1)
        self._listener = abstract_listener()
        self._listener._sock.setblocking(True)
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        self._start(lambda: self._talk(theirs))
        self._start(self._accept)
        ours.settimeout(_LIMIT_S)
        return ours

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        for thread in self._threads:
            thread.join(_LIMIT_S)
        for block in self._blocks:
            block.close()

    def _start(self, act: Act) -> None:
        self._threads.append(threading.Thread(target=act, daemon=True))
        self._threads[-1].start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # the end
            while True:
                sock = self._listener.accept()
                self._start(functools.partial(self._talk, sock))

    def _talk(self, sock: socket.socket) -> None:
        with sock, contextlib.suppress(OSError):
            sock.settimeout(_LIMIT_S)
            token = sock.recv(32)[16:]
            address = self._listener.address
            good = Welcome(VERSION, 0, b"t" * 16, os.getpid(), address).encoded()
            if self._welcome is not None and not any(token):  # lanes are always welcome
                sock.sendall(self._welcome)
                return
            sock.sendall(good)
            channel = Channel(sock)
            while (frame := channel.receive(_LIMIT_S)) is not None:
                with self._lock:
                    turn = next(self._turns, None)
                if turn is None:
                    return
                answer = self._answer(frame.message, frame.request, bytes(frame.body), *turn)
                sock.sendall(answer)
                if not _is_whole(answer):  # the client would wait for the rest
                    return

    def _answer(
        self, message: Message, request: int, body: bytes, answer: bytes, honest: bool, fits: bool
    ) -> bytes:
        if honest:
            kind, told = self._honest(message, body)
            return header(kind, request, len(told)) + told
        return with_request(answer, request) if fits else answer

    def _honest(self, message: Message, body: bytes) -> tuple[Message, bytes]:
        """What a good worker would say, as far as the client gets further by it."""
        out = Writer()
        if message is Message.ALLOCATE:
            size = min(int.from_bytes(body[:8], "little"), _ROOM)
            self._blocks.append(Block.make(next(self._numbers), size))
            bodies.write_made(out, [self._blocks[-1].made])
            return Message.REPLY, bytes(out.data)
        for vector in vectors():
            asked, *told = vector.parts
            if told and asked.side == "client" and vector.name[:2].isdigit():
                data = asked.encoded()
                if len(data) > HEADER_BYTES and data[4] == message:
                    return Message(told[0].encoded()[4]), told[0].encoded()[HEADER_BYTES:]
        return Message.REPLY, b""


def _is_whole(data: bytes) -> bool:
    return len(data) >= HEADER_BYTES + int.from_bytes(data[16:HEADER_BYTES], "little")


def _ask(worker: Hostile) -> None:
    """All that a client may ask for; each answer may end the session."""
    # a block that is not there may be a sign that the worker ends: not waited for here
    patience = mock.patch.object(client, "_GONE_S", 0.01)
    with patience, worker as sock, contextlib.closing(sock):
        session = WireSession(sock, timeout_s=20.0)
        try:
            # one to go on with, whatever becomes of the build
            model = Model(session, 1, Description((_ROWS,), (_ROWS,)), [])
            with _told():
                model = session.build(Build(MODEL, 0, "x"))
            for act in (
                lambda: model.predict([_SMALL] * len(model.inputs), timeout_s=20.0),
                lambda: model.predict([_LARGE] * len(model.inputs), timeout_s=20.0),
                lambda: model.predict([_LARGE] * len(model.inputs), timeout_s=20.0),
                lambda: model.resize([[4, 3]]),
                lambda: model.update_weights([[("w", _LARGE)], [("", _SMALL)]]),
                lambda: model.info("version"),
                model.statistics,
                lambda: session.cancel(3, 0.1, 20.0),
                lambda: model.close(1.0, 20.0),
                lambda: session.exit("words", 20.0),
            ):
                with _told():
                    act()
        finally:
            session.close()


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Errors of ours are what a client expects; builtin ones only as a worker's own words."""
    try:
        yield
    except LiteError:
        pass
    except (TypeError, ValueError) as exc:
        trace = exc.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        if trace is None or trace.tb_frame.f_code.co_name != "_answer":
            raise
