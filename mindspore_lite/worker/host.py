"""The worker process: connections come in, each gets a thread; it ends with its last owner.

Two ways to begin. A child has one connected socket from its parent: when that closes, however the
parent ended, so does the child. A worker on a path takes any process of its user; it ends when the
last of them has gone, or when its own parent goes, unless it was told to stay. In both cases
further lanes connect to where it listens: for a child that is an abstract name, which leaves no
file behind.
"""

from __future__ import annotations

import errno
import logging
import os
import select
import socket
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from mindspore_lite.errors import LiteError, ResourceError, WireError
from mindspore_lite.wire import faults
from mindspore_lite.wire.fields import Writer
from mindspore_lite.wire.frames import STALL_S, Channel, Message
from mindspore_lite.wire.handshake import (
    NEW_SESSION,
    TIMEOUT_S,
    VERSION,
    Welcome,
    check_peer,
    read_hello,
    refusal,
)
from mindspore_lite.worker.guest import Guest

MAX_CONNECTIONS = 1024
FIRST_S = 30.0  # within which the first client must come; guess
_DRAIN_S = 5.0  # for requests under way when the worker is asked to end
_BACKLOG = 128

_LOG = logging.getLogger(__name__)


class Host:
    """All clients of this process."""

    def __init__(
        self,
        listener: socket.socket,
        address: str,
        *,
        stays: bool = False,
        stall_s: float = STALL_S,
    ) -> None:
        self._listener = listener
        self._address = address
        self._stays = stays
        self._stall_s = stall_s
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._guests: dict[bytes, Guest] = {}
        self._connections: set[Channel] = set()
        self._open = 0
        self._served = self._asked = False
        self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def run(self, owner: socket.socket | None = None, first_s: float = FIRST_S) -> None:
        """Serve until nobody needs it any more."""
        self._thread(self._accept, "mslite-accept")
        if owner is not None:
            self._thread(partial(self._talk, owner), "mslite-owner")
        if not self._stays:
            self._thread(self._watch_parent, "mslite-parent")
            if not self._over.wait(first_s) and not self._served:
                _LOG.warning("no client came within %g s", first_s)
                self._over.set()
        self._over.wait()
        self._end()

    def ask_to_end(self) -> None:
        """End after requests under way are done, as SIGTERM wants it."""
        self._asked = True
        self._over.set()

    # --- connections ---

    def _accept(self) -> None:
        while not self._over.is_set():
            try:
                sock, _ = self._listener.accept()
            except OSError as exc:
                if exc.errno in (errno.EMFILE, errno.ENFILE):
                    self._refuse_one()
                    continue
                if self._over.is_set() or exc.errno == errno.EBADF:
                    return
                _LOG.warning("a connection was lost before it began: %s", exc)
                continue
            with self._lock:
                full = self._open >= MAX_CONNECTIONS
                self._open += not full
            if full:
                _refuse(sock, f"there are {MAX_CONNECTIONS} connections already")
                continue
            try:
                self._thread(partial(self._talk, sock), "mslite-lane")
            except RuntimeError as exc:
                _refuse(sock, f"no thread can be started for it: {exc}")
                with self._lock:
                    self._open -= 1

    def _refuse_one(self) -> None:
        """There is no descriptor left: give up the spare one to tell the client so."""
        os.close(self._spare)
        with suppress(OSError):
            sock, _ = self._listener.accept()
            _refuse(sock, "the worker has no file descriptor left; allow more (ulimit -n)")
        with suppress(OSError):
            self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def _talk(self, sock: socket.socket) -> None:
        """The life of a connection."""
        channel = Channel(sock, self._stall_s)
        guest: Guest | None = None
        is_owner = False
        try:
            guest, is_owner = self._welcomed(sock)
            if guest is not None:
                with self._lock:
                    self._connections.add(channel)
                self._serve(channel, guest)
        except (OSError, LiteError) as exc:
            _LOG.info("a connection ended: %s", exc)
        finally:
            channel.close()
            with self._lock:
                self._connections.discard(channel)
                self._open -= 1
            if guest is not None and is_owner:
                self._gone(guest)

    def _welcomed(self, sock: socket.socket) -> tuple[Guest | None, bool]:
        """Greet a client; (its guest, whether this connection is the one that keeps it)."""
        sock.settimeout(TIMEOUT_S)
        try:
            check_peer(sock)
            hello = read_hello(sock)
            guest, is_owner = self._guest(hello.token)
        except WireError as exc:
            _LOG.warning("a client was refused: %s", exc)
            with suppress(OSError):
                sock.sendall(refusal(exc).encoded())
            return None, False
        sock.sendall(Welcome(VERSION, 0, guest.token, os.getpid(), self._address).encoded())
        sock.settimeout(None)
        return guest, is_owner

    def _guest(self, token: bytes) -> tuple[Guest, bool]:
        with self._lock:
            if token == NEW_SESSION:
                guest = Guest()
                self._guests[guest.token] = guest
                self._served = True
                return guest, True
            found = self._guests.get(token)
        if found is None:
            raise WireError("there is no such session; it may be over")
        return found, False

    def _serve(self, channel: Channel, guest: Guest) -> None:
        while True:
            try:
                frame = channel.receive()
            except WireError as exc:
                _LOG.warning("a client does not keep to the protocol: %s", exc)
                self._tell(channel, exc)
                return
            if frame is None:
                return
            message, body = guest.answer(frame)
            if guest.left.is_set():
                self._said_farewell(guest)
                channel.send(message, frame.request, body)
                self._gone(guest)
                return
            channel.send(message, frame.request, body)

    def _tell(self, channel: Channel, error: WireError) -> None:
        """Last words to a client whose bytes make no sense: an ERROR of request 0."""
        out = Writer()
        faults.write_error(out, error)
        with suppress(OSError):
            channel.send(Message.ERROR, 0, out.data)

    def _said_farewell(self, guest: Guest) -> None:
        print(f"Receive exit message {guest.last_words} and start to exit", flush=True)  # noqa: T201
        guest.close(_DRAIN_S)

    def _gone(self, guest: Guest) -> None:
        """A client left, or died: what it had goes, and so does the worker after the last one."""
        with self._lock:
            last = self._guests.pop(guest.token, None) is not None and not self._guests
        guest.close()
        if last and not self._stays:
            self._over.set()

    # --- the end ---

    def _watch_parent(self) -> None:
        """Wait for the end of the process that started this one."""
        try:
            parent = os.pidfd_open(os.getppid())
        except OSError as exc:
            _LOG.info("the parent cannot be watched: %s", exc)
            return
        select.select([parent], [], [])
        _LOG.info("the parent process ended")
        self._over.set()

    def _end(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            guests, self._guests = list(self._guests.values()), {}
            channels = list(self._connections)
        for guest in guests:
            guest.close(_DRAIN_S if self._asked else 0.0)
        for channel in channels:
            channel.close()

    def _thread(self, act: Callable[[], None], name: str) -> None:
        threading.Thread(target=act, name=name, daemon=True).start()


def _refuse(sock: socket.socket, reason: str) -> None:
    with suppress(OSError):
        sock.setblocking(False)
        error = ResourceError(reason)
        sock.send(Welcome(0, error.code, NEW_SESSION, os.getpid(), reason).encoded())
    sock.close()


def abstract_listener() -> tuple[socket.socket, str]:
    """A listening socket under a name that the kernel chose, and that goes with the socket."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind("")
    listener.listen(_BACKLOG)
    name = listener.getsockname()
    assert isinstance(name, bytes)
    return listener, "@" + name[1:].decode()


def path_listener(path: str) -> socket.socket:
    """A listening socket at a path; a left-over file of a dead worker is replaced.

    Raises:
        ResourceError: It cannot be had, with the reason.
    """
    if len(os.fsencode(path)) > 107:
        raise ResourceError(
            f"socket path {path!r} has {len(os.fsencode(path))} bytes, at most 107 are possible; "
            "choose a shorter one"
        )
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _remove_stale(path)
        before = os.umask(0o177)  # for the owner alone
        try:
            listener.bind(path)
        finally:
            os.umask(before)
        listener.listen(_BACKLOG)
    except OSError as exc:
        listener.close()
        raise ResourceError(f"cannot listen on {path!r}: {exc.strerror or exc}") from exc
    return listener


def _remove_stale(path: str) -> None:
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise OSError(errno.EEXIST, "there is a file that is no socket")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
    raise OSError(errno.EADDRINUSE, "another worker listens there")
