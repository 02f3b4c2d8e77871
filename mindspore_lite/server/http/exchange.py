"""One HTTP request and its answer, as the handlers of routes see it.

It lives on the event loop's thread. Work that holds the interpreter for long, such as a large JSON
text, goes to a thread of its own (`apart`); the model runs on the service's threads.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from mindspore_lite.server.core import Core
from mindspore_lite.server.errors import answer_to
from mindspore_lite.server.http.head import Head
from mindspore_lite.server.http.reply import Reply, error_reply
from mindspore_lite.server.meter import RequestTimes

if TYPE_CHECKING:
    from typing import BinaryIO

    from mindspore_lite.server.http.connection import Connection
    from mindspore_lite.server.http.routes import Endpoint
    from mindspore_lite.server.http.sink import FileSink

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Threads:
    """The threads behind an HTTP port: the loop's own, and one for heavy work."""

    loop: asyncio.AbstractEventLoop
    loop_thread: int  # what threading.get_ident() returns there
    heavy: Executor


class Exchange:
    """A request that was received whole, until it is answered.

    Attributes:
        core: The server.
        head: Of the request.
        endpoint: What it asks for.
        params: Of the path, such as the model's name.
        body: Of the request.
        sink: The file that the body went to instead.
        cancel: What ends the run that is under way for it, if there is one.
        times: When it passed which point.
    """

    __slots__ = (
        "_connection", "_counted", "_threads", "body", "cancel", "core", "endpoint", "head",
        "is_over", "params", "sink", "times",
    )  # fmt: skip

    def __init__(
        self,
        connection: Connection,
        threads: Threads,
        core: Core,
        head: Head,
        endpoint: Endpoint,
        params: Mapping[str, str],
        counted: int,
        began_ns: int = 0,
    ) -> None:
        self._connection = connection
        self._threads = threads
        self._counted = counted  # bytes in flight
        self.core = core
        self.head = head
        self.endpoint = endpoint
        self.params = params
        self.body = memoryview(b"")
        self.sink: FileSink | None = None
        self.cancel: Callable[[], bool] | None = None
        self.is_over = False
        self.times = RequestTimes(began_ns)

    def begin(self) -> None:
        """Let the endpoint's handler answer it, now or later."""
        try:
            reply = self.endpoint.handler(self)
        except Exception as exc:  # noqa: BLE001 - the client is told, the loop goes on
            self.fail(exc)
            return
        if reply is not None:
            self.answer(reply)

    def taken_file(self) -> BinaryIO | None:
        """The file that the body went to, for the caller to close; None if there is none."""
        sink, self.sink = self.sink, None
        return None if sink is None else sink.file

    def count(self, more_bytes: int) -> None:
        """Count bytes that it took beyond those of its body; only on the loop's thread.

        Raises:
            RequestError: There is no room for them.
        """
        self.core.flight.take(more_bytes)
        self._counted += more_bytes

    def answer(self, reply: Reply) -> None:
        """Send the answer; only once, and only on the loop's thread."""
        if not self.is_over:
            self._end()
            self.core.observer.answered(self.times)
            self._connection.answered(self, reply)

    def fail(self, exc: BaseException) -> None:
        """Answer that it failed."""
        self.times.failed(exc)
        self.answer(error_reply(answer_to(exc)))

    def stream(self, reply: Reply) -> None:
        """Begin an answer without an end; `cancel` is called once the client is gone."""
        self._connection.begin_stream(self, reply)

    def send(self, data: bytes) -> None:
        """Send more of it; only on the loop's thread."""
        self._connection.stream_more(self, data)

    def hung_up(self) -> None:
        """The client is gone: nobody wants the answer any more."""
        cancel = self.cancel
        self._end()
        self.core.observer.answered(self.times, "cancelled")
        if cancel is not None:
            cancel()

    def apart(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """Do work on the thread for heavy work, then go on here; an error is answered."""

        def do() -> None:
            try:
                result = work()
            except Exception as exc:  # noqa: BLE001 - the client is told
                self.soon(self.fail, exc)
            else:
                self.soon(then, result)

        self._threads.heavy.submit(do)

    def soon(self, act: Callable[..., None], *arguments: Any) -> None:
        """Do something for it on the loop's thread, at once if this is it."""
        if threading.get_ident() == self._threads.loop_thread:
            self._do(act, arguments)
            return
        with suppress(RuntimeError):  # the loop has ended, and with it the connection
            self._threads.loop.call_soon_threadsafe(self._do, act, arguments)

    def _do(self, act: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        if self.is_over:
            return
        try:
            act(*arguments)
        except Exception as exc:  # noqa: BLE001 - the client is told, the loop goes on
            self.fail(exc)

    def _end(self) -> None:
        self.is_over = True
        self.cancel = None
        self.body = memoryview(b"")
        if self.sink is not None:
            self.sink.close()
            self.sink = None
        self.core.flight.give(self._counted)
