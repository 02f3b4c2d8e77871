"""Shares a compiled model's weights with other processes, until the Share is closed.

Who owns what. A process that shares has one office: an abstract socket, whose name goes with the
process, and a daemon thread that answers there. Both begin with the first model that is shared, and
stay, so that a handle of a model that was closed since can be told from a wrong one. What is
offered is a dict from numbers to offers: added to by the thread that builds, taken from by whoever
closes or forgets a Share, read by the daemon thread. Every step is one operation on the dict, so
that no lock is needed, not even when a garbage collection closes a Share.

Who may ask: processes of the same user whose ids are listed, as the kernel says. A client that
says nothing, or nonsense, costs a place in a short list until its time is over, or others come; no
client can keep the thread from answering others.

A forked child gives nothing: it closes its copies of socket and descriptors, so that the handle
ends with the parent.
"""

from __future__ import annotations

import errno
import logging
import os
import select
import socket
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from mindspore_lite.core.fork import after_fork_in_child
from mindspore_lite.errors import ResourceError
from mindspore_lite.weights.records import Identity
from mindspore_lite.weights.sharing.exchange import (
    MAX_BYTES,
    Answer,
    BadFrameError,
    Peer,
    Question,
    decoded_question,
    encoded_answer,
    peer_of,
    send,
    written,
)
from mindspore_lite.weights.sharing.handle import Handle, new_number, new_token
from mindspore_lite.weights.sharing.hold import Hold

_LOG = logging.getLogger(__name__)
PATIENCE_S = 5.0  # for a client to say what it wants; it has connected to do just that
_BACKLOG = 128
_CLIENTS = 64  # that are connected and have not asked yet
_REST_S = 0.1  # when there are no descriptors for another client
_CLOSED = 1000  # handles of closed models that are remembered


@dataclass(frozen=True)
class Offer:
    """A compiled model, and who may use it."""

    hold: Hold
    identity: Identity
    device: str
    pids: frozenset[int]
    # what the engine adds, made anew for each client; b"" is nothing
    extra: Callable[[], bytes] = bytes


class Share:
    """The weights of one model, given to others until this is closed or forgotten."""

    def __init__(self, offer: Offer) -> None:
        """Begin to share.

        Raises:
            ResourceError: No socket or no thread is available.
        """
        handle = _OFFICE.offer(offer)
        self.handle = int(handle)
        self._forgotten = weakref.finalize(self, _OFFICE.withdraw, handle.number)
        self._forgotten.atexit = False

    @property
    def is_open(self) -> bool:
        """Whether others may still ask for the weights."""
        return self._forgotten.alive

    def close(self) -> None:
        """Give no more; what others have mapped stays with them. Harmless when repeated."""
        self._forgotten()


class _Office:
    """Where a process answers others that want to use its weights."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._opening = threading.Lock()
        self._token = 0
        self._socket: socket.socket | None = None
        self._offers: dict[int, Offer] = {}
        self._closed: deque[int] = deque(maxlen=_CLOSED)
        self._clients: dict[int, tuple[socket.socket, float]] = {}  # descriptor -> until when

    def offer(self, offer: Offer) -> Handle:
        """Take an offer in; the first one opens the office."""
        with self._opening:
            if self._socket is None:
                self._open()
            number = new_number()
            while number in self._offers or number in self._closed:
                number = new_number()
            self._offers[number] = offer
            return Handle(os.getpid(), self._token, number)

    def withdraw(self, number: int) -> None:
        """Forget an offer; a child that was forked has none to forget."""
        offer = self._offers.pop(number, None)
        if offer is not None:
            self._closed.append(number)
            offer.hold.release()

    def leave_to_parent(self) -> None:
        """In a forked child: close what was inherited, and begin anew."""
        if self._socket is not None:
            self._socket.close()
        for client, _ in self._clients.values():
            client.close()
        for offer in self._offers.values():
            offer.hold.close()
        self._begin()

    def _open(self) -> None:
        try:
            listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            try:
                self._listen(listening)
            except BaseException:
                listening.close()
                raise
        except (OSError, RuntimeError) as exc:  # RuntimeError: no thread could be started
            raise ResourceError(f"weights cannot be shared, for there is no room: {exc}") from exc
        self._socket = listening

    def _listen(self, listening: socket.socket) -> None:
        self._token = new_token()
        while not _bound(listening, Handle(os.getpid(), self._token, 0).address):
            self._token = new_token()
        listening.listen(_BACKLOG)
        listening.setblocking(False)
        threading.Thread(
            target=self._serve, args=(listening,), name="mslite-weights", daemon=True
        ).start()

    def _serve(self, listening: socket.socket) -> None:
        rest = False
        while True:
            poll = select.poll()
            if not rest:
                poll.register(listening, select.POLLIN)
            for number in self._clients:
                poll.register(number, select.POLLIN)
            ready = {number for number, _ in poll.poll(self._wait_ms(rest))}
            now = time.monotonic()
            for number, (client, until) in list(self._clients.items()):
                if number in ready or until < now:
                    with client:
                        if number in ready:
                            self._answer(client)
                    del self._clients[number]
            # last: a client that asked was answered before one must go to make room
            rest = listening.fileno() in ready and not self._admitted(listening)

    def _wait_ms(self, rest: bool) -> float | None:
        untils = [until for _, until in self._clients.values()]
        if rest:
            untils.append(time.monotonic() + _REST_S)
        return max(0.0, min(untils) - time.monotonic()) * 1000 + 1 if untils else None

    def _admitted(self, listening: socket.socket) -> bool:
        """Take a client in; False when there was no room for it."""
        try:
            client, _ = listening.accept()
        except OSError as exc:
            return exc.errno in (errno.EAGAIN, errno.ECONNABORTED)  # it went away again
        client.setblocking(False)
        if peer_of(client).uid == os.geteuid():
            if len(self._clients) == _CLIENTS:  # the one that has been silent longest goes
                self._clients.pop(next(iter(self._clients)))[0].close()
            self._clients[client.fileno()] = client, time.monotonic() + PATIENCE_S
            return True
        with client, suppress(OSError):  # told at once: other users get no place in the list
            send(client, encoded_answer(_refused("user", "it belongs to another user")))
        return True

    def _answer(self, client: socket.socket) -> None:
        try:
            question = decoded_question(client.recv(MAX_BYTES + 1))
            offer = self._offers.get(question.number)
            answer = self._answer_to(question, offer, peer_of(client))
            if answer.refusal or offer is None:
                send(client, encoded_answer(answer))
            else:
                _give(client, answer, offer)
        except BadFrameError as exc:
            with suppress(OSError):
                send(client, encoded_answer(_refused("frame", str(exc))))
        except OSError:  # the client went away
            pass
        except Exception:  # noqa: BLE001 - the thread must go on for others
            _LOG.exception("a question about shared weights could not be answered")

    def _answer_to(self, question: Question, offer: Offer | None, peer: Peer) -> Answer:
        if offer is None:
            if question.number in self._closed:
                return _refused("closed", "")
            return _refused("handle", "")
        if peer.pid not in offer.pids:
            return _refused("process", str(peer.pid))
        if question.device != offer.device:
            return _refused("device", offer.device)
        if question.identity.model != offer.identity.model:
            return _refused("model", "")
        for name in sorted({*question.identity.settings, *offer.identity.settings}):
            here = offer.identity.settings.get(name, "")
            if question.identity.settings.get(name, "") != here:
                return _refused("settings", f"{name}: {here[:200]}")
        return Answer(str(offer.hold.folder), tuple(offer.hold.files))


def _give(client: socket.socket, answer: Answer, offer: Offer) -> None:
    """Send what was asked for; the client was found to be on the list."""
    files = tuple(offer.hold.files.values())
    extra = offer.extra()
    if not extra:
        send(client, encoded_answer(answer), files)
        return
    descriptor = written(extra)
    try:
        send(client, encoded_answer(replace(answer, has_extra=True)), (*files, descriptor))
    finally:
        os.close(descriptor)


def _refused(why: str, text: str) -> Answer:
    return Answer(refusal=why, text=text)


def _bound(listening: socket.socket, address: bytes) -> bool:
    """Whether a socket could have the name; another one may have it."""
    try:
        listening.bind(address)
    except OSError as exc:
        if exc.errno == errno.EADDRINUSE:
            return False
        raise
    return True


_OFFICE = _Office()
after_fork_in_child(_OFFICE.leave_to_parent)
