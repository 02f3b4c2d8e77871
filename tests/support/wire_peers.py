"""Both sides of the wire for tests: a worker that goes by a script, and a model that only tells."""

from __future__ import annotations

import mmap
import os
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

import numpy as np

from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.remote.wire.bodies import Description
from mindspore_lite.remote.wire.client import Model, WireSession
from mindspore_lite.remote.wire.handshake import VERSION, Welcome
from mindspore_lite.remote.wire.memory import Block, Made
from mindspore_lite.remote.worker.client_session import ClientSession
from mindspore_lite.remote.worker.listener import abstract_listener
from mindspore_lite.remote.worker.served_model import Hosted, Running
from mindspore_lite.remote.worker.server import WorkerServer
from mindspore_lite.serving.call import Call
from mindspore_lite.tensor import Tensor

LIMIT_S = 120.0  # for waits that end at once when all is well, on a busy machine
TOKEN = bytes(range(16, 32))

Exchange = tuple[int, bytes]  # so many bytes are read, then these are sent


class ScriptedWorker:
    """Listens, greets everybody, and goes through a script on the first lane; then hangs up."""

    def __init__(self, folder: Path, script: Sequence[Exchange]) -> None:
        self.path = str(folder / "scripted.sock")
        self.got: list[bytes] = []
        self._script = script
        self._open: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.settimeout(LIMIT_S)
        self._listener.bind(self.path)
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> ScriptedWorker:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for sock in self._open:
            sock.close()
        self._thread.join(LIMIT_S)
        assert not self._thread.is_alive()

    def _serve(self) -> None:
        try:
            self._greeted()  # the connection that keeps the session
            lane = self._greeted()
            for size, answer in self._script:
                self.got.append(received(lane, size))
                lane.sendall(answer)
            lane.close()
        except OSError:  # the test closed everything
            return

    def _greeted(self) -> socket.socket:
        sock, _ = self._listener.accept()
        sock.settimeout(LIMIT_S)
        self._open.append(sock)
        received(sock, 32)
        sock.sendall(Welcome(VERSION, 0, TOKEN, os.getpid(), self.path).encoded())
        return sock


class Twice(Hosted):
    """y = 2 x; keeps what it was called with."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []
        self.output_names = ["y"]
        self._rows = -1

    def description(self) -> Description:
        shape = (self._rows, 2)
        x, y = (TensorInfo(name, np.dtype(np.float32), shape) for name in "xy")
        return Description((x,), (y,))

    def predict(self, call: Call, running: Running) -> list[np.ndarray]:
        given = [array.tobytes() for array in call.inputs]
        self.calls.append(("predict", given, call.timeout_s, call.priority))
        return [2 * call.inputs[0]]

    def resize(self, shapes: list[tuple[int, ...]]) -> Description:
        self.calls.append(("resize", shapes))
        self._rows = shapes[0][0]
        return self.description()

    def info(self, key: str) -> str:
        self.calls.append(("info", key))
        return "J\u00fcrgen"

    def statistics(self) -> str:
        self.calls.append(("statistics",))
        return '{"requests": 3}'

    def update_weights(self, weights: list[list[Tensor]]) -> None:
        found = [[(t.name, t.get_data_to_numpy().tobytes()) for t in group] for group in weights]
        self.calls.append(("update_weights", found))

    def derived(self, weights: list[list[Tensor]]) -> Twice:
        self.update_weights(weights)
        return self

    def close(self, drain_s: float | None) -> None:
        self.calls.append(("close", drain_s))


@contextmanager
def hosted(client_session: ClientSession | None = None) -> Iterator[socket.socket]:
    """A connection to a worker inside of this process, before the greeting."""
    host = WorkerServer(abstract_listener())
    host._listener.address = "/run/user/1000/twice.sock"
    if client_session is not None:
        host._client_sessions[client_session.token] = client_session
    with _running(host) as sock:
        yield sock


@contextmanager
def session_at(model: Hosted) -> Iterator[tuple[WireSession, Model, ClientSession]]:
    """A session at a worker inside of this process, the model there, and what the worker has."""
    host = WorkerServer(abstract_listener())
    with _running(host) as sock:
        session = WireSession(sock)
        (client_session,) = host._client_sessions.values()
        client_session._models[1] = model
        yield session, Model(session, 1, model.description(), []), client_session
        session.close()


@contextmanager
def _running(host: WorkerServer) -> Iterator[socket.socket]:
    ours, theirs = socket.socketpair()
    ours.settimeout(LIMIT_S)
    thread = threading.Thread(target=host.run, args=(theirs,))
    with ours:
        thread.start()
        yield ours
    thread.join(LIMIT_S)
    assert not thread.is_alive()


def received(sock: socket.socket, size: int) -> bytes:
    """Exactly so many bytes, or as many as came before the other side closed."""
    data = b""
    while len(data) < size and (got := sock.recv(size - len(data))):
        data += got
    return data


def private_block(pid: int, made: Made) -> Block:
    """In place of Block.open, where there is no worker that made it."""
    return Block(made.block, mmap.mmap(-1, made.size))
