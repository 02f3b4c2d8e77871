"""Workers for tests: hosts in this process over made-up models, and real processes to be killed."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from support.fake_engine import LIMIT_S, Gate, wait_for

import mindspore_lite
from mindspore_lite.core.tensor_info import TensorInfo
from mindspore_lite.engines.base import Stop
from mindspore_lite.errors import CancelledError, StoppedError
from mindspore_lite.remote.wire.bodies import MODEL, Build, Description
from mindspore_lite.remote.wire.client import Model, WireSession
from mindspore_lite.remote.wire.handshake import greet
from mindspore_lite.remote.worker.client_session import ClientSession
from mindspore_lite.remote.worker.listener import abstract_listener
from mindspore_lite.remote.worker.served_model import Hosted, Running
from mindspore_lite.remote.worker.server import WorkerServer
from mindspore_lite.serving.call import Call

ROOT = Path(mindspore_lite.__file__).parent.parent
X = np.array([3, 4], np.float32)
INFO = TensorInfo("x", np.dtype(np.float32), (-1,))
MAIN = "from mindspore_lite.cli.main import main\nmain()"


class FakeModel(Hosted):
    """Computes 2 x; runs pass a gate, if there is one."""

    def __init__(self, gate: Gate | None = None) -> None:
        self.output_names = ["x"]
        self.gate = gate
        self.closed = threading.Event()
        self.seen: list[np.ndarray] = []

    def description(self) -> Description:
        return Description((INFO,), (INFO,))

    def predict(self, call: Call, running: Running) -> list[np.ndarray]:
        self.seen = list(call.inputs)
        stop = Stop()
        running.attach(stop.fire)
        try:
            if self.gate is not None:
                self.gate.wait(stop)
        except StoppedError as exc:
            raise CancelledError("the request was cancelled") from exc
        return [2 * array for array in call.inputs]

    def resize(self, shapes: list[tuple[int, ...]]) -> Description:
        return self.description()

    def info(self, key: str) -> str:
        return 2 * key

    def statistics(self) -> str:
        return "{}"

    def update_weights(self, weights: object) -> None:
        pass

    def close(self, drain_s: float | None) -> None:
        self.closed.set()


class HostHere:
    """A WorkerServer in this process, running on a thread of its own."""

    def __init__(self, *, stays: bool = True, parent: bool = False, **settings: float) -> None:
        self.sessions: list[WireSession] = []
        self.listener = abstract_listener()
        self.host = WorkerServer(self.listener, stays=stays, **settings)
        self.address = "\0" + self.listener.address[1:]
        ours, theirs = socket.socketpair() if parent else (None, None)
        self.parent = ours
        self.thread = threading.Thread(target=self.host.run, args=(theirs,), daemon=True)
        self.thread.start()

    def session(self) -> WireSession:
        """A client, which leaves at the end of the test."""
        self.sessions.append(WireSession(self.connection()))
        return self.sessions[-1]

    def connection(self) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(LIMIT_S)
        sock.connect(self.address)
        return sock

    def client_session(self, session: WireSession) -> ClientSession:
        return self.host._client_sessions[session._token]

    def model(self, session: WireSession, hosted: Hosted) -> Model:
        """Have the worker host something, as if it had been built."""
        client_session = self.client_session(session)
        key = next(client_session._numbers)
        client_session._models[key] = hosted
        description = hosted.description()
        return Model(session, key, description, [])

    def idle(self) -> None:
        """Return when no connection is left, and nothing of its client."""
        wait_for(lambda: not [t for t in threading.enumerate() if t.name == "mslite-lane"])

    def ended(self) -> None:
        self.thread.join(LIMIT_S)
        assert not self.thread.is_alive(), "the host does not end"


@contextmanager
def host_here(gate: Gate | None = None, **settings: float | bool) -> Iterator[HostHere]:
    """A host that is taken down however the test ends."""
    found = HostHere(**settings)  # type: ignore[arg-type]
    try:
        yield found
    finally:
        if gate is not None:
            gate.open()
        for session in found.sessions:
            session.close()
        found.host.end()
        found.ended()
        found.idle()
        if found.parent is not None:
            found.parent.close()


# --- processes ------------------------------------------------------------------------------------


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"}


@contextmanager
def process(
    code: str, *arguments: object, fds: Sequence[int] = (), **more: object
) -> Iterator[subprocess.Popen[str]]:
    """A Python process that is gone afterwards; its pipes are text."""
    made = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=fds,
        text=True,
        **more,  # type: ignore[call-overload]
    )
    try:
        with made:
            try:
                yield made
            finally:
                made.kill()
    finally:
        assert made.returncode is not None


@contextmanager
def child(first: str = "") -> Iterator[tuple[subprocess.Popen[str], WireSession]]:
    """A worker with an inherited socket, and a session with it; it runs the code `first` first."""
    ours, theirs = socket.socketpair()
    with theirs:
        running = process(
            first + "\n" + MAIN, "worker", "--fd", theirs.fileno(), fds=[theirs.fileno()]
        )
        with running as made:
            theirs.close()
            session = WireSession(ours)
            try:
                yield made, session
            finally:
                session.close()


@contextmanager
def listening(path: Path, *arguments: object, first: str = "") -> Iterator[subprocess.Popen[str]]:
    """A worker on a path, which listens."""
    code = first + "\n" + MAIN
    with process(code, "worker", "--socket", path, *arguments) as made:
        assert made.stdout is not None
        line = made.stdout.readline()
        assert line == f"mslite worker {made.pid} listens on {path}\n", made.communicate()
        yield made


@contextmanager
def connected(path: Path) -> Iterator[WireSession]:
    """A session at a worker on a path, closed at the end."""
    session = WireSession.connect(str(path))
    try:
        yield session
    finally:
        session.close()


class Watch:
    """A process that is no child of ours: tells when it has ended."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._descriptor = os.pidfd_open(pid)

    def ended(self) -> None:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        found = poll.poll(LIMIT_S * 1000)
        if not found:
            signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)
        os.close(self._descriptor)
        assert found, f"process {self.pid} does not end"


def blocks_of(pid: int) -> set[int]:
    """The inodes of the shared memory that a process maps."""
    found = set()
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        if "/memfd:mslite" in line:
            found.add(int(line.split()[4]))
    return found


def holders(blocks: set[int]) -> list[int]:
    """The processes that map some of these."""
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdecimal() and blocks & blocks_of(int(name)):
                found.append(int(name))
        except OSError:  # it ended meanwhile
            pass
    return found


def file_build(path: Path | str, model_type: int = 0, kind: int = MODEL, **settings: str) -> Build:
    """A BUILD of a file with one thread."""
    return Build(kind, model_type, str(path), settings={"cpu.thread_num": "1", **settings})


def token_of(sock: socket.socket) -> bytes:
    """Become a client over a bare socket; the token of its session."""
    return greet(sock).token
