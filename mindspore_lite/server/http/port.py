"""The HTTP port: an event loop on a thread of its own, its connections, and who may connect."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import ssl
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from mindspore_lite.server.address import cannot_open
from mindspore_lite.server.core import Core
from mindspore_lite.server.errors import Kind, RequestError
from mindspore_lite.server.health import Pulse
from mindspore_lite.server.http.connection import Connection
from mindspore_lite.server.http.cors import PREFLIGHT, allow, is_preflight
from mindspore_lite.server.http.endpoints import ROUTES
from mindspore_lite.server.http.exchange import Threads
from mindspore_lite.server.http.head import Head
from mindspore_lite.server.http.reply import Reply
from mindspore_lite.server.http.routes import Endpoint, Routes, endpoint_of, not_found
from mindspore_lite.server.http.sink import FileSink

T = TypeVar("T")
Known = tuple[Head, Endpoint, Mapping[str, str]]

_LOG = logging.getLogger(__name__)
_BACKLOG = 1024
_SCRATCH_BYTES = 16 * 1024  # for heads; of a large body, so much is copied at most
_KNOWN_HEADS, _KNOWN_BYTES = 512, 2048  # that are remembered, and how long they may be; guess
_MOST_UPLOADS = 4  # at once; guess
_LOOK_S = 1.0  # how often times are looked at


@dataclass(frozen=True)
class HttpOptions:
    """How the port is reached.

    Attributes:
        host: The address to listen on.
        port: 0 is any.
        tls: For HTTPS.
        hosts: Names that a request may be for, beyond addresses and localhost; "*" is any. None is
            any too, unless the address is the loopback's: a page in a browser on this machine must
            not reach us under a name of its own (DNS rebinding).
        origins: Of pages in browsers that may use the server; "*" is any.
        logs: Write the access log.
        argument: By which users know the port.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    tls: ssl.SSLContext | None = None
    hosts: Sequence[str] | None = None
    origins: Sequence[str] = ()
    logs: bool = False
    argument: str = "http_port"


class HttpPort:
    """Serves HTTP until it is closed. Its methods are for other threads than the loop's."""

    def __init__(self, core: Core, options: HttpOptions, routes: Routes = ROUTES) -> None:
        self.core = core
        self.logs = options.logs
        self.connections: set[Connection] = set()
        core.connections.setdefault("http", lambda: len(self.connections))
        self.scratch = memoryview(bytearray(_SCRATCH_BYTES))
        self.known: dict[bytes, Known] = {}  # by the bytes of the head
        self.number = 0  # the port, once it is open
        self._options, self._routes = options, routes
        self._hosts = _known_hosts(options)
        self._origins = frozenset(options.origins)
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="mslite-file")
        self._heavy = ThreadPoolExecutor(1, thread_name_prefix="mslite-json")
        self.loop = _new_loop()
        self._server: asyncio.Server | None = None
        self._pulse = Pulse()
        self._thread = threading.Thread(target=self._run, name="mslite-http", daemon=True)

    def start(self) -> int:
        """Open the port; returns its number.

        Raises:
            EngineError: It cannot be opened.
        """
        self._pulse = self.core.health.pulse("http")
        self._thread.start()
        ident = self._thread.ident
        assert ident is not None
        self.threads = Threads(self.loop, ident, self._heavy)
        try:
            self.number = self._do(self._open())
        except OSError as exc:
            self.close()
            options = self._options
            raise cannot_open(options.argument, options.host, options.port, exc) from exc
        return self.number

    def stop_accepting(self, idle_s: float) -> None:
        """Take no new connections; those that stay idle for so long are closed."""

        async def stop() -> None:
            if self._server is not None:
                self._server.close()
            for connection in list(self.connections):
                connection.end_soon(idle_s)

        self._do(stop())

    def wait_idle(self, limit_s: float) -> bool:
        """Wait until all connections are closed; whether they were in time."""

        async def wait() -> bool:
            due_s = self.loop.time() + limit_s
            while self.connections and self.loop.time() < due_s:
                for connection in list(self.connections):
                    connection.look(self.loop.time())
                await asyncio.sleep(0.01)
            return not self.connections

        return self._do(wait())

    def close(self) -> None:
        """Close all at once. Harmless when repeated."""
        if self.loop.is_closed():
            return
        self.core.health.forget(self._pulse)

        async def end() -> None:
            if self._server is not None:
                self._server.close()
            for connection in list(self.connections):
                connection.abort()

        if self._thread.is_alive():
            self._do(end())
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join()
        self._heavy.shutdown(wait=False, cancel_futures=True)
        self._writer.shutdown(wait=False, cancel_futures=True)
        self.loop.close()

    # --- for connections, on the loop's thread ---

    def admitted(self, raw: bytes, head: Head) -> Known:
        """What a request asks for, if it may.

        Whatever decides that is in the head, or does not change while the port is open: so what is
        found is remembered by the head's bytes, tokens included, and clients that send the same
        head again are spared all of this.

        Raises:
            RequestError: It may not, or there is no such thing.
        """
        self._check_host(head)
        if is_preflight(head) and self._allows(head.text(b"origin") or ""):
            return head, PREFLIGHT, {}
        found = self._routes.find(head.path)
        endpoint: Endpoint | None = None
        refusal: RequestError | None = None
        if found is not None:
            try:
                endpoint = endpoint_of(found[0], head.method)
            except RequestError as exc:
                refusal = exc
        need = endpoint.need if endpoint is not None else Endpoint.need
        self.core.gate.check(need, head.text(b"authorization"))
        if endpoint is None or found is None:
            raise refusal or not_found()
        known = head, endpoint, found[1]
        if len(raw) <= _KNOWN_BYTES:
            if len(self.known) >= _KNOWN_HEADS:
                self.known.clear()
            self.known[raw] = known
        return known

    def new_sink(self, ready: Callable[[FileSink], None]) -> FileSink:
        """A file for a large body; `ready` is called when something was written.

        Raises:
            RequestError: There are enough of them.
        """
        if sum(one.is_uploading for one in self.connections) >= _MOST_UPLOADS:
            raise RequestError(
                Kind.UNAVAILABLE, f"{_MOST_UPLOADS} files are being sent already; try again", 1
            )
        return FileSink(self.loop, self._writer, ready)

    def allow_origin(self, reply: Reply, origin: bytes) -> None:
        """Tell a browser that a page may read the answer, if it may."""
        if self._allows(origin.decode("latin-1")):
            allow(reply, origin)

    def _check_host(self, head: Head) -> None:
        if self._hosts is not None and head.authority:
            name = _host_of(head.authority)
            if name not in self._hosts and not _is_address(name):
                raise RequestError(
                    Kind.MISDIRECTED,
                    "the Host of the request is not one of this server's; see --allow-host",
                )
        origin = head.text(b"origin")
        if origin is None or self._allows(origin):
            return
        if origin.partition("://")[2].lower() != head.authority.lower():
            raise RequestError(
                Kind.FORBIDDEN, "pages of other origins may not use this server; see --allow-origin"
            )

    def _allows(self, origin: str) -> bool:
        return "*" in self._origins or origin in self._origins

    # --- the loop ---

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.call_later(self._look_s, self._look)
        self.loop.run_forever()

    @property
    def _look_s(self) -> float:
        limits = self.core.limits
        return min(_LOOK_S, min(limits.head_s, limits.idle_s, limits.body_grace_s) / 4)

    def _look(self) -> None:
        self._pulse.beat()
        now_s = self.loop.time()
        for connection in list(self.connections):
            connection.look(now_s)
        self.loop.call_later(self._look_s, self._look)

    async def _open(self) -> int:
        options = self._options
        # localhost has two addresses, which would get two numbers
        is_any = options.host == "localhost" and not options.port
        self._server = await self.loop.create_server(
            lambda: Connection(self),
            "127.0.0.1" if is_any else options.host,
            options.port,
            ssl=options.tls,
            ssl_handshake_timeout=self.core.limits.head_s if options.tls is not None else None,
            backlog=_BACKLOG,
        )
        number: int = self._server.sockets[0].getsockname()[1]
        return number

    def _do(self, coroutine: Coroutine[Any, Any, T]) -> T:
        future: Future[T] = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        return future.result()


def _new_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where it is installed, else asyncio's."""
    with contextlib.suppress(ImportError):
        import uvloop

        loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
        return loop
    return asyncio.new_event_loop()


def _known_hosts(options: HttpOptions) -> frozenset[str] | None:
    if options.hosts is None:
        return frozenset(("localhost",)) if is_loopback(options.host) else None
    if "*" in options.hosts:
        return None
    return frozenset(("localhost", *(name.lower() for name in options.hosts)))


def is_loopback(host: str) -> bool:
    """Whether an address is only reachable from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _host_of(authority: str) -> str:
    """The name or address in front of a port."""
    if authority.startswith("["):
        return authority[1:].partition("]")[0]
    return authority.partition(":")[0].lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
