"""The connections of a worker: one thread each, from the greeting to the last answer.

Two ways to begin. A child has one connected socket from its parent: when that closes, however the
parent ended, so does the child. A worker on a path takes any process of its user; it ends when the
last of them has gone, unless it was started with --stay. In both cases further lanes connect to
where it listens.

Who owns what. A connection's own thread receives, answers and sends; it alone closes the socket.
The watching thread takes new connections, and notices the end of those whose threads compute: a
client that is killed must not keep a core, or the worker. What both touch is changed under `_lock`,
which is never held while anything is computed or sent. Sockets are closed under it, too: the number
of a closed descriptor may be reused at once, and the watching thread looks connections up by it.
"""

from __future__ import annotations

import errno
import logging
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

from mindspore_lite.errors import LiteError, ResourceError, WireError
from mindspore_lite.remote.wire import faults
from mindspore_lite.remote.wire.fields import Writer
from mindspore_lite.remote.wire.frames import STALL_S, Buffer, Channel, Message
from mindspore_lite.remote.wire.handshake import (
    NEW_SESSION,
    TIMEOUT_S,
    VERSION,
    Welcome,
    check_peer,
    read_hello,
    refusal,
)
from mindspore_lite.remote.worker.client_session import ClientSession
from mindspore_lite.remote.worker.listener import Listener
from mindspore_lite.remote.worker.served_model import Hosted, Running
from mindspore_lite.serving.registry import Registry

MAX_CONNECTIONS = 1024
FIRST_S = 30.0  # within which the first client must come; guess
DRAIN_S = 8.0  # for requests under way at the end; docker kills 10 s after it asked
_PAUSE_S = 0.05  # until descriptors or memory are looked for again; guess

_LOG = logging.getLogger(__name__)


class Connection:
    """A socket, and what other threads must know of it; see the module's text."""

    def __init__(self, sock: socket.socket, stall_s: float) -> None:
        self.sock = sock
        self.channel = Channel(sock, stall_s)
        self.client_session: ClientSession | None = None  # once it is welcome
        self.keeps = False  # whether its client stays for as long as it does
        self.lost = False  # the client hung up
        self.running: Running | None = None  # what is under way
        self.busy = threading.Lock()  # held until that is answered

    def hang_up(self) -> None:
        """Have its thread find the end; only under the host's lock, which also guards closing."""
        with suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)

    def is_lost(self) -> bool:
        """Whether the other side closed it."""
        poll = select.poll()
        poll.register(self.sock, 0)
        return bool(poll.poll(0))


class WorkerServer:
    """All clients of this process."""

    def __init__(
        self,
        listener: Listener,
        *,
        stays: bool = False,
        stall_s: float = STALL_S,
        drain_s: float | None = None,
    ) -> None:
        self._listener = listener
        self._stays = stays
        self._stall_s = stall_s
        self._drain_s = DRAIN_S if drain_s is None else drain_s
        self._over = threading.Event()
        self._registry: Registry[Hosted] = Registry()
        self._lock = threading.Lock()
        self._client_sessions: dict[bytes, ClientSession] = {}
        self._connections: dict[int, Connection] = {}  # by descriptor
        self._parent: Connection | None = None
        self._served = self._asked = False
        self._watched = select.epoll()
        self._watched.register(listener.fileno(), select.EPOLLIN)
        self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def run(self, parent: socket.socket | None = None, first_s: float = FIRST_S) -> None:
        """Serve until no client needs it any more.

        Raises:
            ResourceError: It cannot even begin.
        """
        try:
            if parent is not None:
                self._parent = Connection(parent, self._stall_s)
                self._begin(self._parent)
            _start(self._watch, "mslite-connections")
            if not self._stays and not self._over.wait(first_s) and not self._served:
                _LOG.warning("no client came within %g s", first_s)
                self._over.set()
            self._over.wait()
        except (OSError, RuntimeError) as exc:  # of threads
            raise ResourceError(f"the worker cannot begin: {exc}") from exc
        finally:
            self._end()

    def ask_to_end(self) -> None:
        """End after the requests under way are answered, as SIGTERM wants it."""
        self._asked = True
        self._over.set()

    def end(self) -> None:
        """End at once: no client is left."""
        self._over.set()

    # --- the watching thread ---

    def _watch(self) -> None:
        listening = self._listener.fileno()
        while not self._over.is_set():
            for descriptor, _ in self._watched.poll():
                if descriptor == listening:
                    self._take()
                else:
                    self._look_at(descriptor)
        with self._lock:  # the main thread may be about to stop it
            self._listener.close()
        self._watched.close()
        if self._spare >= 0:
            os.close(self._spare)

    def _take(self) -> None:
        """Take a connection that waits at the listener."""
        try:
            sock = self._listener.accept()
        except BlockingIOError:  # it did not wait for us
            return
        except OSError as exc:
            if self._over.is_set():
                return
            if exc.errno not in (errno.EMFILE, errno.ENFILE) or not self._refuse_one():
                _LOG.warning("a connection cannot be taken: %s", exc)
                self._over.wait(_PAUSE_S)  # it waits still, and would wake us again at once
            return
        if len(self._connections) >= MAX_CONNECTIONS:
            _refuse(sock, f"there are {MAX_CONNECTIONS} connections already")
            return
        try:
            self._begin(Connection(sock, self._stall_s))
        except (OSError, RuntimeError) as exc:
            _refuse(sock, f"no thread can be had for it: {exc}")

    def _refuse_one(self) -> bool:
        """There is no descriptor left: use the spare one, if any, to refuse a client politely.

        Another thread may be quicker to take its place; then the next client waits, until one is
        free, or its own patience is at an end.
        """
        told = self._spare >= 0
        if told:
            os.close(self._spare)
            with suppress(OSError):
                sock = self._listener.accept()
                _refuse(sock, "the worker has no file descriptor left; allow more (ulimit -n)")
        try:
            self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._spare = -1
        return told

    def _look_at(self, descriptor: int) -> None:
        """A connection may have ended: stop what is computed for it."""
        with self._lock:
            connection = self._connections.get(descriptor)
            # the reported descriptor may be closed by now, and its number reused
            if connection is None or not connection.is_lost():
                return
        # its thread says what it begins before it asks whether it is lost: one sees the other
        connection.lost = True
        client_session, running = connection.client_session, connection.running
        if running is not None:
            running.cancel()
        if client_session is not None and connection.keeps:
            self._left(client_session)
            client_session.cancel()

    # --- a connection's own thread ---

    def _begin(self, connection: Connection) -> None:
        """Give a connection its thread."""
        descriptor = connection.sock.fileno()
        with self._lock:
            self._connections[descriptor] = connection
        try:
            # the end is always reported; once is enough, and it stays true
            self._watched.register(descriptor, select.EPOLLONESHOT)
            _start(partial(self._talk, connection), "mslite-lane")
        except (OSError, RuntimeError):
            with self._lock:
                del self._connections[descriptor]
            raise

    def _talk(self, connection: Connection) -> None:
        """The life of a connection."""
        descriptor = connection.sock.fileno()
        try:
            client_session = self._welcomed(connection)
            if client_session is not None:
                self._serve(connection, client_session)
        except (OSError, LiteError) as exc:
            _LOG.info("a connection ended: %s", exc)
        finally:
            with self._lock:
                del self._connections[descriptor]
                connection.channel.close()
            if connection.client_session is not None:
                connection.client_session.lane_ended()
                if connection.keeps:
                    self._gone(connection.client_session)
            if connection is self._parent:
                self._over.set()

    def _welcomed(self, connection: Connection) -> ClientSession | None:
        """Greet a client; None when it was refused."""
        sock = connection.sock
        sock.settimeout(TIMEOUT_S)
        try:
            check_peer(sock)
            client_session = self._joined(connection, read_hello(sock).token)
        except WireError as exc:
            _LOG.warning("a client was refused: %s", exc)
            with suppress(OSError):
                sock.sendall(refusal(exc).encoded())
            return None
        address = self._listener.address
        sock.sendall(Welcome(VERSION, 0, client_session.token, os.getpid(), address).encoded())
        sock.settimeout(None)
        return client_session

    def _joined(self, connection: Connection, token: bytes) -> ClientSession:
        """The session that the connection belongs to; ending it ends the connection, too."""
        with self._lock:
            if self._over.is_set():
                raise WireError("the worker is ending")
            client_session = self._client_sessions.get(token)
            if token == NEW_SESSION:
                client_session = ClientSession(self._registry)
                self._client_sessions[client_session.token] = client_session
                self._served = connection.keeps = True
            elif client_session is None:
                raise WireError("there is no such session; it may be over")
            connection.client_session = client_session
            return client_session

    def _serve(self, connection: Connection, client_session: ClientSession) -> None:
        channel, busy = connection.channel, connection.busy
        while True:
            try:
                frame = channel.receive()
            except WireError as exc:
                _LOG.warning("a client does not keep to the protocol: %s", exc)
                with suppress(OSError):
                    _tell(channel, 0, exc)
                return
            if frame is None:
                return
            with busy:
                connection.running = running = Running(frame.request)
                if connection.lost:
                    return
                message, body = client_session.answer(frame, running)
                connection.running = None
                if frame.message is Message.EXIT and message is Message.REPLY:
                    self._say_farewell(client_session, connection)
                    channel.send(message, frame.request, body)
                    self._gone(client_session)
                    return
                _send(channel, message, frame.request, body)

    # --- the end of a client ---

    def _say_farewell(self, client_session: ClientSession, connection: Connection) -> None:
        """A client sent EXIT: what it still has under way is answered first."""
        with self._lock:
            first, client_session.said_farewell = not client_session.said_farewell, True
            others = [c for c in self._lanes(client_session) if c is not connection]
        if first:
            say(f"Receive exit message {client_session.last_words} and start to exit")
            self._drain(others)

    def _left(self, client_session: ClientSession) -> None:
        """A client is none any more; after the last one, or the parent, the worker ends."""
        with self._lock:
            was_there = self._client_sessions.pop(client_session.token, None) is not None
            was_last = was_there and not self._client_sessions and not self._stays
        if was_last or (self._parent is not None and self._parent.client_session is client_session):
            self._over.set()

    def _gone(self, client_session: ClientSession) -> None:
        """A client left, or died: what it had goes."""
        self._left(client_session)
        with self._lock:
            for lane in self._lanes(client_session):
                lane.hang_up()
        client_session.close()

    def _lanes(self, client_session: ClientSession) -> list[Connection]:
        return [c for c in self._connections.values() if c.client_session is client_session]

    # --- the end of the worker ---

    def _drain(self, connections: Iterable[Connection]) -> None:
        """Wait until their requests are answered; those that hang have so long together."""
        due_s = time.monotonic() + self._drain_s
        for connection in connections:
            if connection.busy.acquire(timeout=max(0.0, due_s - time.monotonic())):
                connection.busy.release()

    def _end(self) -> None:
        self._over.set()
        with self._lock:
            self._listener.stop()
            connections = list(self._connections.values())
            for client_session in self._client_sessions.values():
                client_session.refuses = "the worker is ending; it takes no new requests"
        if self._asked:
            self._drain(connections)
        with self._lock:
            for connection in self._connections.values():
                connection.hang_up()


def say(text: str) -> bool:
    """Print a line for the process that started the worker; False if none reads it."""
    with suppress(OSError, ValueError):
        print(text, flush=True)  # noqa: T201
        return True
    return False


def _start(act: Callable[[], None], name: str) -> None:
    threading.Thread(target=act, name=name, daemon=True).start()


def _send(channel: Channel, message: Message, request: int, body: Buffer) -> None:
    try:
        channel.send(message, request, body)
    except WireError as exc:  # the answer is too long; nothing of it was sent
        _tell(channel, request, exc)


def _tell(channel: Channel, request: int, error: WireError) -> None:
    """Send an error; request 0 where the bytes make no sense, and these are the last words."""
    out = Writer()
    faults.write_error(out, error)
    channel.send(Message.ERROR, request, out.data)


def _refuse(sock: socket.socket, reason: str) -> None:
    with suppress(OSError):
        sock.setblocking(False)
        error = ResourceError(reason)
        sock.send(Welcome(0, error.code, NEW_SESSION, os.getpid(), reason).encoded())
    sock.close()
